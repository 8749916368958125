from guardrails.core.values.types import INVALID
from guardrails.offline.learning.labels import NO_ACTION, CallRow, Labelled, labelled
from tests.core.retries.pinned import SPEC
from tests.tables import table


BAD = "timeout"


def row(
    error: str | None, start: int | None = 0, *, sig: int | None = 1, tool: str = "t", changes: bool = False
) -> CallRow:
    return CallRow(tool, sig, error, start, start, start, None, changes)


def first(*rows: CallRow) -> Labelled:
    return min(labelled(SPEC, rows), key=lambda one: one.at)


@table(("rows", "n", "s"), [
        ([row(BAD), row(None, 5)], 1, 1),
        ([row(BAD), row(BAD, 5)], 1, 0),
        ([row(BAD)], 0, 0),
        ([row(BAD), row(None, 5, sig=2)], 0, 0),
        ([row(BAD, sig=None), row(None, 5, sig=None)], 0, 0),
        ([row(BAD), row(None, 600_000)], 1, 1),
        ([row(BAD), row(None, 600_001)], 0, 0),
        ([row(BAD, 10), row(None, 9)], 0, 0),
        ([row(BAD), row(None, None)], 1, 1),
        ([row(BAD), *[row(None, sig=2)] * 19, row(None)], 1, 1),
        ([row(BAD), *[row(None, sig=2)] * 20, row(None)], 0, 0),
        ([row(BAD), *[row(INVALID, sig=2)] * 30, row(None)], 1, 1),
    ])  # fmt: skip
def test_a_failure_is_labelled_by_the_same_call_that_comes_next(rows: list[CallRow], n: int, s: int) -> None:
    made = first(*rows)
    assert (made.n, made.s) == (n, s)
    assert (made.action == NO_ACTION) == (n == 0)


@table(
    ("meanwhile", "between"),
    [
        ([], 0),
        ([row(None, sig=2)], 0),
        ([row(BAD, sig=2, changes=True)], 0),
        ([row(None, sig=2, tool="edit", changes=True)], 1),
    ],
)
def test_a_repair_in_between_is_told_apart_from_waiting(meanwhile: list[CallRow], between: int) -> None:
    made = first(row(BAD), *meanwhile, row(None, 5, changes=True))
    assert SPEC.decode_action(made.action)["between"] == between


@table(
    ("rows", "corrected_n", "corrected"),
    [
        ([row(BAD), row(None, sig=2)], 1, 1),
        ([row(BAD), row(BAD, sig=2)], 1, 0),
        ([row(BAD), row(None)], 0, 0),
        ([row(INVALID), row(None, sig=2)], 1, 1),
        ([row(INVALID), row(BAD, sig=2)], 1, 1),
        ([row(INVALID), row(INVALID, sig=2), row(None, sig=3)], 1, 0),
        ([row(INVALID), row("validation", sig=2)], 1, 0),
        ([row(INVALID), row(None, sig=2, tool="u")], 0, 0),
        ([row(BAD), row(INVALID, sig=2), row(None, sig=3)], 1, 1),
    ],
)
def test_a_correction_is_the_next_call_of_the_tool_with_other_arguments(
    rows: list[CallRow], corrected_n: int, corrected: int
) -> None:
    """A11: how often a validation error is corrected."""
    made = first(*rows)
    assert (made.corrected_n, made.corrected) == (corrected_n, corrected)


def test_who_caused_a_retry_is_kept() -> None:
    explored = CallRow("t", 1, None, 1, 1, source="explore")
    assert first(row(BAD), explored).source == "explore"
    assert first(row(BAD), row(None)).source == "agent"
    assert first(row(BAD)).source == ""
