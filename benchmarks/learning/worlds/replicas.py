"""
A world of replicas that agree in the end: what was just written is not there yet, and not everywhere at once.

Each call goes to a replica at random, or to the session's own. A thing was written shortly before it is asked for, and each
replica has it after a lag of its own; in a stall the lags are long. So a retry may work at once, since another replica answers, and the
answer after that may be older. A replica that is down fails a share of all calls. Writes go to one leader; between two leaders
all writes fail, and those that worked just before may be lost without a word.
"""

import bisect
import functools
import random

from dataclasses import dataclass
from typing import ClassVar, Final

from .base import DAY_S, DAYS, Odds, SimulatedTool, Thing, World, dice


REPLICAS: Final = 3
STALL: Final = 20.0
"""How many times longer lags are in a stall."""

Spells = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTool(SimulatedTool):
    """
    Things are new with the chance *fresh*, and reach a replica after *lag* s in the mean.
    """

    fresh: float = 0.25
    lag: float = 3.0
    sticky: bool = False
    """A session's calls all go to one replica."""
    missing: str = "not_found"
    """How a thing that is not there yet is told; `""`: an older answer, or an empty one, looks like success."""
    up: float = 20_000.0
    """Of a replica, and between two elections."""
    down: float = 200.0
    election: float = 25.0


class Replicas(World):
    """
    See the module's text.
    """

    name = "replicas"
    tools: ClassVar = (
        ReplicaTool(name="get_order"),
        ReplicaTool(name="get_profile", missing="", fresh=0.3),
        ReplicaTool(name="list_orders", missing="", lag=8.0, flaws=(("partial", 0.01),)),
        ReplicaTool(name="search_index", missing="", lag=30.0, sticky=True),
        ReplicaTool(name="get_blob", lag=10.0, sticky=True, fresh=0.3, gone=0.05),
        ReplicaTool(name="read_config", missing="precondition", lag=15.0, fresh=0.15),
        ReplicaTool(name="put_order", changes_state=True, fresh=0.0, up=9_000, unmet=0.05),
        ReplicaTool(name="update_profile", changes_state=True, fresh=0.2, missing="conflict", lag=5.0, up=12_000, election=60.0),
        ReplicaTool(name="put_blob", changes_state=True, fresh=0.0, seconds=2.0, flaky=0.04, bad=0.08),
    )  # fmt: skip

    def odds(self, tool: ReplicaTool, thing: Thing, at: float, memory: None) -> Odds:
        written, chosen, *lags = thing.hidden
        there = [chosen] if tool.sticky else range(REPLICAS)
        down = behind = 0.0
        for replica in there:
            if within(spells(self.seed, tool.name, int(replica), tool.up, tool.down), at):
                down += 1 / len(there)
            elif at < written + lags[int(replica)]:
                behind += 1 / len(there)
        errors = [("unavailable", 0.5 * down), ("connection", 0.5 * down)]
        flaws: list[tuple[str, float]] = []
        if tool.changes_state:
            elections = spells(self.seed, tool.name, -1, tool.up, tool.election)
            if within(elections, at):
                return Odds((("unavailable", 0.7), ("timeout", 0.3)))
            if within(elections, at + tool.election):
                flaws.append(("no_op", 0.5))
        if tool.missing:
            errors.append((tool.missing, behind))
        elif down < 1:
            kind = "stale" if written % 2 < 1 else "empty"
            flaws.append((kind, behind / (1 - down)))
        return Odds(tuple(errors), flaws=tuple(flaws))

    def hidden(self, tool: ReplicaTool, at: float, rng: random.Random) -> tuple[float, ...]:
        """
        When it was written, which replica a session sticks to, and the lag of each.
        """
        chosen = float(rng.randrange(REPLICAS))
        if rng.random() >= tool.fresh:
            return (-1e9, chosen, *[0.0] * REPLICAS)
        written = at - rng.expovariate(1 / tool.lag)
        slow = STALL if within(spells(self.seed, tool.name, -2, 15_000, 900), at) else 1.0
        return (written, chosen, *(slow * tool.lag * rng.lognormvariate(-0.5, 1.0) for _ in range(REPLICAS)))


def within(spells: Spells, at: float) -> bool:
    """
    Whether *at* is in one of the spells.
    """
    starts, ends = spells
    index = bisect.bisect_right(starts, at) - 1
    return index >= 0 and at < ends[index]


@functools.lru_cache(maxsize=256)
def spells(seed: int, name: str, replica: int, up: float, down: float) -> Spells:
    """
    When something goes on, by its mean pause *up* and its mean length *down*.
    """
    rng = dice(seed, "spells", name, replica)
    starts, ends = [], []
    at = rng.expovariate(1 / up)
    while at < (DAYS + 2) * DAY_S:
        starts.append(at)
        at += rng.expovariate(1 / down)
        ends.append(at)
        at += rng.expovariate(1 / up)
    return tuple(starts), tuple(ends)
