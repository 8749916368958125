"""
A fuse against a session that grows too fast: calls, model requests, tokens.
"""

from typing import Annotated, Any, ClassVar, Final

from guardrails.core.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Gt
from guardrails.core.values.types import Denial, ToolCall
from guardrails.core.words import FINISH, counted

from .base import Codes, Event, Facts, Guard, Verdict, guard
from .rate import gcra, level_of


BLOWN: Final = -1
CALLS, REQUESTS, TOKENS = range(3)


@guard
class Growth(Guard):
    """
    End a session, and all of its family, that makes too many calls or requests a second, or uses too many tokens a minute.

    Requests count when they start, failed ones too. It remembers a level of each; a blown fuse stays so until `extend`.
    """

    codes: ClassVar[Codes] = {
        f"growth.{cap}": ("limit",)
        for cap in ("max_calls_per_second", "max_requests_per_second", "max_tokens_per_minute")
    }
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
        return any((self.max_calls_per_second, self.max_requests_per_second, self.max_tokens_per_minute))

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if mine is None:
            return None
        limit = self.max_calls_per_second
        if limit is not None and mine[CALLS] - facts.now_ms * limit > (limit - 1) * 1000:
            level = level_of(mine[CALLS], facts.now_ms, limit)
            if gcra(level, facts.now_ms, limit, 1_000)[1]:
                return _blown("max_calls_per_second", f"{counted(limit, 'call')} a second")
        return self.spent(state, mine, facts) if BLOWN in mine else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        limit = self.max_calls_per_second
        if limit is None:
            return mine
        _, requests, tokens = mine or (0, 0, 0)
        now = facts.now_ms * limit
        level = now if mine is None or mine[CALLS] < now else level_of(mine[CALLS], facts.now_ms, limit)
        return [max(level, now) + 1_000, requests, tokens]

    def spent(self, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        if mine is None:
            return None
        if mine[REQUESTS] == BLOWN:
            return _blown(
                "max_requests_per_second", f"{counted(self.max_requests_per_second or 0, 'model request')} a second"
            )
        if mine[TOKENS] == BLOWN:
            return _blown("max_tokens_per_minute", f"{counted(self.max_tokens_per_minute or 0, 'token')} a minute")
        return None

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        calls, requests, tokens = mine or (0, 0, 0)
        match event.name:
            case "request":
                requests = _step(requests, facts.now_ms, self.max_requests_per_second, 1_000, 1)
            case "charge":
                tokens = _step(tokens, facts.now_ms, self.max_tokens_per_minute, 60_000, event.values["tokens"])
            case _ if not event.values.get("asked"):
                requests, tokens = max(0, requests), max(0, tokens)
        made = [calls, requests, tokens]
        return made if any(made) else None


def _step(level: int, now_ms: int, limit: int | None, period_ms: int, amount: int) -> int:
    if limit is None or level == BLOWN:
        return level
    arrival, wait = gcra(level_of(level, now_ms, limit), now_ms, limit, period_ms, amount)
    return BLOWN if wait else arrival


def _blown(name: str, limit: str) -> Denial:
    return Denial(
        code=f"growth.{name}",
        status="limit_reached",
        message=f"This session grows too fast (limit {limit}). Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
        values={"limit": limit},
    )
