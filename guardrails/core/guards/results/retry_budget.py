"""
Bound the retries of a tool that all sessions make together.
"""

from typing import Annotated, ClassVar, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.state.state import METERS, SessionState
from guardrails.core.values.bounds import Ge, Gt, Le
from guardrails.core.values.types import Denial, Outcome, ToolCall


TOKEN: Final = 60_000
"""One retry, in the units of the counters: of what one retry a minute gives back, a millisecond."""
MOST: Final = 10_000
"""Tokens of a bucket."""
TOOLS: Final = 32
"""Tools with a bucket of their own; all others share one."""


@guard
class RetryBudget(Guard):
    """
    Say that a failed call is not worth a retry while too many retries of its tool brought nothing.

    Each tool has a token bucket. A failed call that is told to be repeated takes one token, and so does a call that is
    repeated untold. Each success gives back *ratio* of a token, each minute *min_per_minute*. While the bucket is
    empty, failures are not retryable. In a scope the bucket is that of all its sessions, so that their retries cannot
    make an outage worse.
    """

    codes: ClassVar[Codes] = {"retry_budget.empty": ("tool", "burst")}

    burst: Annotated[int, Ge(1), Le(MOST)] = 10
    """Tokens of a full bucket: retries while nothing works."""
    ratio: Annotated[float, Gt(0), Le(1)] = 0.1
    """Of a token, for each success."""
    min_per_minute: Annotated[int, Ge(0)] = 1
    """Tokens a minute, even without a success: a session that calls seldom has few."""
    refuse: bool = False
    """Refuse a retry that nobody advised while the bucket is empty, instead of only advising against it."""

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        return self.empty(call.tool, state, facts.now_ms) if self.refuse and _untold(facts) else None

    def charge(self, call: ToolCall, state: SessionState, facts: Facts) -> dict[str, int]:
        return self.taken(call.tool, state, facts.now_ms) if _untold(facts) else {}

    def settle(self, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts) -> dict[str, int]:
        if outcome.error_type is not None:
            return {}
        owed = self.owed(call.tool, state, facts.now_ms)
        return self._counted(call.tool, state, facts.now_ms, owed - round(self.ratio * TOKEN)) if owed else {}

    def owed(self, tool: str, state: SessionState, now_ms: int) -> int:
        """
        Returns the tokens that lack in the bucket of *tool*, in parts of `TOKEN`; 0 if it is full.
        """
        key = self._key(tool, state)
        # Not by `meter`: what guards share beyond their room is no bucket.
        meter = 0 if key is None else state.meters.get(key, 0)
        lacks = meter - now_ms * self.min_per_minute
        # What was kept under another `min_per_minute` counts by other units: it begins anew.
        return 0 if lacks > MOST * TOKEN else min(max(0, lacks), self.burst * TOKEN)

    def empty(self, tool: str, state: SessionState, now_ms: int) -> Denial | None:
        """
        Returns why a failed call of *tool* is not to be repeated. Returns None if there is a token.
        """
        if self.owed(tool, state, now_ms) <= (self.burst - 1) * TOKEN:
            return None
        return Denial(
            code="retry_budget.empty",
            message=f"Too many retries of `{tool}` failed: its retry budget is used up.",
            hint=f"Do not repeat it now. Go on without `{tool}`, use another tool, or tell the user that it does not work.",
            strike=False,
            values={"tool": tool, "burst": self.burst},
        )

    def taken(self, tool: str, state: SessionState, now_ms: int) -> dict[str, int]:
        """
        Returns new values of its counters once a retry of *tool* takes a token, if there is one.
        """
        return self._counted(tool, state, now_ms, self.owed(tool, state, now_ms) + TOKEN)

    def _counted(self, tool: str, state: SessionState, now_ms: int, owed: int) -> dict[str, int]:
        key = self._key(tool, state)
        bounded = min(max(0, owed), self.burst * TOKEN)
        return {} if key is None else {key: now_ms * self.min_per_minute + bounded}

    def _key(self, tool: str, state: SessionState) -> str | None:
        """
        Returns the counter of *tool*; None: the state has no room for one, and there is no budget.
        """
        own, meters = "retry_budget:", state.meters
        key = own + tool
        if key in meters:
            return key
        if sum(one.startswith(own) for one in meters) >= TOOLS:
            key = own
        return key if key in meters or len(meters) < METERS - 1 else None


def _untold(facts: Facts) -> bool:
    """
    Returns whether the call repeats one that failed for a cause that may pass, and nobody advised that: it took no
    token.
    """
    failed = facts.failed
    return failed is not None and failed.error_type in TRANSIENT and not failed.advised


def without_retry(envelope: Envelope, said: Denial) -> None:
    """
    Let *envelope*, of a failure, say that it is not to be repeated, for the reason that *said* gives.
    """
    envelope.unrepeatable()
    envelope.code = said.code
    envelope.hint(f"{said.message} {said.hint}")
    judged = envelope.judged
    if judged is not None and judged.explored:
        envelope.judged = judged._replace(explored=False)
