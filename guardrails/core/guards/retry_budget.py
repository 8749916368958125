"""
Bound the retries of a tool that does not work: a bucket of tokens, as gRPC has one.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.envelope import Envelope
from guardrails.core.values.errors import TRANSIENT
from guardrails.core.values.schema import Ge, Gt, Le

from .base import Codes, Edge, Event, Facts, Guard, Outcome, SessionState, ToolCall, counter, guard


TOKEN: Final = 60_000
"""Milliseconds in which one token comes back at a rate of one a minute: the unit of what a bucket lacks."""
MOST: Final = 10_000
EMPTY: Final = "Too many retries of `{}` failed: its retry budget is used up."
INSTEAD: Final = "Do not repeat it now. Go on without `{}`, use another tool, or tell the user that it does not work."


@guard
class RetryBudget(Guard):
    """
    Take a token of the tool's bucket for each retry of a failure that may pass; without one, no failure is called retryable.

    The token is taken when the failure is called retryable, or by a retry that nobody advised. A success gives *ratio* of a token back,
    and *min_per_minute* tokens come back by themselves. It remembers, by tool, a time: when the bucket will be full.
    """

    codes: ClassVar[Codes] = {"retry_budget.empty": ()}
    family: ClassVar[bool] = True
    events: ClassVar[tuple[str, ...]] = ("advised",)
    only_failures: ClassVar[bool] = True

    burst: Annotated[int, Ge(1), Le(MOST)] = 10
    """Tokens of a full bucket."""
    ratio: Annotated[float, Gt(0), Le(1)] = 0.1
    """Of a token, for each success."""
    min_per_minute: Annotated[int, Ge(0)] = 1
    """Tokens that come back in a minute whatever happens."""

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Any:
        failed = facts.failed
        unadvised = failed is not None and failed.error_type in TRANSIENT and not failed.retries_left
        return self._taken(call.tool, mine, facts, TOKEN) if unadvised else mine

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
    ) -> None:
        claimed = envelope.retryable or (envelope.retryable is None and outcome.error_type in TRANSIENT)
        if claimed and self._lacks(call.tool, mine, facts) > (self.burst - 1) * TOKEN:
            envelope.unrepeatable()
            envelope.code = "retry_budget.empty"
            envelope.hint(f"{EMPTY} {INSTEAD}".format(call.tool, call.tool))

    def _lacks(self, tool: str, mine: Any, facts: Facts) -> int:
        """
        Returns what the bucket of *tool* lacks, in units of `TOKEN`.
        """
        lacks = (mine or {}).get(counter(mine, tool), 0) - facts.now_ms * self.min_per_minute
        return 0 if lacks > MOST * TOKEN else min(max(0, lacks), self.burst * TOKEN)

    def _taken(self, tool: str, mine: Any, facts: Facts, amount: int) -> Any:
        lacks = min(max(0, self._lacks(tool, mine, facts) + amount), self.burst * TOKEN)
        return {**(mine or {}), counter(mine, tool): facts.now_ms * self.min_per_minute + lacks}
