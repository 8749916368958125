"""
The limit: the chance that a retry succeeds, for one who knows all parameters of the world and remembers the whole session.

An exact filter. What may be wrong is looked at in a fixed order (credentials, window, then outage and signature, then
flaky faults), so that each outcome tells about one of three independent parts only: whether the credentials of a tool will
ever work, when its window ends, and the outage together with the present signature. No model that sees the session can do
better on average than this filter does, apart from what other sessions saw, which nobody here sees.
"""

import math

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from .sessions import Call
from .world import BY_NAME, GOOD, KINDS, NOT_YET, REPAIR, UNMET, SimulatedTool, signature_prior


NEGLIGIBLE: Final = 1e-6
"""Seconds by which two ends of one window may differ for being floats."""


@dataclass(slots=True)
class Belief:
    """
    What is thought of one tool in one session.

    *joint* is over (up, down) and the six kinds of the present *signature*; *windows* are (end, weight) of the window that
    may be open, the weights adding up to one, and empty where none is.
    """

    tool: SimulatedTool
    began: float
    auth_seen: float | None = None
    authorised: bool = False
    windows: list[tuple[float, float]] = field(default_factory=list)
    at: float | None = None
    signature: int | None = None
    joint: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        tool = self.tool
        down = tool.down / (tool.up + tool.down)
        prior = signature_prior(tool)
        self.joint = [[(1 - down) * share for share in prior], [down * share for share in prior]]

    def meet(self, signature: int) -> None:
        """
        Forget the signature before, which is never called again, and start with a new one.
        """
        if signature == self.signature:
            return
        prior = signature_prior(self.tool)
        self.joint = [[sum(row) * share for share in prior] for row in self.joint]
        self.signature = signature

    def pass_time(self, at: float) -> None:
        if self.at is not None and at > self.at:
            self.joint = later(self.joint, self.tool, at - self.at)
        self.at = at

    def repaired(self) -> None:
        """
        Another tool changed the state: a precondition may hold now.
        """
        self.joint = mended(self.joint, 1)

    def observe(self, call: Call) -> None:
        tool = self.tool
        self.pass_time(call.start)
        self.meet(call.signature)
        if call.error == "auth":
            self.auth_seen = call.start
            return
        self.authorised = True
        if call.error == "rate_limit":
            self.windows = self.limited(call)
            return
        self.windows = []
        likelihood = outcome_likelihood(tool, call.error)
        joint = [[p * q for p, q in zip(row, by, strict=True)] for row, by in zip(self.joint, likelihood, strict=True)]
        total = sum(map(sum, joint))
        self.joint = [[p / total for p in row] for row in joint]

    def limited(self, call: Call) -> list[tuple[float, float]]:
        """
        The windows that may be open after a call that was limited: one known before, or one that this call opened.
        """
        tool, at = self.tool, call.start
        still = [(end, weight) for end, weight in self.windows if end > at]
        over = 1.0 if not self.windows else 1.0 - sum(weight for _, weight in still)
        found = still + [(at + length, max(over, 0.0) * tool.window * share) for length, share in tool.window_lengths]
        if call.header is not None:
            found = [(end, weight) for end, weight in found if -NEGLIGIBLE <= at + call.header - end < 1 + NEGLIGIBLE]
        total = sum(weight for _, weight in found)
        return [(end, weight / total) for end, weight in found if weight > 0]

    def success(self, at: float, repairs: int = 0) -> float:
        """
        The chance that the present signature, called at *at*, succeeds, after that many state-changing calls of others.
        """
        tool = self.tool
        joint = mended(later(self.joint, tool, at - (at if self.at is None else self.at)), repairs)
        up = joint[0][GOOD] * (1 - tool.flaky)
        free = sum(weight for end, weight in self.windows if end <= at) if self.windows else 1.0
        return self.authorised_at(at) * free * (1 - tool.window) * up

    def authorised_at(self, at: float) -> float:
        tool = self.tool
        if self.authorised or not tool.auth:
            return 1.0
        seen = self.auth_seen
        refreshing = tool.auth * (1 - tool.auth_for_good)
        if seen is None:
            return 1.0 - tool.auth + refreshing * (1 - math.exp(-(at - self.began) / tool.refresh))
        open_still = refreshing * math.exp(-(seen - self.began) / tool.refresh)
        share = open_still / (open_still + tool.auth * tool.auth_for_good)
        return share * (1 - math.exp(-(at - seen) / tool.refresh))


def later(joint: list[list[float]], tool: SimulatedTool, seconds: float) -> list[list[float]]:
    """
    The belief after *seconds*: outages start and end, and what was not there yet appears.
    """
    if seconds <= 0:
        return joint
    down = tool.down / (tool.up + tool.down)
    decay = math.exp(-seconds * (1 / tool.up + 1 / tool.down))
    falls, rises = down * (1 - decay), (1 - down) * (1 - decay)
    up_row = [u * (1 - falls) + d * rises for u, d in zip(*joint, strict=True)]
    down_row = [u * falls + d * (1 - rises) for u, d in zip(*joint, strict=True)]
    appeared = 1 - math.exp(-seconds / tool.appears)
    for row in (up_row, down_row):
        row[GOOD] += row[NOT_YET] * appeared
        row[NOT_YET] *= 1 - appeared
    return [up_row, down_row]


def mended(joint: list[list[float]], repairs: int) -> list[list[float]]:
    if not repairs:
        return joint
    joint = [list(row) for row in joint]
    share = 1 - (1 - REPAIR) ** repairs
    for row in joint:
        row[GOOD] += row[UNMET] * share
        row[UNMET] *= 1 - share
    return joint


@cache
def outcome_likelihood(tool: SimulatedTool, error: str | None) -> list[list[float]]:
    """
    How likely *error* (None: success) is, of a tool that is up or down, for each kind of signature.
    """
    flaky = tool.flaky * dict(tool.flaky_errors).get(error or "", 0.0)
    up = [1 - tool.flaky if error is None else flaky, *(float(error == told) for told in KINDS[1:])]
    return [up, [dict(tool.outage_errors).get(error or "", 0.0)] * 6]


class Filter:
    """
    What is thought of all tools of one session; *began* is the session's first moment, in seconds since day 0.
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self.beliefs: dict[str, Belief] = {}

    def observe(self, call: Call) -> Belief:
        name = call.tool.name
        belief = self.beliefs.get(name)
        if belief is None:
            belief = self.beliefs[name] = Belief(BY_NAME[name], self.began)
        belief.observe(call)
        if call.error is None and call.tool.changes_state:
            for other in self.beliefs.values():
                if other is not belief:
                    other.repaired()
        return belief
