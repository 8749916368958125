"""
What was really new: the calls of a transcript against the latest identical ones, whatever a policy says of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from guardrails.core.engine.prepare import Prepared
from guardrails.core.outcome import outcome_of
from guardrails.core.repetition.idle import edits
from guardrails.core.repetition.results import HEAD, MAX_EMPTY, Emptiness, emptiness, family_hash, steady_hash
from guardrails.core.state.failing import told
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.offline.readers.base import RecordedCall


SUCCESS: Final = Outcome()
WINDOW: Final = 20
"""Calls back that a repeat is looked for; DESIGN section 6."""
CUT: Final = 4_000
"""Characters from which on a transcript may hold only the beginning of a result."""
BITS: Final = (1 << 63) - 1
"""Of a hash that are compared; a state has no room for more."""

Worth = Literal["new", "second", "later", "unknown"]
"""New: it brought something. Second, later: pointless, by which of its kind it is in the window. Unknown: no result."""


@dataclass(slots=True)
class Past:
    """
    The last calls of one session, denied ones included: signature and evidence.
    """

    sigs: list[int | None] = field(default_factory=list)
    evidence: list[int | None] = field(default_factory=list)
    """None: no result is recorded."""

    def add(self, sig: int | None, evidence: int | None) -> Worth:
        """
        What the call of *sig* that ended in *evidence* was worth; it is then the latest.
        """
        worth: Worth = "new"
        sigs = self.sigs
        if evidence is None:
            worth = "unknown"
        elif sig is not None and sig in sigs:
            same = [e for s, e in zip(sigs, self.evidence, strict=True) if s == sig and e is not None]
            if same and same[-1] == evidence:
                worth = "second" if len(same) == 1 else "later"
        sigs.append(sig)
        self.evidence.append(evidence)
        if len(sigs) > WINDOW:
            del sigs[0], self.evidence[0]
        return worth


def outcome_of_call(call: RecordedCall, tool: Tool) -> Outcome:
    """
    How *call* ended: `SUCCESS`, or a failure. What *tool* declares finds failures in results that were recorded as good.
    """
    if call.is_error or (call.is_error is None and call.error_type is not None):
        return Outcome(None, call.error_type or "other", "", call.http_status, call.retry_after_ms)
    if tool.result is None or call.result is None:
        return SUCCESS
    found = outcome_of(call.result, classifier=tool.result)
    if found.error_type is None:
        return SUCCESS
    return Outcome(None, found.error_type, "", found.http_status, found.retry_after_ms)


def evidence_of(call: RecordedCall, failed: bool) -> int | None:  # noqa: FBT001  hot path
    """
    What tells the result of *call* from another; None where there is none.
    """
    if not call.has_result:
        return None
    if failed:
        known = call.masked_hash
        if known is None:
            known = masked_result_hash(f"{call.error_type or 'other'}: " if call.result is None else call.result)
        # No failure is ever equal to a success.
        return ~(known & BITS)
    known = call.plain_hash
    if known is None:
        if call.result is None:
            return None
        known = result_hash(call.result)
    return known & BITS


def shown_by(
    call: RecordedCall, evidence: int, outcome: Outcome, *, looks: bool
) -> Callable[[ToolCall, bool], Prepared]:
    """
    What guards see of the result of *call* once it is there; not more than its *evidence* unless one *looks* closer.

    Of the call as it was decided, and whether a tool fails meanwhile: then its values count too.
    """
    result, failed = call.result, outcome.error_type is not None

    def shown(decided: ToolCall, failing: bool) -> Prepared:  # noqa: FBT001
        steady = empty = 0
        values = None
        if result is not None:
            if looks:
                steady, empty = _looked_at(result, outcome, decided)
            if failed or failing:
                values = told(decided, result.encode(errors="ignore"), failed=failed)
            if not failed and decided.sketch is not None and len(result) < CUT:
                steady = steady_hash(result.encode("utf-8", "ignore"), decided)
        return Prepared(outcome, None, evidence, None, steady, empty=empty, told=values)

    return shown


def _looked_at(result: str, outcome: Outcome, call: ToolCall) -> tuple[int, int]:
    """
    The steady part of a failure, and whether a success brought anything.
    """
    if outcome.error_type is not None:
        return family_hash(outcome.error_type, result[:HEAD]), 0
    if len(result) > MAX_EMPTY:
        return 0, 0
    if call.sketch is None and result.strip() and not edits(call.tool):
        return 0, brought(result)
    return 0, emptiness(result.encode("utf-8", "ignore"), call)


@lru_cache(maxsize=1024)
def brought(result: str) -> Emptiness:
    """
    `emptiness` of a short success; more than half of them were there before.
    """
    return emptiness(result.encode("utf-8", "ignore"))
