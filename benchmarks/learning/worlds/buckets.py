"""
A world of quotas: token buckets of a session's own, and windows by the clock that all tenants share.

Nothing is ever down. A bucket gives a call a token and gets tokens back at a steady rate; some are strict, and count calls that
were refused too. A window of the clock is used up by other tenants at some moment of it, and is whole again at its
end: a wait is right or wrong by what the clock says, not by how long it is. Some answers name a Retry-After, and some of those
name a wait of the client's library instead of the true one. What is near its quota is served from a poorer tier.
"""

import functools
import random

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from .base import Mix, Odds, SimulatedTool, Thing, World, dice


POORER: Final = 0.5
"""Of a window that is this far from its end of quota on, answers come from the poorer tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTool(SimulatedTool):
    """
    Either a bucket (*capacity* tokens, one back in *refill* s) or a window of *window* s by the clock.
    """

    capacity: float = 0.0
    refill: float = 0.0
    strict: bool = False
    """A refused call takes a token as well, down to none."""
    window: float = 0.0
    busy: float = 0.0
    """How many windows are used up before their end."""
    header: float = 1.0
    """How many answers name a Retry-After; by the signature, so that a task's are alike."""
    lies: float | None = None
    """What they name instead of the true wait."""
    error: str = "rate_limit"
    poor: Mix = ()


class Bucket(NamedTuple):
    """
    Tokens at a time.
    """

    tokens: float
    at: float


class Buckets(World):
    """
    See the module's text.
    """

    name = "buckets"
    tools: ClassVar = (
        QuotaTool(name="geocode", capacity=3, refill=8),
        QuotaTool(name="translate", capacity=4, refill=20, header=0.4),
        QuotaTool(name="embed", capacity=2, refill=45, header=0.0, strict=True),
        QuotaTool(name="post_message", changes_state=True, capacity=2, refill=30, header=0.8, lies=5, flaws=(("no_op", 0.02),)),
        QuotaTool(name="list_issues", window=60, busy=0.35, header=0.5, flaws=(("partial", 0.02),), poor=(("partial", 0.2),)),
        QuotaTool(name="search_code", window=60, busy=0.25, header=0.0, error="permission", poor=(("empty", 0.1),)),
        QuotaTool(name="market_data", window=300, busy=0.3, header=0.3, poor=(("stale", 0.4),)),
        QuotaTool(name="crawl", window=3_600, busy=0.25, header=0.6, lies=60, poor=(("error_page", 0.15),), flaky=0.06),
        QuotaTool(name="update_ticket", changes_state=True, window=10, busy=0.4, header=0.0, error="unavailable", unmet=0.05),
    )  # fmt: skip

    def odds(self, tool: QuotaTool, thing: Thing, at: float, memory: Bucket | None) -> Odds:
        if tool.capacity:
            left = self.tokens(tool, at, memory)
            limited, wait = left < 1, (1 - left) * tool.refill
            poor = left < 2
        else:
            wait = tool.window - at % tool.window
            gone = spent(self.seed, tool.name, tool.window, tool.busy, int(at // tool.window))
            limited = at % tool.window >= gone
            poor = at % tool.window >= gone * POORER and gone < tool.window
        named = thing.hidden[0] < tool.header
        return Odds(
            ((tool.error, 1.0),) if limited else (),
            (wait if tool.lies is None else tool.lies) if named else None,
            flaws=tool.poor if poor else (),
        )

    def tokens(self, tool: QuotaTool, at: float, memory: Bucket | None) -> float:
        """
        How many tokens are there at *at*.
        """
        if memory is None:
            return tool.capacity
        return min(tool.capacity, memory.tokens + max(0.0, at - memory.at) / tool.refill)

    def learned(
        self, tool: QuotaTool, thing: Thing, at: float, memory: Bucket | None, error: str | None
    ) -> Bucket | None:
        if not tool.capacity:
            return None
        left = self.tokens(tool, at, memory)
        taken = 1.0 if error != tool.error or tool.strict else 0.0
        return Bucket(max(0.0, left - taken), at)

    def hidden(self, tool: QuotaTool, at: float, rng: random.Random) -> tuple[float, ...]:
        return (rng.random(),)


@functools.lru_cache(maxsize=1 << 17)
def spent(seed: int, name: str, window: float, busy: float, number: int) -> float:
    """
    How many seconds into window *number* its quota is used up; *window* if it lasts.
    """
    rng = dice(seed, name, number)
    return window * (0.1 + 0.8 * rng.random()) if rng.random() < busy else window
