"""
Space out the calls of a session or a tool.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Gt
from guardrails.core.values.types import Denial, ToolCall


DAY_MS: Final = 86_400_000
"""A counter that is farther ahead was kept under another limit, by whose units it counts: it begins anew."""
PERIODS: Final = {"max_calls_per_second": 1_000, "max_calls_per_minute": 60_000}


def gcra(meter: int, now_ms: int, limit: int, period_ms: int, amount: int = 1) -> tuple[int, int]:
    """
    Returns one step of the generic cell rate algorithm (ITU-T I.371): bursts up to *limit*, then *limit* in
    *period_ms*.

    *meter* is the theoretical arrival time in units of 1/limit milliseconds, so that all of it is exact integers.
    Returns the meter after *amount* more and the wait in milliseconds before they conform (0: now).
    """
    now = now_ms * limit
    arrival = max(meter, now) + amount * period_ms
    late = arrival - now - limit * period_ms
    return arrival, 0 if late <= 0 else -(-late // limit)


def counter(state: SessionState, key: str, now_ms: int, limit: int) -> int:
    """
    Returns the counter *key* of *state* for `gcra` under *limit*; 0 if it was kept under another one.

    The one that many names share counts in the units of all of them: it stays what it is, stricter and never looser.
    """
    own = state.meters.get(key)
    return state.meter(key) if own is None else own if own < (now_ms + DAY_MS) * limit else 0


@guard
class Rate(Guard):
    """
    Refuse a call that comes too soon, with the time to wait; for one tool in a `tools:` rule, else for the session.

    A burst up to the limit is let through, then calls at the even rate.
    """

    codes: ClassVar[Codes] = {
        f"{prefix}.{cap}": ("limit", "wait_ms")
        for prefix in ("rate", "tools.rate")
        for cap in ("max_calls_per_second", "max_calls_per_minute")
    }
    unwritten: ClassVar[tuple[str, ...]] = ("per_tool",)

    max_calls_per_second: Annotated[int, Gt(0)] | None = None
    max_calls_per_minute: Annotated[int, Gt(0)] | None = None
    per_tool: bool = False
    """Count each tool by itself; what a `tools:` rule sets."""

    def applies(self, tool: Tool) -> bool:
        return self.max_calls_per_second is not None or self.max_calls_per_minute is not None

    @classmethod
    def ruled(cls, own: Guard | None, settings: Mapping[str, Any]) -> tuple[Guard, ...]:
        return (*(() if own is None else (own,)), cls(**{**settings, "per_tool": True}))

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        wait, name, limit = 0, "", 0
        for setting, cap in self._caps():
            _, needed = gcra(self._counter(setting, call, state, facts, cap), facts.now_ms, cap, PERIODS[setting])
            if needed > wait:
                wait, name, limit = needed, setting, cap
        if wait == 0:
            return None
        prefix = "tools.rate" if self.per_tool else "rate"
        return Denial(
            code=f"{prefix}.{name}",
            message=f"Too many calls of `{call.tool}`: the limit is {limit} a {name.rpartition('_')[2]}.",
            hint=f"Wait {wait / 1000:g} s, then make the call again.",
            retryable=True,
            retry_after_ms=wait,
            strike=False,
            values={"limit": limit, "wait_ms": wait},
        )

    def charge(self, call: ToolCall, state: SessionState, facts: Facts) -> dict[str, int]:
        return {
            self._key(setting, call): gcra(
                self._counter(setting, call, state, facts, cap), facts.now_ms, cap, PERIODS[setting]
            )[0]
            for setting, cap in self._caps()
        }

    def _caps(self) -> list[tuple[str, int]]:
        caps = (
            ("max_calls_per_second", self.max_calls_per_second),
            ("max_calls_per_minute", self.max_calls_per_minute),
        )
        return [(name, cap) for name, cap in caps if cap is not None]

    def _counter(self, setting: str, call: ToolCall, state: SessionState, facts: Facts, cap: int) -> int:
        return counter(state, self._key(setting, call), facts.now_ms, cap)

    def _key(self, setting: str, call: ToolCall) -> str:
        return f"{setting}:{call.tool}" if self.per_tool else setting
