"""
The benchmark of advice about corrections judges no day by itself.
"""

from typing import Any

from benchmarks.retries.corrections import by_days, by_sources, main, show
from guardrails.core.retries.labels import NO_ACTION
from guardrails.offline.learning.rows.cells import Cell
from guardrails.policy.feature_file import shipped_spec


SPEC = shipped_spec()


def cell(day: int, tool: str, n: float, s: float) -> Cell:
    counts = {"n": n, "s": s, "unlabelled": n, "corrected_n": n, "corrected": s, "logged": 0.0, "skewed": 0.0}
    return Cell(day, -1, tool, "not_found", 0, NO_ACTION, "", **counts)


def test_a_day_is_advised_by_the_days_before() -> None:
    made = by_days(SPEC, [cell(1, "book", 60, 50), cell(1, "pay", 60, 3), cell(2, "book", 10, 9), cell(2, "pay", 8, 1)])
    assert [(row.learned, row.calls.n) for row in made] == [("fix_arguments", 10), ("ask_user", 8)]
    assert {row.shipped for row in made} == {"fix_arguments"}


def test_what_nothing_came_before_is_left_out() -> None:
    assert by_days(SPEC, [cell(1, "book", 60, 50)]) == []


def test_a_source_is_advised_by_the_others(capsys: Any) -> None:
    made = by_sources(SPEC, {"a": [cell(1, "pay", 90, 2)], "b": [cell(1, "pay", 9, 0)]})
    assert made[1].learned == "ask_user"
    show("all", made)
    assert "ask_user" in capsys.readouterr().out


def test_without_records_it_says_so(tmp_path: Any, capsys: Any) -> None:
    assert main([str(tmp_path)]) == 0
    assert "skipped" in capsys.readouterr().err
