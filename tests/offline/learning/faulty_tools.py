"""
Records of an agent whose tools fail in ways that are known: made by the library itself, on a clock that only moves when told.
"""

import random

from pathlib import Path
from typing import Any

from guardrails import Policy, Retryable, Tool


DAY_S = 86_400
START_S = 1_800_000_000.0 - 1_800_000_000.0 % DAY_S


class Busy(Exception):
    status_code = 429

    def __init__(self) -> None:
        super().__init__("too many requests")
        self.headers = {"retry-after": "20"}


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


TOOLS = [
    Tool(name="search_hotels", read_only=True),
    Tool(name="legacy", read_only=True),
    Tool(name="quota", read_only=True),
]


class World:
    """
    `search_hotels` times out, and works again three seconds later in four of five cases; `legacy` says server error and
    never works again with the same arguments; `quota` is over for the twenty seconds that it names.
    """

    def __init__(self, clock: Clock, rng: random.Random, lasting: float = 0.2) -> None:
        self.clock = clock
        self.rng = rng
        self.chance = lasting
        self.failed_at: dict[Any, float] = {}
        self.lasting: dict[Any, bool] = {}

    def __call__(self, tool: str, arguments: Any) -> Any:
        key = (tool, arguments["q"])
        self.clock.now += 0.2
        if key not in self.failed_at:
            if self.rng.random() < 0.5:
                return {"ok": 1}
            self.failed_at[key] = self.clock.now
            self.lasting[key] = self.rng.random() < self.chance
        since = self.clock.now - self.failed_at[key]
        if tool == "search_hotels" and (since < 3 or self.lasting[key]):
            raise TimeoutError("no answer")
        if tool == "legacy":
            raise Broken
        if tool == "quota" and since < 20:
            raise Busy
        return {"ok": 1}


class Broken(Exception):
    status_code = 500


def play(
    records: Path,
    *,
    days: int = 4,
    sessions: int = 30,
    seed: int = 1,
    first_day: int = 0,
    model: str | None = None,
    lasting: float = 0.2,
) -> None:
    """
    Write the records of *sessions* a day; what failed is tried again after some wait, or given up. Of the timeouts of
    `search_hotels` a share of *lasting* does not pass.
    """
    clock = Clock(START_S)
    # A wait of no length, so that the agent decides when to try again.
    policy = Policy(
        [Retryable(max_retries=6, max_same_error=99, backoff=0.001, max_wait=0.001, model=model)], tools=TOOLS
    )
    rng = random.Random(seed)
    for day in range(first_day, first_day + days):
        for number in range(sessions):
            clock.now = max(clock.now, START_S + day * DAY_S) + rng.random() * 60
            world = World(clock, rng, lasting)
            with policy.session(f"day-{day}-{number}-{seed}", clock=clock, records=records) as session:
                for task in range(8):
                    tool = rng.choice(TOOLS).name
                    for _ in range(4):
                        if session.call(tool, {"q": task}, world).ok or rng.random() < 0.3:
                            break
                        clock.now += rng.choice((0.05, 0.05, 3.5, 8.0, 25.0))
