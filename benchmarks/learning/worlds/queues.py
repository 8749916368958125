"""
A world of queues: congestion that comes and goes with the hour, and outages whose length is heavy-tailed.

An outage's length has a Pareto distribution: one that has lasted is expected to last as long again, so that no wait is the
right one for all of them. After an outage its backlog is worked off, and calls get through one by one. In the rush hours of
each tool a share of calls times out, or is shed with a Retry-After that says little. Outages, congestion and flaky
faults share their error types. A shed answer may be a page with status 200, a congested one in part.
"""

import bisect
import functools
import math

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from .base import DAY_S, DAYS, Mix, Odds, SimulatedTool, Thing, World, dice, scaled


LONGEST: Final = 4 * 3_600.0
SLOT_S: Final = 20.0
"""Congestion changes this often."""
PATIENCE_S: Final = 10.0
"""After this a call times out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTool(SimulatedTool):
    """
    Outages come each *up* s, take *least* s at least and have the tail exponent *tail*; congestion is *load* at the rush hour.
    """

    up: float
    least: float = 8.0
    tail: float = 1.2
    drain: float = 0.5
    """Share of an outage's length that its backlog takes, 120 s at most."""
    load: float = 0.2
    rush: float = 14.0
    """Hour of the day."""
    down_errors: Mix = (("unavailable", 0.5), ("timeout", 0.3), ("connection", 0.2))
    shed: float = 0.4
    """How much of the congestion is refused at once."""


class Down(NamedTuple):
    """
    Outages in order: when each starts, ends, and has no backlog any more.
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    drained: tuple[float, ...]


class Queues(World):
    """
    See the module's text.
    """

    name = "queues"
    tools: ClassVar = (
        QueueTool(name="render", up=7_000, load=0.3, seconds=3.0, flaws=(("partial", 0.01),)),
        QueueTool(name="transcribe", up=12_000, tail=1.05, seconds=4.0),
        QueueTool(name="submit_job", changes_state=True, up=9_000, load=0.35, shed=0.8, flaws=(("no_op", 0.02),)),
        QueueTool(name="job_result", up=15_000, load=0.1, gone=0.04, flaws=(("empty", 0.02),)),
        QueueTool(name="warehouse", up=6_000, least=20, tail=1.6, load=0.4, rush=9, hidden=0.06, seconds=2.0),
        QueueTool(name="mail_relay", changes_state=True, up=20_000, least=60, tail=1.3, down_errors=(("connection", 0.8), ("timeout", 0.2)), load=0.05),
        QueueTool(name="fetch_page", up=8_000, least=3, tail=1.1, flaky=0.06, load=0.15, gone=0.08),
        QueueTool(name="index", changes_state=True, up=10_000, least=15, load=0.25, rush=2, down_errors=(("server_error", 0.7), ("unavailable", 0.3)), unmet=0.04),
    )  # fmt: skip

    def odds(self, tool: QueueTool, thing: Thing, at: float, memory: None) -> Odds:
        down = outages(self.seed, tool)
        index = bisect.bisect_right(down.starts, at) - 1
        if index >= 0 and at < down.drained[index]:
            if at < down.ends[index]:
                return Odds(tool.down_errors, seconds=PATIENCE_S / 2)
            refused = (down.drained[index] - at) / (down.drained[index] - down.ends[index])
            return Odds(scaled(tool.down_errors, refused), header=5.0, flaws=(("error_page", 0.15),))
        busy = self.congestion(tool, at)
        errors = (("unavailable", busy * tool.shed), ("timeout", busy * (1 - tool.shed)))
        flaws = (("error_page", 0.1 * busy), ("partial", 0.3 * busy))
        return Odds(errors, header=2.0, seconds=PATIENCE_S, flaws=flaws)

    def congestion(self, tool: QueueTool, at: float) -> float:
        """
        The share of calls that do not get through: twice *load* at most, in the rush hour.
        """
        hour = at % DAY_S / 3_600
        rush = 0.5 + 0.5 * math.cos((hour - tool.rush) * math.pi / 12)
        return min(0.95, 2 * tool.load * rush * level(self.seed, tool.name, int(at // SLOT_S)))


@functools.lru_cache(maxsize=256)
def outages(seed: int, tool: QueueTool) -> Down:
    """
    The outages of *tool*, two days longer than a simulation.
    """
    rng = dice(seed, "outages", tool.name)
    starts, ends, drained = [], [], []
    at = rng.expovariate(1 / tool.up)
    while at < (DAYS + 2) * DAY_S:
        length = min(LONGEST, tool.least * rng.paretovariate(tool.tail))
        starts.append(at)
        ends.append(at + length)
        drained.append(at + length + max(1.0, min(120.0, tool.drain * length)))
        at = drained[-1] + rng.expovariate(1 / tool.up)
    return Down(tuple(starts), tuple(ends), tuple(drained))


@functools.lru_cache(maxsize=1 << 17)
def level(seed: int, name: str, slot: int) -> float:
    """
    How congested a slot is, between 0 and 1: the mean of three clocks of different pace, so that neighbours are alike.
    """
    return sum(dice(seed, name, pace, slot // pace).random() for pace in (1, 6, 30)) / 3
