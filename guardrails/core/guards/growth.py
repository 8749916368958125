"""
A fuse against a session that grows too fast: calls, model requests, tokens.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.refusals import counted, end
from guardrails.core.values.schema import Gt

from .base import Codes, Denial, Edge, Event, Facts, Guard, SessionState, Tool, ToolCall, Verdict, guard
from .rate import gcra


BLOWN: Final = -1
CAPS: Final = {
    "max_calls_per_second": (1_000, "call"),
    "max_requests_per_second": (1_000, "model request"),
    "max_tokens_per_minute": (60_000, "token"),
}
"""By its setting, each cap: its milliseconds, and what it counts."""
CALLS, REQUESTS, TOKENS = CAPS


@guard
class Growth(Guard):
    """
    End a session, and all of its family, that makes too many calls or requests a second, or uses too many tokens a minute.

    Requests count when they start, failed ones too. It remembers the level of each cap; a blown fuse stays so until `extend`.
    """

    codes: ClassVar[Codes] = {f"growth.{name}": ("limit",) for name in CAPS}
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("request", "charge", "extend")
    ends_by_calls: ClassVar[bool] = False
    tool_settings: ClassVar[tuple[str, ...] | None] = ()

    max_calls_per_second: Annotated[int, Gt(0)] | None = None
    """Tool calls that start in a second."""
    max_requests_per_second: Annotated[int, Gt(0)] | None = None
    """Model requests that start in a second."""
    max_tokens_per_minute: Annotated[int, Gt(0)] | None = None
    """Tokens of model responses."""

    def applies(self, tool: Tool) -> bool:
        return any(getattr(self, name) for name in CAPS)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if mine is None:
            return None
        limit, level, now = self.max_calls_per_second, mine.get(CALLS, 0), facts.now_ms
        if limit is not None and level > (now + 1_000) * limit - 1_000 and gcra(level, now, limit, 1_000)[1]:
            return self._blown(CALLS)
        return self.spent(state, mine, facts) if BLOWN in mine.values() else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        limit, before = self.max_calls_per_second, mine or {}
        return mine if limit is None else before | {CALLS: gcra(before.get(CALLS, 0), facts.now_ms, limit, 1_000)[0]}

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return next((self._blown(name) for name in CAPS if mine.get(name) == BLOWN), None) if mine else None

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        if event.name == "extend":
            asked = event.values.get("asked")
            return {name: level for name, level in (mine or {}).items() if asked or level != BLOWN} or None
        name, amount = (REQUESTS, 1) if event.name == "request" else (TOKENS, event.values["tokens"])
        levels, limit = mine or {}, getattr(self, name)
        level = levels.get(name, 0)
        if limit is None or level == BLOWN:
            return mine
        level, wait = gcra(level, facts.now_ms, limit, CAPS[name][0], amount)
        return {**levels, name: BLOWN if wait else level}

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        if mine and BLOWN in mine.values():
            return None
        caps = [(name, getattr(self, name), period) for name, (period, _) in CAPS.items()]
        return [Edge((name,), (now_ms + period) * cap, now_ms * cap) for name, cap, period in caps if cap]

    def _blown(self, name: str) -> Denial:
        limit = f"{counted(getattr(self, name) or 0, CAPS[name][1])} a {name.rpartition('_')[2]}"
        return end(f"growth.{name}", f"This session grows too fast (limit {limit}).", limit=limit)
