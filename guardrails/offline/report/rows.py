"""
One row for each recorded call: what it was, and how it stands to the calls before it in its session.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import REPAIRABLE, WITHOUT_EFFECT
from guardrails.offline.replay.evidence import WINDOW, Past, Worth, end_of
from guardrails.offline.transcripts.calls import RecordedCall

from .signals import Signal, signal_of


NEWS: Final = frozenset({"exec_nonzero", "code_error", "cancelled"})
"""Failures that are no fault of the tool: a test that fails tells what was asked."""
REFUSED: Final = "validation_error"
"""The error type of a call that was refused for its arguments and did not run."""
WRONG: Final = frozenset({"validation", "invalid_path", REFUSED})
"""Errors that the model can correct by other arguments."""
CORRECTED_WITHIN: Final = 5
"""Calls after a validation error among which its correction is looked for."""
REPEATS: Final = ("duplicates.", "loops.")
"""Codes of what is refused as a repeat, or for going round in circles."""


@dataclass(slots=True)
class Row:
    """
    One call. What lies between is what ran since *latest*, which is the same call: the last one that ran, if it is among the last 20.
    """

    call: RecordedCall
    session: int
    number: int
    """In its session."""
    sig: int | None
    tool: Tool
    latest: "Row | None" = None
    back: int = 0
    """How many calls that ran *latest* lies back."""
    ran: bool = True
    known: bool = False
    """How it ended is recorded."""
    error: str | None = None
    evidence: int | None = None
    worth: Worth = "new"
    signal: Signal | None = None
    """What a success said of its completeness."""
    changed: bool = False
    """Something between may have changed something."""
    idle: bool = False
    """It brought nothing new, or was refused as one that would not."""
    check: bool = False
    """It brought nothing new, after something new was done between: a look whether it helped."""
    corrected: bool | None = None
    """Of wrong arguments: the next call of the tool, with other ones, worked. None: nobody knows how that ended."""

    @property
    def worked(self) -> bool:
        """
        It ran, and is recorded as a success.
        """
        return self.known and self.error is None

    @property
    def same(self) -> bool:
        """
        It brought what the latest same call had brought.
        """
        return self.worth in ("second", "later")

    @property
    def polling(self) -> bool:
        """
        It is declared or recorded as a call that polls.
        """
        return self.ran and self.tool.repeats == "allow"

    @property
    def waits(self) -> bool:
        """
        It brought the same success as before, and nothing was changed in between.
        """
        return self.worked and self.same and not self.changed

    @property
    def wasted(self) -> bool:
        """
        It was idle or refused for its arguments, or failed but for news of the work.
        """
        return self.idle or (self.error is not None and self.error not in NEWS)


def rows_of(calls: Iterable[RecordedCall], session: int, declared: Callable[[RecordedCall], Tool]) -> list[Row]:
    """
    Returns the rows of the *calls* of one *session*, with the tools that are *declared*.
    """
    past, rows, done = Past(), list[Row](), list[Row]()
    wrong: dict[str, Row] = {}
    """The call with wrong arguments of each tool that is not corrected yet."""
    for number, call in enumerate(calls):
        row = Row(call, session, number, call.signature, declared(call))
        sigs = [one.sig for one in reversed(done)]
        if row.sig is not None and row.sig in sigs:
            row.back = 1 + sigs.index(row.sig)
            row.latest = done[-row.back]
        if call.decision == "deny":
            _refused(row)
        else:
            _ran(row, past, done[len(done) - row.back + 1 :] if row.back else [])
            done = [*done[1 - WINDOW :], row]
            before = wrong.pop(call.tool, None)
            if before is not None and number - before.number <= CORRECTED_WITHIN and before.sig != row.sig:
                before.corrected = row.worked if row.known else None
        if row.error in WRONG:
            row.corrected, wrong[call.tool] = False, row
        rows.append(row)
    return rows


def _refused(row: Row) -> None:
    """
    A call that did not run: it is no evidence for what follows.
    """
    code = row.call.code or "unknown"
    row.ran, row.idle = False, code.startswith(REPEATS)
    row.error = REFUSED if code.startswith("validation.") else None


def _ran(row: Row, past: Past, since: list[Row]) -> None:
    outcome, row.evidence = end_of(row.call, row.tool)
    row.known = row.call.has_result
    row.error = outcome.error_type if row.known else None
    row.worth = past.add(row.sig, row.evidence)
    row.signal = signal_of(row.call) if row.worked else None
    changing = [one for one in since if one.tool.changes]
    row.changed = any(one.error not in WITHOUT_EFFECT for one in changing)
    # What is wrong with a call itself no work removes.
    mends = row.worked or row.error in REPAIRABLE or row.error in NEWS
    row.check = row.same and not row.polling and mends and any(one.worked and not one.same for one in changing)
    row.idle = row.same and not row.polling and not row.check
