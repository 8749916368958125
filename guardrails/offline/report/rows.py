"""
One row for each recorded call: what it was, and how it stands to the calls before it in its session.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from guardrails.core.result.names import about
from guardrails.core.tool import Tool
from guardrails.core.values.errors import REPAIRABLE, WITHOUT_EFFECT
from guardrails.offline.replay.evidence import WINDOW, Past, Worth, end_of
from guardrails.offline.transcripts.calls import RecordedCall
from guardrails.offline.transcripts.fields import json_in, mapping


NEWS: Final = frozenset({"exec_nonzero", "code_error", "cancelled"})
"""Failures that are no fault of the tool: a test that fails tells what was asked."""
REFUSED: Final = "validation_error"
"""The error type of a call that was refused for its arguments and did not run."""
WRONG: Final = frozenset({"validation", "invalid_path", REFUSED})
"""Errors that the model can correct by other arguments."""
CORRECTED_WITHIN: Final = 5
"""Calls after a validation error among which its correction is looked for."""
Signal = Literal["said", "absent", "dead end"]
_SIGNS: Final = ("cursor", "flag", "cut", "end")
"""What names tell of completeness for sure."""
_CUTS: Final = ('"_truncated"', "... [truncated: ")
"""The marks of a cut of ours, which says how much is left out."""
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
    polling: bool = False
    """It ran, and is declared or recorded as a call that polls."""
    worked: bool = False
    """It ran, and is recorded as a success."""
    same: bool = False
    """It brought what the latest same call had brought."""
    waits: bool = False
    """It brought the same success as before, and nothing was changed in between."""
    ends: bool = False
    """It brought another success, and nothing was changed in between."""


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
            # A call that did not run is no evidence for what follows.
            code = call.code or "unknown"
            row.ran, row.idle = False, code.startswith(REPEATS)
            row.error = REFUSED if code.startswith("validation.") else None
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


def _ran(row: Row, past: Past, since: list[Row]) -> None:
    outcome, row.evidence = end_of(row.call, row.tool)
    row.known, row.polling = row.call.has_result, row.tool.repeats == "allow"
    row.error = outcome.error_type if row.known else None
    row.worth, row.worked = past.add(row.sig, row.evidence), row.known and row.error is None
    row.same = row.worth in ("second", "later")
    row.signal = signal_of(row.call) if row.worked else None
    changing = [one for one in since if one.tool.changes]
    row.changed = any(one.error not in WITHOUT_EFFECT for one in changing)
    alone = row.worked and not row.changed
    row.waits, row.ends = alone and row.same, alone and not row.same
    # What is wrong with a call itself no work removes.
    mends = row.worked or row.error in REPAIRABLE or row.error in NEWS
    row.check = row.same and not row.polling and mends and any(one.worked and not one.same for one in changing)
    row.idle = row.same and not row.polling and not row.check


def signal_of(call: RecordedCall) -> Signal:
    """
    Returns the word of a successful *call* on its completeness. It is `absent` if there is no word, and `dead end` if
    something is missing but no way to get it is told. Own records say themselves whether it is complete.
    """
    text = call.result or ""
    value = mapping(json_in(text)) if text.startswith("{") else {}
    members = [*value.items(), *(inner for each in value.values() for inner in mapping(each).items())]
    signs: list[tuple[str, Any]] = [(kind, each) for name, each in members if (kind := about(name).more) in _SIGNS]
    complete = call.is_complete
    if call.decision is None:
        complete = None if not signs else ("cut", True) not in signs and ("end", False) not in signs
    goes_on = any(each and kind == "cursor" for kind, each in signs) or ("flag", True) in signs
    goes_on = goes_on or bool(value.get("next_action_hint")) or any(mark in text for mark in _CUTS)
    if complete is None:
        return "absent"
    return "said" if complete or goes_on or not text else "dead end"
