"""
Training of the repeat model: labels from the records themselves, no source in both training and test (MISSION A12).
"""

from typing import Any

import pytest

from guardrails.core.repetition.learned.model_format import repeat_model
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.repeats.fit import (
    LEAST,
    NEVER,
    Scored,
    counted,
    deny_at,
    intercept_of,
    leave_one_out,
    score,
    second_occurrences,
)
from guardrails.offline.learning.repeats.rows import Row, rows_of
from guardrails.offline.learning.repeats.train import trained
from guardrails.offline.readers import RecordedCall


def calls(source: str, sessions: int, *, dull: int = 3) -> list[RecordedCall]:
    """
    Sessions whose repeats bring nothing unless an edit came before; *dull* of four sessions repeat.
    """
    made = []
    for n in range(sessions):
        steps: list[tuple[str, Any, str]] = [("find", {"q": n}, f"r{n}")]
        steps += [("find", {"q": n}, f"r{n}")] * 2 if n % 4 < dull else [("edit", {"n": n}, f"e{n}")]
        steps += [("find", {"q": n}, f"r{n}" if n % 4 < dull else f"new {n}"), ("look", {"at": n * 17}, f"seen {n}")]
        made += [
            RecordedCall(source, f"{source}{n}", at, tool, arguments, result=result, is_error=False)
            for at, (tool, arguments, result) in enumerate(steps)
        ]
    return made


def rows(*sources: str) -> list[Row]:
    return [row for source in sources for row in rows_of(calls(source, 24))]


def labels(*steps: tuple[str, Any, Any]) -> list[bool | None]:
    made = [
        RecordedCall("s", "a", at, tool, arguments, result=result, is_error=False, has_result=result is not None)
        for at, (tool, arguments, result) in enumerate(steps)
    ]
    return [row.label for row in rows_of(made)]


Q = {"q": "inn in kyoto near the river"}
LABELS: list[tuple[str, list[tuple[str, Any, Any]], list[bool | None]]] = [
    ("the same again", [("find", Q, "a")] * 2, [False, True]),
    ("news", [("find", Q, "a"), ("find", Q, "b")], [False, False]),
    ("the same after work", [("find", Q, "a"), ("edit", {}, "x"), ("find", Q, "a")], [False, False, None]),
    ("no result", [("find", Q, "a"), ("find", Q, None)], [False, None]),
    ("the same result to other words", [("run", {"x": "alpha"}, "ok"), ("run", {"x": "omega"}, "ok")], [False, False]),
    ("the same long text", [("read_a", {"x": 1}, "t" * 300), ("read_a", {"x": "omega"}, "t" * 300)], [False, True]),
]


@pytest.mark.parametrize(("steps", "expected"), [row[1:] for row in LABELS], ids=[row[0] for row in LABELS])
def test_a_label_is_what_the_records_show(steps: Any, expected: list[bool | None]) -> None:
    assert labels(*steps) == expected


def test_no_source_is_in_training_and_test() -> None:
    known = rows("a", "b", "c")
    folds = leave_one_out(known, {"a"})
    others = leave_one_out([row for row in known if row.source != "c"] + rows_without_repeats("c"), {"a"})
    levels = next(row.levels for row in known if row.levels is not None)
    assert folds["c"][0].logit(levels) == others["c"][0].logit(levels)


def rows_without_repeats(source: str) -> list[Row]:
    return list(rows_of(calls(source, 12, dull=0)))


def test_a_model_tells_repeats_that_bring_nothing_from_others() -> None:
    body, scored = trained(rows("a", "b", "c"), ["a"])
    assert set(body["training"]["left_out"]) == {"a", "b", "c"}
    for found in scored.values():
        told = {
            label: [one.p for one in found if one.row.label is label and one.row.earlier] for label in (True, False)
        }
        assert min(told[True]) > max(told[False], default=0)


def test_the_intercept_follows_the_base_rate() -> None:
    model = repeat_model("default")
    low, high = (counted(rows_of(calls("a", 24, dull=dull))) for dull in (1, 4))
    assert intercept_of(model, low) < intercept_of(model, high)
    with pytest.raises(TrainingError, match="no call"):
        intercept_of(model, {})


def scored(*given: tuple[float, bool]) -> list[Scored]:
    levels = (5, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1)
    return [Scored(Row("a", levels, not new, "new" if new else "second", 1), p) for p, new in given]


def test_the_threshold_keeps_wrong_denials_to_the_limit() -> None:
    nothing_wrong = scored((0.99, False), (0.95, False), (0.5, True))
    assert deny_at(nothing_wrong) == LEAST
    assert deny_at([*scored((0.99, False), (0.95, True))]) == 0.99
    assert deny_at(scored((1.0, True))) == NEVER
    assert [point[1:] for point in second_occurrences(nothing_wrong)] == [(1, 0), (2, 0), (2, 1)]


def test_the_score_of_a_call_that_nobody_looks_at_is_nothing() -> None:
    assert score(repeat_model("default"), [Row("a", None, False, "new", 0)])[0].p == 0


@pytest.mark.parametrize("chosen", [["nowhere"], []])
def test_what_cannot_be_trained_is_told(chosen: list[str]) -> None:
    with pytest.raises(TrainingError, match="nowhere" if chosen else "left out of itself"):
        trained(rows("a"), chosen)
