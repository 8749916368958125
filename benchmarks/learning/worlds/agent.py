"""
Sessions in any world: an agent that goes from task to task, and calls again what failed, as it sees fit.

What it does next follows from what it was told, never from what is hidden. So it takes a fault that looks like success for
one, and goes on.
"""

import itertools

from collections.abc import Iterator
from typing import Final

from benchmarks.retries.sessions import BATCH, MOST_RETRIES, RETRIED, WAITS, pick
from benchmarks.retries.world import REPAIR

from .base import UNMET, Call, Live, SimulatedTool, Thing, World


OFTEN: Final = {**RETRIED, "conflict": 0.6, "permission": 0.4}
LONG: Final = (*((wait, part * 0.95) for wait, part in WAITS), ((300.0, 580.0), 0.05))
"""Waits of a retry; few are longer than those of `benchmarks.retries`, but short enough to be counted as retries."""


def stream(world: World, days: range) -> Iterator[list[Call]]:
    """
    Sessions of all *days* in turns, without end.
    """
    for round_ in itertools.count():
        for day in days:
            first = day * 10_000_000 + round_ * BATCH
            yield from (session(world, number, day) for number in range(first, first + BATCH))


def session(world: World, number: int, day: int) -> list[Call]:
    """
    The calls of session *number*, which begins on *day*; the same each time.
    """
    return Agent(world, number, day).run()


class Agent:
    """
    One agent at work; see the module's text.
    """

    def __init__(self, world: World, number: int, day: int) -> None:
        self.live = Live(world, number)
        self.rng = self.live.rng
        self.tools = self.rng.sample(world.tools, min(4, len(world.tools)))
        self.now = world.began(self.rng, day)
        self.calls: list[Call] = []

    def run(self) -> list[Call]:
        rng = self.rng
        weights = [rng.random() + 0.1 for _ in self.tools]
        for _ in range(1 + int(rng.expovariate(1 / 24))):
            (tool,) = rng.choices(self.tools, weights)
            for _ in range(1 if rng.random() < 0.7 else rng.randint(2, 4)):
                self.task(tool)
                self.now += rng.expovariate(1 / 6)
        return self.calls

    def task(self, tool: SimulatedTool) -> None:
        rng = self.rng
        thing = self.live.thing(tool, self.now)
        for attempt in range(MOST_RETRIES + 1):
            call = self.call(tool, thing)
            if call.error is None or rng.random() > OFTEN[call.error] * 0.85**attempt:
                return
            wait = self.wait(call)
            if rng.random() < (0.6 if call.error == "precondition" else 0.3):
                thing = self.elsewhere(tool, thing, wait)
            self.now = max(self.now, call.end + wait)

    def elsewhere(self, tool: SimulatedTool, thing: Thing, wait: float) -> Thing:
        """
        One to three calls of other tools before the retry; they may mend a precondition.
        """
        rng = self.rng
        others = [other for other in self.tools if other is not tool]
        for _ in range(rng.randint(1, 3)):
            other = rng.choice(others)
            self.now += rng.random() * min(wait, 5.0) / 3
            call = self.call(other, self.live.thing(other, self.now))
            if call.error is None and other.changes_state and thing.kind == UNMET and rng.random() < REPAIR:
                thing = thing._replace(kind="")
        return thing

    def wait(self, call: Call) -> float:
        rng = self.rng
        if call.header is not None and call.header < 600 and rng.random() < 0.6:
            return call.header + rng.random() * 2
        return rng.uniform(*pick(rng, LONG))

    def call(self, tool: SimulatedTool, thing: Thing) -> Call:
        call = self.live.call(tool, thing, self.now)
        self.now = call.end
        self.calls.append(call)
        return call
