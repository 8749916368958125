"""
The fate of a failure, told from what its session did next.
"""

from typing import Any

from guardrails.core.retries.trail import Situation
from guardrails.core.values.types import INVALID
from guardrails.offline.learning.facts import CallRow, Correction, labelled
from tests.tables import table


BAD = "timeout"


def row(
    error: str | None, start: int | None = 0, *, sig: int | None = 1, tool: str = "t", changes: bool = False
) -> CallRow:
    return CallRow(tool, sig, error, start, start, start, None, changes)


def fate(kind: type, *rows: CallRow) -> tuple[Any, bool] | None:
    """
    What became of the first, and whether that worked.
    """
    found = [(what, worked) for row, what, worked in labelled(rows) if row is rows[0] and isinstance(what, kind)]
    return found[0] if found else None


@table("rows, tried, worked", [
        ([row(BAD), row(None, 5)], True, True),
        ([row(BAD), row(BAD, 5)], True, False),
        ([row(BAD)], False, False),
        ([row(BAD), row(None, 5, sig=2)], False, False),
        ([row(BAD, sig=None), row(None, 5, sig=None)], False, False),
        ([row(BAD), row(None, 600_000)], True, True),
        ([row(BAD), row(None, 600_001)], False, False),
        ([row(BAD), row(BAD, 600_001), row(None, 600_002)], False, False),
        ([row(BAD, 10), row(None, 9)], False, False),
        ([row(BAD), row(None, None)], True, True),
        ([row(BAD), *[row(None, sig=2)] * 19, row(None)], True, True),
        ([row(BAD), *[row(None, sig=2)] * 20, row(None)], False, False),
        ([row(BAD), *[row(INVALID, sig=2)] * 30, row(None)], True, True),
    ])  # fmt: skip
def test_a_failure_is_labelled_by_the_same_call_that_comes_next(rows: list[CallRow], tried: bool, worked: bool) -> None:
    made = fate(Situation, *rows)
    assert (made is not None, made is not None and made[1]) == (tried, worked)


@table(
    "meanwhile, between",
    [
        ([], False),
        ([row(None, sig=2)], False),
        ([row(BAD, sig=2, changes=True)], False),
        ([row(None, sig=2, tool="edit", changes=True)], True),
    ],
)
def test_a_repair_in_between_is_told_apart_from_waiting(meanwhile: list[CallRow], between: bool) -> None:
    made = fate(Situation, row(BAD), *meanwhile, row(None, 5, changes=True))
    assert made is not None
    assert made[0].between is between


@table(
    "rows, corrected",
    [
        ([row(BAD), row(None, sig=2)], True),
        ([row(BAD), row(BAD, sig=2)], False),
        ([row(BAD), row(None)], None),
        ([row(INVALID), row(None, sig=2)], True),
        ([row(INVALID), row(BAD, sig=2)], True),
        ([row(INVALID), row(INVALID, sig=2), row(None, sig=3)], False),
        ([row(INVALID), row("validation", sig=2)], False),
        ([row(INVALID), row(None, sig=2, tool="u")], None),
        ([row(BAD), row(INVALID, sig=2), row(None, sig=3)], True),
    ],
)
def test_a11_a_correction_is_the_next_call_of_the_tool_with_other_arguments(
    rows: list[CallRow], corrected: bool | None
) -> None:
    made = fate(Correction, *rows)
    assert (None if made is None else made[1]) is corrected
