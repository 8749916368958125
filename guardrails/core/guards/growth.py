"""
A fuse against a session that grows too fast: calls, model requests, tokens.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.refusals import FINISH, counted
from guardrails.core.values.schema import Gt

from .base import Codes, Denial, Edge, Event, Facts, Guard, SessionState, Tool, ToolCall, Verdict, guard
from .rate import gcra


BLOWN: Final = -1
CALLS, REQUESTS, TOKENS = "calls", "requests", "tokens"
CAPS: Final = {
    CALLS: ("max_calls_per_second", 1_000, "call"),
    REQUESTS: ("max_requests_per_second", 1_000, "model request"),
    TOKENS: ("max_tokens_per_minute", 60_000, "token"),
}
"""By the name of its level, each cap: its setting, its milliseconds, and what it counts."""


@guard
class Growth(Guard):
    """
    End a session, and all of its family, that makes too many calls or requests a second, or uses too many tokens a minute.

    Requests count when they start, failed ones too. It remembers a level of each; a blown fuse stays so until `extend`.
    """

    codes: ClassVar[Codes] = {f"growth.{name}": ("limit",) for name, *_ in CAPS.values()}
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
        return any(getattr(self, name) for name, *_ in CAPS.values())

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if mine is None:
            return None
        limit, level, now = self.max_calls_per_second, mine.get(CALLS, 0), facts.now_ms
        if limit is not None and level > now * limit and gcra(level, now, limit, 1_000)[1]:
            return self._blown(CALLS)
        return self.spent(state, mine, facts) if BLOWN in mine.values() else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        limit, before = self.max_calls_per_second, mine or {}
        return mine if limit is None else before | {CALLS: gcra(before.get(CALLS, 0), facts.now_ms, limit, 1_000)[0]}

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        return next((self._blown(place) for place in CAPS if mine.get(place) == BLOWN), None) if mine else None

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        if event.name == "extend":
            asked = event.values.get("asked")
            return {place: level for place, level in (mine or {}).items() if asked or level != BLOWN} or None
        place, amount = (REQUESTS, 1) if event.name == "request" else (TOKENS, event.values["tokens"])
        (name, period_ms, _), levels = CAPS[place], mine or {}
        level, limit = levels.get(place, 0), getattr(self, name)
        if limit is None or level == BLOWN:
            return mine
        level, wait = gcra(level, facts.now_ms, limit, period_ms, amount)
        return {**levels, place: BLOWN if wait else level}

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        if mine and BLOWN in mine.values():
            return None
        caps = [(place, getattr(self, name), period) for place, (name, period, _) in CAPS.items()]
        return [Edge((place,), (now_ms + period) * cap, now_ms * cap) for place, cap, period in caps if cap]

    def _blown(self, place: str) -> Denial:
        name, _, what = CAPS[place]
        limit = f"{counted(getattr(self, name) or 0, what)} a {name.rpartition('_')[2]}"
        message = f"This session grows too fast (limit {limit}). Stopping tool loop."
        return Denial(f"growth.{name}", message, FINISH, "limit_reached", ends_session=True, values={"limit": limit})
