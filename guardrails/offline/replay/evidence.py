"""
Finds which calls of a transcript were really new, against the latest identical ones and under any policy.
"""

from collections import defaultdict
from typing import Final, Literal

from guardrails.core.chain import Plan
from guardrails.core.prepare import CLOSE, news_hash, says
from guardrails.core.result import Reading, reading_of
from guardrails.core.result.failures import may_fail
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.tool import Tool, source_of
from guardrails.core.values.types import End, Outcome, ToolCall
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


class Past:
    """
    The last calls of one session, denied ones included: how those of each signature ended, each with its number.
    """

    __slots__ = ("ends", "number")

    def __init__(self) -> None:
        self.ends = defaultdict[int, list[tuple[int, int]]](list)
        self.number = 0

    def add(self, sig: int | None, evidence: int | None) -> Worth:
        """
        Returns the worth of the call of *sig* that ended in *evidence* (None: no result is recorded). It is then the latest.
        """
        self.number = number = self.number + 1
        if evidence is None:
            return "unknown"
        if sig is None:
            return "new"
        same = self.ends[sig]
        while same and same[0][0] < number - WINDOW:
            del same[0]
        alike, count = bool(same) and same[-1][1] == evidence, len(same)
        same.append((number, evidence))
        return "new" if not alike else "second" if count == 1 else "later"


def end_of(call: RecordedCall, tool: Tool) -> tuple[Outcome, int | None]:
    """
    Returns how *call* ended, and the mark that tells its result from others. None: it has no result. The outcome is the `Reading` of a
    good result, where it was read.

    A result that was recorded as good may also be a failure, as in a session: by the declaration of *tool*, else by its common signs.
    """
    result = call.result
    if call.is_error or (call.is_error is None and call.error_type is not None):
        outcome = Outcome(None, call.error_type or "other", "", call.http_status, call.retry_after_ms)
    elif result is None or (tool.result is None and not may_fail(result)):
        outcome = SUCCESS
    else:
        reading = reading_of(result, source_of(tool), arguments=call.arguments)
        if reading.error_type is not None:
            outcome = Outcome(None, reading.error_type, "", reading.http_status, reading.retry_after_ms)
        else:
            outcome = reading if reading.value is result else SUCCESS
    if not call.has_result:
        return outcome, None
    if outcome.error_type is None:
        known = call.plain_hash
        if known is None and result is not None:
            known = result_hash(result)
        return outcome, None if known is None else known & BITS
    known = call.masked_hash
    if known is None:
        known = masked_result_hash(f"{call.error_type or 'other'}: " if result is None else result)
    # No failure is ever equal to a success.
    return outcome, ~(known & BITS)


def shown_by(call: RecordedCall, evidence: int, outcome: Outcome, made: ToolCall, plan: Plan) -> End:
    """
    Returns the result of *call*, with its *evidence*, as guards see it once it is there.

    It is made for the call as it was decided, and the *plan* of its tool.
    """
    # Nobody else has a reading; a plain outcome may be shared.
    end = outcome if isinstance(outcome, End) else End.of(outcome)
    end.hash, end.steady, end.came = evidence, call.steady, call.empty
    result = call.result
    if result is None or call.steady:
        return end
    if outcome.error_type is not None:
        failure = Reading(None, arguments=made.arguments)
        failure.error_type, failure.error_message = outcome.error_type, result
        end.steady = news_hash(failure)
        return end
    read = end if type(end) is Reading else None
    if len(result) <= CLOSE:
        read = read or Reading(result, arguments=made.arguments)
        end.came = says(read, look=not plan.changes)
    if not plan.changes and len(result) < CUT:
        # What is no data is compared as it is.
        end.steady = evidence & 0xFFFFFFFF or 1
        if read is not None and read.content is not result:
            end.steady = news_hash(read)
    return end
