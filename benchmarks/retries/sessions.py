"""
Simulated sessions: an agent that goes from task to task, and calls again what failed, as it sees fit.

What the agent does next follows from what it has seen, never from what is hidden, so that its retries are no clue of their
own. It tries an error again in about half of the cases, mostly at once, sometimes after a wait or after the time that a
header named, and now and then works with other tools in between.
"""

import itertools
import math
import random

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

from .world import DAY_S, GOOD, KINDS, NOT_YET, REPAIR, TOOLS, UNMET, Outages, SimulatedTool, outages, signature_prior


EPOCH_MS: Final = 1_767_225_600_000
"""Midnight at the start of 2026, UTC: day 0."""
RETRIED: Final = {
    "rate_limit": 0.75,
    "timeout": 0.75,
    "unavailable": 0.7,
    "connection": 0.75,
    "server_error": 0.65,
    "not_found": 0.45,
    "auth": 0.45,
    "precondition": 0.7,
    "validation": 0.3,
}
"""How often the agent tries a failed call again at its first failure; 0.85 of that at each further one, at most eight times."""
WAITS: Final = (((0.2, 1.0), 0.45), ((1.0, 5.0), 0.2), ((5.0, 15.0), 0.15), ((15.0, 60.0), 0.12), ((60.0, 300.0), 0.08))
"""Shortest and longest wait of a retry in seconds, and how many retries wait so."""
PRIORS: Final = {tool.name: signature_prior(tool) for tool in TOOLS}
MOST_RETRIES: Final = 8
BATCH: Final = 40
"""Sessions of a day that are drawn before the next day's turn, so that any length of a stream covers all days."""

Value = TypeVar("Value")


class Call(NamedTuple):
    """
    One executed call; *start* and *end* in seconds since day 0, *header* the Retry-After in seconds.
    """

    tool: SimulatedTool
    signature: int
    start: float
    end: float
    error: str | None
    header: float | None


class World:
    """
    All that sessions of a *seed* share.
    """

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.outages: dict[str, Outages] = {tool.name: outages(tool, seed) for tool in TOOLS}

    def session(self, number: int, day: int) -> list[Call]:
        """
        The calls of session *number*, which starts on *day*; the same each time.
        """
        return Session(self, number, day).run()

    def sessions(self, day: int, count: int) -> Iterator[list[Call]]:
        return (self.session(day * 10_000_000 + index, day) for index in range(count))


def stream(world: World, days: range) -> Iterator[list[Call]]:
    """
    Sessions of all *days* in turns, without end.
    """
    for round_ in itertools.count():
        for day in days:
            first = day * 10_000_000 + round_ * BATCH
            yield from (world.session(number, day) for number in range(first, first + BATCH))


class Session:
    """
    One agent at work; see the module's text.
    """

    def __init__(self, world: World, number: int, day: int) -> None:
        self.rng = random.Random(f"{world.seed}:{number}")
        self.outages = world.outages
        self.now = (day + self.rng.random()) * DAY_S
        self.start = self.now
        self.auth: dict[str, float] = {}
        self.windows: dict[str, float] = {}
        self.last = number * 1_000_000
        self.calls: list[Call] = []

    def run(self) -> list[Call]:
        rng = self.rng
        tools = rng.sample(TOOLS, 4)
        weights = [rng.random() + 0.1 for _ in tools]
        for _ in range(1 + int(rng.expovariate(1 / 24))):
            (tool,) = rng.choices(tools, weights)
            for _ in range(1 if rng.random() < 0.7 else rng.randint(2, 4)):
                self.task(tool, tools)
                self.now += rng.expovariate(1 / 6)
        return self.calls

    def task(self, tool: SimulatedTool, tools: list[SimulatedTool]) -> None:
        rng = self.rng
        self.last += 1
        signature, state, appears = self.last, *self.draw(tool)
        for attempt in range(MOST_RETRIES + 1):
            call, state = self.call(tool, signature, state, appears)
            if call.error is None or rng.random() > RETRIED[call.error] * 0.85**attempt:
                return
            wait = self.wait(call)
            if rng.random() < (0.6 if call.error == "precondition" else 0.3):
                state = self.elsewhere(tool, tools, state, wait)
            self.now = max(self.now, call.end + wait)

    def elsewhere(self, tool: SimulatedTool, tools: list[SimulatedTool], state: int, wait: float) -> int:
        """
        One to three calls of other tools before the retry, each of a signature of its own; they may mend a precondition.
        """
        rng = self.rng
        others = [other for other in tools if other is not tool]
        for _ in range(rng.randint(1, 3)):
            other = rng.choice(others)
            self.last += 1
            self.now += rng.random() * min(wait, 5.0) / 3
            kind, appears = self.draw(other)
            call, _ = self.call(other, self.last, kind, appears)
            if call.error is None and other.changes_state and state == UNMET and rng.random() < REPAIR:
                state = GOOD
        return state

    def draw(self, tool: SimulatedTool) -> tuple[int, float]:
        """
        What is wrong with a new signature, and when a resource that is not there yet will be.
        """
        (kind,) = self.rng.choices(range(6), PRIORS[tool.name])
        return kind, self.now + self.rng.expovariate(1 / tool.appears) if kind == NOT_YET else math.inf

    def wait(self, call: Call) -> float:
        rng = self.rng
        if call.header is not None and rng.random() < 0.6:
            return call.header + rng.random() * 2
        return rng.uniform(*pick(rng, WAITS))

    def call(self, tool: SimulatedTool, signature: int, state: int, appears: float) -> tuple[Call, int]:
        start = self.now
        if state == NOT_YET and start >= appears:
            state = GOOD
        error, header = self.outcome(tool, state, start)
        self.now = start + tool.duration * (0.5 + self.rng.random())
        call = Call(tool, signature, start, self.now, error, header)
        self.calls.append(call)
        return call, state

    def outcome(self, tool: SimulatedTool, state: int, at: float) -> tuple[str | None, float | None]:
        rng = self.rng
        name = tool.name
        if at < self.authorised(tool):
            return "auth", None
        if at >= self.windows.get(name, 0.0) and rng.random() < tool.window:
            self.windows[name] = at + pick(rng, tool.window_lengths)
        if (left := self.windows.get(name, 0.0) - at) > 0:
            return "rate_limit", float(math.ceil(round(left, 6))) if rng.random() < tool.header else None
        if self.outages[name].down(at):
            return pick(rng, tool.outage_errors), None
        if state != GOOD:
            return KINDS[state], None
        if rng.random() < tool.flaky:
            return pick(rng, tool.flaky_errors), None
        return None, None

    def authorised(self, tool: SimulatedTool) -> float:
        """
        From when on the credentials for *tool* work in this session.
        """
        known = self.auth.get(tool.name)
        if known is None:
            rng = self.rng
            known = 0.0
            if rng.random() < tool.auth:
                known = (
                    math.inf if rng.random() < tool.auth_for_good else self.start + rng.expovariate(1 / tool.refresh)
                )
            self.auth[tool.name] = known
        return known


def pick(rng: random.Random, mix: tuple[tuple[Value, float], ...]) -> Value:
    draw = rng.random()
    for value, share in mix:
        draw -= share
        if draw < 0:
            return value
    return mix[-1][0]
