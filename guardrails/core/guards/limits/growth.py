"""
Stop a session that runs away.
"""

from typing import Annotated, ClassVar

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import Gt
from guardrails.core.values.types import Denial, ToolCall

from .budget_words import FINISH, counted
from .rate import counter, gcra
from .unpriced import BLOWN


@guard
class Growth(Guard):
    """
    End the session when calls, model requests or tokens come faster than honest work ever does.

    It is made for this incident: 436 model requests at zero-second intervals, 224 a second, 436 million tokens in a
    minute. Unlike `rate`, which asks for patience, these caps are a fuse: generous, and final until someone extends the
    session.
    """

    codes: ClassVar[Codes] = {
        f"growth.{cap}": ("limit",)
        for cap in ("max_calls_per_second", "max_requests_per_second", "max_tokens_per_minute")
    }
    tool_settings: ClassVar[tuple[str, ...] | None] = ()

    max_calls_per_second: Annotated[int, Gt(0)] | None = None
    max_requests_per_second: Annotated[int, Gt(0)] | None = None
    """Model requests, failed ones included where the host says when one starts."""
    max_tokens_per_minute: Annotated[int, Gt(0)] | None = None

    def applies(self, tool: Tool) -> bool:
        return any((self.max_calls_per_second, self.max_requests_per_second, self.max_tokens_per_minute))

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        limit = self.max_calls_per_second
        # Whether `gcra` asks for a wait, written out: this is on every call's way.
        if limit is not None and state.meter("growth.calls") - facts.now_ms * limit > (limit - 1) * 1_000:
            kept = counter(state, "growth.calls", facts.now_ms, limit)
            if gcra(kept, facts.now_ms, limit, 1_000)[1]:
                return _blown("max_calls_per_second", f"{counted(limit, 'call')} a second")
        return self.blown(state, facts.now_ms) if BLOWN in state.meters.values() else None

    def blown(self, state: SessionState, now_ms: int) -> Denial | None:
        if state.meter("growth.requests") == BLOWN:
            return _blown(
                "max_requests_per_second", f"{counted(self.max_requests_per_second or 0, 'model request')} a second"
            )
        if state.meter("growth.tokens") == BLOWN:
            return _blown("max_tokens_per_minute", f"{counted(self.max_tokens_per_minute or 0, 'token')} a minute")
        return None

    def charge(self, call: ToolCall, state: SessionState, facts: Facts) -> dict[str, int]:
        limit = self.max_calls_per_second
        if limit is None:
            return {}
        kept = counter(state, "growth.calls", facts.now_ms, limit)
        return {"growth.calls": max(kept, facts.now_ms * limit) + 1_000}

    def request(self, state: SessionState, now_ms: int) -> dict[str, int]:
        return _step(state, "growth.requests", now_ms, self.max_requests_per_second, 1_000, 1)

    def usage(self, state: SessionState, tokens: int, now_ms: int) -> dict[str, int]:
        return _step(state, "growth.tokens", now_ms, self.max_tokens_per_minute, 60_000, tokens)


def _step(state: SessionState, key: str, now_ms: int, limit: int | None, period_ms: int, amount: int) -> dict[str, int]:
    if limit is None:
        return {}
    # An extended session starts afresh: the fuse is replaced.
    meter = max(counter(state, key, now_ms, limit), 0)
    arrival, wait = gcra(meter, now_ms, limit, period_ms, amount)
    return {key: BLOWN if wait else arrival}


def _blown(name: str, limit: str) -> Denial:
    return Denial(
        code=f"growth.{name}",
        status="limit_reached",
        message=f"This session grows too fast (limit {limit}). Stopping tool loop.",
        hint=FINISH,
        ends_session=True,
        values={"limit": limit},
    )
