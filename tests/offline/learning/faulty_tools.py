"""
Records of an agent whose tools fail in ways that are known: made by the library itself, on a clock that only moves when told.
"""

import random

from pathlib import Path
from typing import Any, Final

from guardrails import Policy, Retryable, Tool
from tests.conftest import FakeClock


DAY_S: Final = 86_400
START_S: Final = 1_800_000_000.0 - 1_800_000_000.0 % DAY_S
TOOLS: Final = [Tool(name=name, read_only=True) for name in ("search_hotels", "legacy", "quota")]


class Failing(Exception):
    """
    An answer of a server, with the seconds after which to ask again.
    """

    def __init__(self, status_code: int, after: str = "") -> None:
        super().__init__("too many requests" if status_code == 429 else "")
        self.status_code, self.headers = status_code, {"retry-after": after} if after else {}


class World:
    """
    `search_hotels` times out, and works again three seconds later in four of five cases; `legacy` says server error and
    never works again with the same arguments; `quota` is over for the twenty seconds that it names.
    """

    def __init__(self, clock: FakeClock, rng: random.Random) -> None:
        self.clock, self.rng = clock, rng
        self.failed: dict[Any, tuple[float, bool]] = {}
        """When a call failed first, and whether it does so for ever."""

    def __call__(self, tool: str, arguments: Any) -> Any:
        key = (tool, arguments["q"])
        self.clock.advance(0.2)
        if key not in self.failed and self.rng.random() < 0.5:
            return {"ok": 1}
        began, lasting = self.failed.setdefault(key, (self.clock.now, self.rng.random() < 0.2))
        if tool == "search_hotels" and (self.clock.now - began < 3 or lasting):
            raise TimeoutError("no answer")
        if tool == "legacy" or (tool == "quota" and self.clock.now - began < 20):
            raise Failing(500) if tool == "legacy" else Failing(429, after="20")
        return {"ok": 1}


def play(records: Path, days: int = 3, sessions: int = 30) -> None:
    """
    Write the records of *sessions* a day; what failed is tried again after some wait, or given up.
    """
    clock, rng = FakeClock(START_S), random.Random(1)
    # A wait of no length, so that the agent decides when to try again.
    policy = Policy([Retryable(max_retries=6, max_same_error=99, backoff=0.001, max_wait=0.001)], tools=TOOLS)
    for number in range(sessions * days):
        clock.now = max(clock.now, START_S + number // sessions * DAY_S) + rng.random() * 60
        world = World(clock, rng)
        with policy.session(f"s{number}", clock=clock, records=records) as session:
            for task in range(8):
                tool = rng.choice(TOOLS).name
                for _ in range(4):
                    if session.call(tool, {"q": task}, world).ok or rng.random() < 0.3:
                        break
                    clock.advance(rng.choice((0.05, 0.05, 3.5, 8.0, 25.0)))
