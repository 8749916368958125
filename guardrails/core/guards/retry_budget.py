"""
Bound the retries of a tool that does not work: a bucket of tokens, as gRPC has one.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.state import SessionState
from guardrails.core.values.errors import TRANSIENT
from guardrails.core.values.schema import Ge, Gt, Le
from guardrails.core.values.types import Denial, Outcome, ToolCall

from .base import Codes, Edge, Event, Facts, Guard, Verdict, counter, guard


TOKEN: Final = 60_000
"""Milliseconds in which one token comes back at a rate of one a minute: the unit of what a bucket lacks."""
MOST: Final = 10_000


@guard
class RetryBudget(Guard):
    """
    Take a token of the tool's bucket for each retry of a failure that may pass; without one, no failure is called retryable.

    The token is taken when the failure is called retryable, or by a retry that nobody advised. A success gives *ratio* of a token back, and *min_per_minute* tokens come back by themselves. It remembers, by tool, a time: when
    the bucket will be full.
    """

    codes: ClassVar[Codes] = {"retry_budget.empty": ("tool", "burst")}
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("advised",)
    only_failures: ClassVar[bool] = True
    scope_settings: ClassVar[tuple[str, ...] | None] = ("mode", "burst", "ratio", "min_per_minute", "refuse")

    burst: Annotated[int, Ge(1), Le(MOST)] = 10
    """Tokens of a full bucket."""
    ratio: Annotated[float, Gt(0), Le(1)] = 0.1
    """Of a token, for each success."""
    min_per_minute: Annotated[int, Ge(0)] = 1
    """Tokens that come back in a minute whatever happens."""
    refuse: bool = False
    """Refuse a retry that nobody advised, too."""

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        return self._empty(call.tool, mine, facts) if self.refuse and _is_untold(facts) else None

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._taken(call.tool, mine, facts, TOKEN) if _is_untold(facts) else mine

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        if outcome.error_type is not None or not self._lacks(call.tool, mine, facts):
            return mine
        return self._taken(call.tool, mine, facts, -round(self.ratio * TOKEN))

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        return self._taken(event.values["tool"], mine, facts, TOKEN)

    def edges(self, state: SessionState, mine: Any, now_ms: int) -> Sequence[Edge] | None:
        full = now_ms * self.min_per_minute
        return [Edge((tool,), full + (self.burst - 1) * TOKEN, floor=full) for tool in mine or ()]

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> Envelope:
        claimed = envelope.retryable
        empty = self._empty(call.tool, mine, facts) if claimed or outcome.error_type in TRANSIENT else None
        if claimed is False or empty is None:
            return envelope
        envelope.unrepeatable()
        envelope.code = empty.code
        envelope.hint(f"{empty.message} {empty.hint}")
        if envelope.judged is not None:
            envelope.judged = envelope.judged._replace(explored=False)
        return envelope

    def _lacks(self, tool: str, mine: Any, facts: Facts) -> int:
        """
        Returns what the bucket of *tool* lacks, in units of `TOKEN`.
        """
        lacks = (mine or {}).get(counter(mine, tool), 0) - facts.now_ms * self.min_per_minute
        return 0 if lacks > MOST * TOKEN else min(max(0, lacks), self.burst * TOKEN)

    def _taken(self, tool: str, mine: Any, facts: Facts, amount: int) -> Any:
        lacks = min(max(0, self._lacks(tool, mine, facts) + amount), self.burst * TOKEN)
        return {**(mine or {}), counter(mine, tool): facts.now_ms * self.min_per_minute + lacks}

    def _empty(self, tool: str, mine: Any, facts: Facts) -> Denial | None:
        if self._lacks(tool, mine, facts) <= (self.burst - 1) * TOKEN:
            return None
        message = f"Too many retries of `{tool}` failed: its retry budget is used up."
        hint = (
            f"Do not repeat it now. Go on without `{tool}`, use another tool, or tell the user that it does not work."
        )
        return Denial("retry_budget.empty", message, hint, strike=False, values={"tool": tool, "burst": self.burst})


def _is_untold(facts: Facts) -> bool:
    """
    Returns whether a call repeats a failure that may pass, though its envelope did not say so.
    """
    failed = facts.failed
    return failed is not None and failed.error_type in TRANSIENT and not failed.advised
