"""
Bound the retries of a tool that does not work: a bucket of tokens, as gRPC has one.
"""

from typing import Annotated, Any, ClassVar, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.state import SessionState
from guardrails.core.values.schema import Ge, Gt, Le
from guardrails.core.values.types import Denial, Outcome, ToolCall

from .base import Codes, Event, Facts, Guard, Verdict, counter, guard


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
        if not _is_untold(facts):
            return mine
        return self._lacking(call.tool, mine, facts, self._lacks(call.tool, mine, facts) + TOKEN)

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts) -> Any:
        lacks = self._lacks(call.tool, mine, facts) if mine and outcome.error_type is None else 0
        return self._lacking(call.tool, mine, facts, lacks - round(self.ratio * TOKEN)) if lacks else mine

    def event(self, event: Event, state: SessionState, mine: Any, facts: Facts) -> Any:
        tool = event.values["tool"]
        return self._lacking(tool, mine, facts, self._lacks(tool, mine, facts) + TOKEN)

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> Envelope:
        claimed = envelope.retryable
        if outcome.error_type is not None and (claimed or (claimed is None and outcome.error_type in TRANSIENT)):
            empty = self._empty(call.tool, mine, facts)
            if empty is not None:
                without_retry(envelope, empty)
        return envelope

    def _lacks(self, tool: str, mine: Any, facts: Facts) -> int:
        """
        Returns what the bucket of *tool* lacks, in units of `TOKEN`.
        """
        lacks = (mine or {}).get(counter(mine, tool), 0) - facts.now_ms * self.min_per_minute
        return 0 if lacks > MOST * TOKEN else min(max(0, lacks), self.burst * TOKEN)

    def _lacking(self, tool: str, mine: Any, facts: Facts, lacks: int) -> Any:
        bounded = min(max(0, lacks), self.burst * TOKEN)
        return {**(mine or {}), counter(mine, tool): facts.now_ms * self.min_per_minute + bounded}

    def _empty(self, tool: str, mine: Any, facts: Facts) -> Denial | None:
        if self._lacks(tool, mine, facts) <= (self.burst - 1) * TOKEN:
            return None
        return Denial(
            code="retry_budget.empty",
            message=f"Too many retries of `{tool}` failed: its retry budget is used up.",
            hint=f"Do not repeat it now. Go on without `{tool}`, use another tool, or tell the user that it does not work.",
            strike=False,
            values={"tool": tool, "burst": self.burst},
        )


def _is_untold(facts: Facts) -> bool:
    """
    Returns whether a call repeats a failure that may pass, though its envelope did not say so.
    """
    failed = facts.failed
    return failed is not None and failed.error_type in TRANSIENT and not failed.advised


def without_retry(envelope: Envelope, said: Denial) -> None:
    """
    Say in *envelope* that the failed call is not to be repeated, for the reason of *said*.
    """
    envelope.unrepeatable()
    envelope.code = said.code
    envelope.hint(f"{said.message} {said.hint}")
    judged = envelope.judged
    if judged is not None and judged.explored:
        envelope.judged = judged._replace(explored=False)
