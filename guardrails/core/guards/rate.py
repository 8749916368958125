"""
Limit how many calls may start in a period.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.values.schema import Gt

from .base import Codes, Denial, Edge, Facts, Guard, SessionState, Tool, ToolCall, Verdict, counter, guard


DAY_MS: Final = 86_400_000
PERIODS: Final = {"second": 1_000, "minute": 60_000}
CAPS: Final = ("max_calls_per_second", "max_calls_per_minute")


def caps_of(guard: Guard, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """
    Returns (limit, milliseconds) of those of the caps *names* that *guard* sets, by its setting.
    """
    given = ((name, getattr(guard, name)) for name in names)
    return {name: (cap, PERIODS[name.rpartition("_")[2]]) for name, cap in given if cap is not None}


def edges_of(caps: Mapping[str, tuple[int, int]], now_ms: int) -> list[Edge]:
    """
    Returns how full the buckets of *caps* may be.
    """
    return [Edge((name,), (now_ms + period_ms) * cap, now_ms * cap) for name, (cap, period_ms) in caps.items()]


def gcra(level: int, now_ms: int, limit: int, period_ms: int, amount: int = 1) -> tuple[int, int]:
    """
    Returns (new level, milliseconds to wait) of a bucket that lets *limit* through in *period_ms*, and *amount* now.

    The level is a time, in units of 1 / *limit* ms: when the bucket will be empty. One that is days ahead was kept under another limit.
    """
    now = now_ms * limit
    arrival = (level if now < level < now + DAY_MS * limit else now) + amount * period_ms
    late = arrival - now - limit * period_ms
    return arrival, 0 if late <= 0 else -(-late // limit)


@guard
class Rate(Guard):
    """
    Deny a call that starts too soon, and say how long to wait.
    """

    codes: ClassVar[Codes] = {f"rate.{cap}": ("limit", "wait_ms") for cap in CAPS}
    family: ClassVar[bool] = True

    max_calls_per_second: Annotated[int, Gt(0)] | None = None
    """Calls that may start in a second."""
    max_calls_per_minute: Annotated[int, Gt(0)] | None = None
    """Calls that may start in a minute."""
    per_tool: bool = False
    """Each tool is counted by itself, as by a `tools:` rule."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bound", caps_of(self, CAPS))

    @property
    def key(self) -> str:
        return "tools.rate" if self.per_tool else "rate"

    def applies(self, tool: Tool) -> bool:
        return bool(self._bound)

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        return (*(() if own is None else (own,)), cls(**{**settings, "per_tool": True}))

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        wait, name, *_ = max(self._levels(call, mine, facts))
        if wait == 0:
            return None
        limit = getattr(self, name)
        message = f"Too many calls of `{call.tool}`: the limit is {limit} a {name.rpartition('_')[2]}."
        hint, values = f"Wait {wait / 1000:g} s, then make the call again.", {"limit": limit, "wait_ms": wait}
        return Denial(f"rate.{name}", message, hint, retryable=True, retry_after_ms=wait, strike=False, values=values)

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return {**(mine or {}), **{place: level for _, _, place, level in self._levels(call, mine, facts)}}

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        return None if self.per_tool else edges_of(self._bound, now_ms)

    def _levels(self, call: ToolCall, mine: Any, facts: Facts) -> Iterator[tuple[int, str, str, int]]:
        """
        Returns (milliseconds to wait, setting, place of its level, level with this call) of each cap.
        """
        levels = mine or {}
        for name, (limit, period_ms) in self._bound.items():
            place = counter(levels, call.tool, f"{name}:") if self.per_tool else name
            level, wait = gcra(levels.get(place, 0), facts.now_ms, limit, period_ms)
            yield wait, name, place, level
