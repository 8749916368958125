"""
Who makes a failed call again: the model, the library (`retryable: {auto: true}`), tenacity or stamina. The same faults, one run.
"Told" is stamina with a hook that says which errors pass, and how long the server asks to wait.

    python -m benchmarks.auto_retries           # the table of docs/guards/retryable.md

Each step of an agent is one call. Whether it fails follows from the world, its time and a number drawn for the step, so that all meet
the same faults. A clock of the simulation's own waits. A turn of the model takes `TURN_S` and is counted; the model does as its envelope
says, at its next turn. tenacity and stamina are around the tool as their first pages show, with as many attempts as the guard advises.
"""

import argparse
import random
import time

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

import stamina

from tenacity import retry, stop_after_attempt, wait_exponential_jitter

from guardrails import Policy, Retryable, Tool


STEPS: Final = 2_000
TURN_S: Final = 5.0
"""A turn of a model that only repeats a call."""
PAUSE_S: Final = 20.0
"""Between two steps, on average."""
ATTEMPTS: Final = 4
RETRY_COST, WAIT_COST_PER_S = 0.1, 0.002
"""As `retryable` weighs them: of one more try, and of a second, where a success is worth 1."""


class Unavailable(Exception):  # noqa: N818
    status_code = 503


class Busy(Exception):  # noqa: N818
    status_code = 429

    def __init__(self, seconds: float) -> None:
        super().__init__("too many requests")
        self.headers = {"retry-after": str(round(seconds + 0.5))}


@dataclass
class Clock:
    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class World:
    """
    What goes wrong in it; *fault* is told the time, the attempts so far and what to draw from.
    """

    name: str
    fault: "Callable[[World, float, int, random.Random], Exception | None]"
    tool: Tool = field(default_factory=lambda: Tool(name="look", read_only=True))
    free_at: float = 0.0
    acts: bool = False


def _flaky(_: World, now: float, tries: int, drawn: random.Random) -> Exception | None:
    return ConnectionResetError("reset") if drawn.random() < 0.15 else None


def _limited(world: World, now: float, tries: int, drawn: random.Random) -> Exception | None:
    if now < world.free_at:
        return Busy(world.free_at - now)
    if drawn.random() < 0.15:
        world.free_at = now + drawn.choice((2.0, 8.0, 15.0, 45.0))
        return Busy(world.free_at - now)
    return None


def _down(_: World, now: float, tries: int, drawn: random.Random) -> Exception | None:
    # Half a minute of every five.
    return Unavailable("down") if now % 300 < 30 else None


def _wrong(_: World, now: float, tries: int, drawn: random.Random) -> Exception | None:
    return ValueError("no such city") if drawn.random() < 0.3 or tries else None


def _acting(_: World, now: float, tries: int, drawn: random.Random) -> Exception | None:
    return TimeoutError("no answer within 5 s") if drawn.random() < 0.15 else None


def worlds() -> list[World]:
    """
    The worlds, anew.
    """
    book = Tool(name="book", idempotent=False)
    return [
        World("flaky reads", _flaky),
        World("rate limits", _limited),
        World("outages", _down),
        World("wrong arguments", _wrong),
        World("bookings", _acting, book, acts=True),
    ]


@dataclass
class Told:
    """
    What came of it.
    """

    worked: int = 0
    turns: int = 0
    calls: int = 0
    early: int = 0
    """Calls before the time that the server had named."""
    twice: int = 0
    """Steps that acted more than once."""
    waited_s: float = 0.0

    @property
    def value(self) -> float:
        """
        Of a step.
        """
        return (self.worked - RETRY_COST * (self.calls - STEPS) - WAIT_COST_PER_S * self.waited_s) / STEPS


Around = Callable[[Callable[[], Any]], Callable[[], Any]]


def ran(world: World, who: str, steps: int = STEPS) -> Told:
    """
    *steps* in *world*, where failed calls are made again by *who*: model, auto, tenacity, stamina, or stamina that is told which.
    """
    told, clock = Told(), Clock()
    policy = Policy([Retryable(auto=who == "auto")], tools=[world.tool])
    paces = random.Random(5)
    around = _around(who, clock)
    # It logs each retry.
    stamina.instrumentation.set_on_retry_hooks([])
    with patch.object(time, "sleep", clock.sleep), patch.object(time, "monotonic", clock):
        for step in range(steps):
            clock.sleep(paces.expovariate(1 / PAUSE_S))
            session = policy.session(f"s{step}", clock=clock, sleep=clock.sleep)
            _step(world, session, told, around, (step, clock), obeys=who in ("model", "auto"))
    return told


def _step(world: World, session: Any, told: Told, around: Around, at: tuple[int, Clock], *, obeys: bool) -> None:
    step, clock = at
    drawn, tries, acted, named = random.Random(step), 0, 0, 0.0

    def once() -> str:
        nonlocal tries, acted, named
        told.calls += 1
        told.early += clock.now < named
        error = world.fault(world, clock.now, tries, drawn)
        tries += 1
        acted += world.acts
        if isinstance(error, Busy):
            named = clock.now + float(error.headers["retry-after"])
        if error is not None:
            raise error
        return "done"

    call, start = around(once), clock.now
    while True:
        told.turns += 1
        envelope = session.call(world.tool.name, {"step": step}, lambda *_: call())
        if envelope.ok or not obeys or not envelope.retryable:
            break
        clock.sleep(max(TURN_S, (envelope.retry_after_ms or 0) / 1000))
    told.worked += bool(envelope.ok)
    told.waited_s += clock.now - start
    told.twice += acted > 1


def _passes(error: Exception) -> bool | float:
    """
    Whether *error* may pass; the seconds that its server asks for.
    """
    if isinstance(error, Busy):
        return float(error.headers["retry-after"])
    return isinstance(error, (ConnectionError, TimeoutError, Unavailable))


def _around(who: str, clock: Clock) -> Around:
    if who == "tenacity":
        wait = wait_exponential_jitter(initial=1, max=60)
        return retry(stop=stop_after_attempt(ATTEMPTS), wait=wait, sleep=clock.sleep, reraise=True)
    if who == "stamina, told":
        hooked: Around = stamina.retry(on=_passes, attempts=ATTEMPTS, timeout=None)
        return hooked
    if who == "stamina":
        around: Around = stamina.retry(on=Exception, attempts=ATTEMPTS)
        return around
    return lambda function: function


def main() -> None:
    """
    Print the table.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    steps = parser.parse_args().steps
    print("| world | made again by | steps that work | turns | calls | too early | done twice | seconds | value |")
    print("|---|---|---|---|---|---|---|---|---|")
    for at, world in enumerate(worlds()):
        for who in ("model", "auto", "tenacity", "stamina", "stamina, told"):
            # No row follows from those before it.
            random.seed(7)
            told = ran(worlds()[at], who, steps)
            print(
                f"| {world.name} | {who} | {told.worked / steps:.1%} | {told.turns / steps:.2f} | {told.calls / steps:.2f} "
                f"| {told.early} | {told.twice} | {told.waited_s / steps:.1f} | {told.value:.3f} |"
            )


if __name__ == "__main__":
    main()
