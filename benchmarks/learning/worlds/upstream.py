"""
A world in which the tool tells nothing and the argument all: an upstream with hidden state for each key.

All sessions share the keys. Some are poisoned for good; some are cold, and the first call that misses starts a fill which a later call
finds done; some are locked by a batch that comes back to them in its turn; each lives on one of the shards, which fail
apart from each other. All of it is told in the same few errors, so that a tool's rate says nothing of a key's. A cache that
mixes keys up answers with another one's data.
"""

import bisect
import functools
import random

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from .base import DAY_S, Mix, Odds, SimulatedTool, Thing, World, dice
from .replicas import spells, within


SHARDS: Final = 8
KEPT_S: Final = 900.0
"""How long a filled key stays warm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTool(SimulatedTool):
    """
    How many of the *keys* are of each kind; the rest always work, but for the shards.
    """

    keys: int = 3_000
    poisoned: float = 0.05
    cold: float = 0.2
    fill: float = 6.0
    batched: float = 0.1
    cycle: float = 240.0
    mixed: float = 0.02
    """Keys for which a cache answers with another one's data."""
    void: float = 0.02
    """Keys that are answered with nothing, though they are not empty."""
    shard_errors: Mix = (("server_error", 0.5), ("unavailable", 0.5))


class Key(NamedTuple):
    """
    What is hidden about a key: its kind, a time and a phase of its own, and a flaw.
    """

    kind: str
    seconds: float
    phase: float
    flaw: str


class Upstream(World):
    """
    See the module's text.
    """

    name = "upstream"
    tools: ClassVar = (
        KeyedTool(name="lookup_part"),
        KeyedTool(name="product_page", cold=0.4, fill=3.0),
        KeyedTool(name="report", cold=0.5, fill=40.0, seconds=2.0, poisoned=0.1),
        KeyedTool(name="tile", cold=0.3, fill=12.0, mixed=0.05),
        KeyedTool(name="account", batched=0.25, cycle=90.0, mixed=0.04),
        KeyedTool(name="inventory", batched=0.3, cycle=600.0, void=0.06),
        KeyedTool(name="history", poisoned=0.2, flaky=0.06, gone=0.06),
        KeyedTool(name="set_price", changes_state=True, batched=0.3, cycle=180.0, cold=0.0, bad=0.08, unmet=0.06, flaws=(("no_op", 0.03),)),
        KeyedTool(name="reserve", changes_state=True, poisoned=0.1, cold=0.1, flaws=(("no_op", 0.02),)),
    )  # fmt: skip

    def odds(self, tool: KeyedTool, thing: Thing, at: float, memory: float | None) -> Odds:
        number = int(thing.hidden[0])
        key = key_of(self.seed, tool, number)
        if within(spells(self.seed, tool.name, number % SHARDS, 40_000, 300), at):
            return Odds(tool.shard_errors)
        if key.kind == "poisoned":
            return Odds((("server_error", 0.6), ("timeout", 0.4)), seconds=10.0)
        if key.kind == "cold" and not (memory is not None and memory + key.seconds <= at < memory + KEPT_S):
            return Odds((("timeout", 0.7), ("unavailable", 0.3)), header=3.0, seconds=5.0)
        if key.kind == "batched" and (at + key.phase) % key.seconds < key.seconds * 0.4:
            return Odds((("conflict", 0.4), ("unavailable", 0.6)))
        return Odds(flaws=((key.flaw, 0.9),) if key.flaw else ())

    def learned(self, tool: KeyedTool, thing: Thing, at: float, memory: float | None, error: str | None) -> float:
        """
        When the fill began that the session has set off.
        """
        return at if memory is None or at >= memory + KEPT_S else memory

    def place(self, tool: KeyedTool, thing: Thing) -> object:
        return tool.name, thing.hidden[0]

    def hidden(self, tool: KeyedTool, at: float, rng: random.Random) -> tuple[float, ...]:
        """
        The key: few are asked for often.
        """
        return (float(int(tool.keys * rng.random() ** 2)),)

    def draw(self, tool: KeyedTool, at: float, fresh: int, rng: random.Random) -> Thing:
        """
        A key comes again as the same call; what is wrong with the arguments otherwise is another call's.
        """
        thing = super().draw(tool, at, fresh, rng)
        place = [one.name for one in self.tools].index(tool.name)
        return thing if thing.kind else thing._replace(number=-1 - place * 1_000_000 - int(thing.hidden[0]))


@functools.lru_cache(maxsize=1 << 16)
def key_of(seed: int, tool: KeyedTool, number: int) -> Key:
    """
    What is hidden about a key of *tool*.
    """
    rng = dice(seed, tool.name, number)
    shares = (tool.poisoned, tool.cold, tool.batched)
    totals = [sum(shares[: at + 1]) for at in range(len(shares))]
    kind = ("poisoned", "cold", "batched", "")[bisect.bisect_right(totals, rng.random())]
    seconds = tool.fill * rng.uniform(0.5, 2.0) if kind == "cold" else tool.cycle * rng.uniform(0.8, 1.2)
    draw = rng.random()
    flaw = "other_entity" if draw < tool.mixed else "empty" if draw < tool.mixed + tool.void else ""
    return Key(kind, seconds, rng.random() * DAY_S, flaw)
