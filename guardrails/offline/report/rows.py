"""
One row for each recorded call: what it was, and how it stands to the calls before it in its session.

The conditions of the rules against repeats are those of the guard `duplicates`, so that a figure here is what a replay of the
setting finds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import REPAIRABLE, TRANSIENT, WITHOUT_EFFECT
from guardrails.core.values.names import look_by_name
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
SAME: Final = ("duplicates.", *(f"loops.{name}" for name in ("identical", "unrepaired", "reread", "cycle")))
"""Of them, those for the same tool and arguments; the others are for going on with other ones."""
Declared = Callable[[str], Tool]
"""What is declared of a tool, by its name."""


@dataclass(slots=True)
class Row:
    """
    One call. What lies between is what ran since *latest*, which is the same call: the last one that ran, if it is among the last 20.
    """

    call: RecordedCall
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
    changes: bool = False
    """It is not known to change nothing."""
    undeclared: bool = False
    """The policy does not say whether it changes anything."""
    changed: bool = False
    """Something between may have changed something."""
    acted: bool = False
    """The same, as far as its end tells."""
    again: bool = False
    """*latest* failed so that the same call was worth making again."""
    idle: bool = False
    """It brought nothing new, or was refused as one that would not."""
    check: bool = False
    """It brought nothing new, after something new was done between: a look whether it helped."""
    corrected: bool | None = None
    """Of wrong arguments: the next call of the tool, with other ones, worked. None: nobody knows how that ended."""
    polled: bool | None = None
    """It began a run of equal successes with nothing changed between, which ended in another success. None: it began none."""

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
        return self.ran and (self.tool.repeats == "allow" or self.call.polling)

    @property
    def wasted(self) -> bool:
        """
        It was idle or refused for its arguments, or failed but for news of the work.
        """
        return self.idle or (self.error is not None and self.error not in NEWS)


def rows_of(calls: Iterable[RecordedCall], declared: Declared) -> list[Row]:
    """
    Returns the rows of the *calls* of one session.
    """
    trail = _Trail()
    return [trail.row(call, declared(call.tool)) for call in calls]


class _Trail:
    """
    What a session remembers: the last 20 calls that ran, and what is open.
    """

    def __init__(self) -> None:
        self.number = 0
        self.past = Past()
        self.done: list[Row] = []
        self.sigs: list[int | None] = []
        """Of *done*: looked through first, since most calls repeat none."""
        self.wrong: dict[str, Row] = {}
        """The call with wrong arguments of each tool that is not corrected yet."""
        self.steady: dict[int | None, Row] = {}
        """Which row began the present run of equal successes of a call."""

    def row(self, call: RecordedCall, tool: Tool) -> Row:
        """
        Returns the row of the next call.
        """
        self.number += 1
        row = Row(call, self.number, call.signature, tool)
        since: list[Row] = []
        if row.sig is not None and row.sig in self.sigs:
            row.back = 1 + self.sigs[::-1].index(row.sig)
            row.latest, since = self.done[-row.back], self.done[len(self.done) - row.back + 1 :]
        if call.decision == "deny":
            self._refused(row)
        else:
            self._ran(row, since)
        return row

    def _refused(self, row: Row) -> None:
        """
        A call that did not run: it is no evidence for what follows.
        """
        code = row.call.code or "unknown"
        row.ran, row.idle = False, code.startswith(REPEATS)
        if row.idle and row.sig in self.steady:
            # Nobody knows what it would have brought.
            self.steady.pop(row.sig).polled = None
        if code.startswith("validation."):
            row.error, row.corrected = REFUSED, False
            self.wrong[row.call.tool] = row

    def _ran(self, row: Row, since: list[Row]) -> None:
        call, tool, latest = row.call, row.tool, row.latest
        outcome, row.evidence = end_of(call, tool)
        row.known = call.has_result
        row.error = outcome.error_type if row.known else None
        row.worth = self.past.add(row.sig, row.evidence)
        if latest is not None:
            row.changed = any(one.changes for one in since)
            row.acted = any(one.changes and one.error not in WITHOUT_EFFECT for one in since)
            row.again = latest.error in TRANSIENT or latest.error == "cancelled"
            row.again |= latest.error in REPAIRABLE and bool(since)
            self._polls(row, latest)
        wrong = self.wrong.pop(call.tool, None)
        if wrong is not None and row.number - wrong.number <= CORRECTED_WITHIN and wrong.sig != row.sig:
            wrong.corrected = row.worked if row.known else None
        if row.error in WRONG:
            row.corrected = False
            self.wrong[call.tool] = row
        if row.worked:
            row.signal = signal_of(call)
        # What is wrong with a call itself no work removes.
        mends = row.worked or row.error in REPAIRABLE or row.error in NEWS
        row.check = row.same and not row.polling and mends and any(map(_did, since))
        row.idle = row.same and not row.polling and not row.check
        row.undeclared = tool.read_only is None and tool.repeats != "evidence"
        row.changes = tool.changes and not (row.undeclared and call.read_only)
        self.done.append(row)
        self.sigs.append(row.sig)
        if len(self.done) > WINDOW:
            del self.done[0], self.sigs[0]

    def _polls(self, row: Row, latest: Row) -> None:
        """
        A run of equal calls begins with the second equal success, and ends with another one or with work between.

        One that ends in a failure is none: what comes back after failures is a retry.
        """
        if row.worth == "unknown" or latest.evidence is None:
            return
        if row.sig not in self.steady:
            if row.same and row.worked and not row.changed:
                row.polled = False
                self.steady[row.sig] = row
        elif row.changed or not row.same:
            began = self.steady.pop(row.sig)
            if not row.changed:
                began.polled = True if row.worked else None


def _did(row: Row) -> bool:
    """
    It may have done something new: it worked, is not known or named to read only, and repeated nothing for nothing.
    """
    named = row.undeclared and look_by_name(row.call.tool)
    return row.changes and row.worked and not row.same and not named
