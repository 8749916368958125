"""
Finds which calls of a transcript were really new, against the latest identical ones and under any policy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from guardrails.core.chain import Plan
from guardrails.core.guards.similarity import news_hash
from guardrails.core.prepare import CLOSE, Prepared, says
from guardrails.core.result import Reading, reading_of
from guardrails.core.result.failures import may_fail
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.tools.tool import Tool, source_of
from guardrails.core.values.types import Outcome, ToolCall
from guardrails.offline.transcripts.calls import RecordedCall


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
    The last calls of one session and the latest one, denied ones included: signature and evidence.
    """

    sigs: list[int | None] = field(default_factory=list)
    evidence: list[int | None] = field(default_factory=list)
    """None: no result is recorded."""
    said: list[tuple[str, ToolCall | None] | int] = field(default_factory=list)
    """Their results as text and whose they are, or what in it is steady; 0: the text is not known, or not all of it."""

    def add(
        self, sig: int | None, evidence: int | None, said: str | None = None, call: ToolCall | None = None
    ) -> Worth:
        """
        Returns the worth of the *call* of *sig* that ended in *evidence* and *said* this. It is then the latest.
        """
        worth: Worth = "new"
        sigs = self.sigs
        if len(sigs) > WINDOW:
            del sigs[0], self.evidence[0], self.said[0]
        if evidence is None:
            worth = "unknown"
        elif sig is not None and sig in sigs:
            same = [e for s, e in zip(sigs, self.evidence, strict=True) if s == sig and e is not None]
            if same and same[-1] == evidence:
                worth = "second" if len(same) == 1 else "later"
        sigs.append(sig)
        self.evidence.append(evidence)
        self.said.append((said, call) if said is not None and len(said) < CUT else 0)
        return worth

    @property
    def worked(self) -> bool:
        """
        Whether the latest call is recorded as a success.
        """
        ended = self.evidence[-1]
        return ended is not None and ended >= 0

    def twin(self) -> int | None:
        """
        Returns the place of the latest identical call before the latest call; None: it is not known to have one with a
        result.
        """
        sig = self.sigs[-1]
        places = range(len(self.sigs) - 2, -1, -1)
        found = (at for at in places if self.sigs[at] == sig and self.evidence[at] is not None)
        return None if sig is None else next(found, None)

    def alike(self, at: int) -> bool:
        """
        Returns whether the call at this place and the latest one brought the same but for what is volatile.
        """
        one, latest = self.evidence[at], self.evidence[-1]
        if one is None or latest is None or one == latest:
            return one is not None and one == latest
        # No failure is like a success.
        return (one < 0) == (latest < 0) and self._steady(at) == self._steady(-1) != 0

    def _steady(self, at: int) -> int:
        said = self.said[at]
        if isinstance(said, tuple):
            text, call = said
            said = self.said[at] = news_hash(Reading(text, arguments=None if call is None else call.arguments))
        return said


def outcome_of_call(call: RecordedCall, tool: Tool) -> Outcome:
    """
    Returns how *call* ended: `SUCCESS`, or a failure. A result that was recorded as good may also be a failure, as in a
    session. It is judged by the declaration of *tool*, else by its common signs.
    """
    if call.is_error or (call.is_error is None and call.error_type is not None):
        return Outcome(None, call.error_type or "other", "", call.http_status, call.retry_after_ms)
    if call.result is None or (tool.result is None and not may_fail(call.result)):
        return SUCCESS
    found = reading_of(call.result, source_of(tool), arguments=call.arguments)
    if found.error_type is None:
        return SUCCESS
    return Outcome(None, found.error_type, "", found.http_status, found.retry_after_ms)


def evidence_of(call: RecordedCall, failed: bool) -> int | None:
    """
    Returns a mark that tells the result of *call* from others. Returns None if it has no result.
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
) -> Callable[[ToolCall, Plan], Prepared]:
    """
    Returns the result of *call* as guards see it once it is there. They see no more than its *evidence* unless one
    *looks* closer.

    It is made for the call as it was decided, and the plan of its tool.
    """
    result, failed = call.result, outcome.error_type is not None

    def shown(decided: ToolCall, plan: Plan) -> Prepared:
        steady, empty = call.steady, call.empty
        if result is not None and not steady:
            read = Reading(result, arguments=decided.arguments)
            if looks and failed:
                read.value, read.error_type, read.error_message = None, outcome.error_type, result
                steady = news_hash(read)
            elif looks and len(result) <= CLOSE:
                empty = says(read, look=not plan.changes)
            if not failed and not plan.changes and len(result) < CUT:
                steady = news_hash(read)
        return Prepared(outcome, None, evidence, None, steady, empty=empty)

    return shown
