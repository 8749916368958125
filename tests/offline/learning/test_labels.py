"""
The fate of a failure, told from what its session did next.
"""

from guardrails.core.values.types import INVALID
from guardrails.offline.learning.labels import CallRow, Label, labelled
from tests.tables import table


BAD = "timeout"


def row(
    error: str | None, start: int | None = 0, *, sig: int | None = 1, tool: str = "t", changes: bool = False
) -> CallRow:
    return CallRow(tool, sig, error, start, start, start, None, changes)


def first(*rows: CallRow) -> Label:
    return next(label for label in labelled(rows) if label.row is rows[0])


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
    made = first(*rows)
    assert (made.situation is not None, made.worked) == (tried, worked)


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
    made = first(row(BAD), *meanwhile, row(None, 5, changes=True))
    assert made.situation is not None
    assert made.situation.between is between


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
    assert first(*rows).corrected is corrected
