"""
The fate of a failure, told from what its session did next, and what is told of a tool's failures (A11).
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrails.core.retries.model import Count
from guardrails.core.retries.trail import Settled, Situation, extended, failure_of
from guardrails.offline.learning.facts import CallRow, Correction, labelled
from guardrails.offline.learning.profiles import Profile, profile_of, profiles
from tests.tables import table


TABLES = yaml.safe_load(Path(__file__).with_name("facts.yaml").read_text(encoding="utf-8"))


def rows_of(calls: list[dict[str, Any]]) -> list[CallRow]:
    """
    The rows of *calls* in few words; one may come so many `times`.
    """
    made = []
    for one in calls:
        start = one.get("start", 0)
        row = CallRow(
            one.get("tool", "t"), one.get("sig", 1), one.get("error"), start, start, start, None, "changes" in one
        )
        made += [row] * one.get("times", 1)
    return made


def fate(kind: type, calls: list[dict[str, Any]]) -> tuple[Any, bool | None]:
    """
    What became of the first of *calls*, and whether that worked.
    """
    rows = rows_of(calls)
    found = [(what, worked) for row, what, worked in labelled(rows) if row is rows[0] and isinstance(what, kind)]
    return found[0] if found else (None, None)


@table("rows, worked", TABLES["labels"])
def test_a_failure_is_labelled_by_the_same_call_that_comes_next(
    rows: list[dict[str, Any]], worked: bool | None
) -> None:
    assert fate(Situation, rows)[1] is worked


@table("meanwhile, between", TABLES["repairs"])
def test_a_repair_in_between_is_told_apart_from_waiting(meanwhile: list[dict[str, Any]], between: bool) -> None:
    assert fate(Situation, [{"error": "timeout"}, *meanwhile, {"start": 5, "changes": True}])[0].between is between


@table("rows, corrected", TABLES["corrections"])
def test_a11_a_correction_is_the_next_call_of_the_tool_with_other_arguments(
    rows: list[dict[str, Any]], corrected: bool | None
) -> None:
    assert fate(Correction, rows)[1] is corrected


Waits = dict[int | None, Count]
WAITS: Waits = {0: Count(20, 1), 5_000: Count(40, 24), 60_000: Count(10, 6)}


def at(wait_ms: int | None, tool: str = "search_hotels", *, between: bool = False) -> Situation:
    failure = failure_of(extended(None, Settled(tool, 1, "timeout", 0)), 0)
    return failure.retried(wait_ms, between=between)


def one(waits: Waits, **others: Count) -> Profile:
    facts: dict[str, Situation | Correction] = {
        "repaired": at(0, between=True),
        "corrected": Correction("search_hotels", "timeout"),
    }
    counts = {at(wait): Count(*count) for wait, count in waits.items()}
    (made,) = profiles({**counts, **{facts[name]: count for name, count in others.items()}})
    return made


def test_a11_a_profile_says_when_a_failure_resolves_and_how_often() -> None:
    made = one(WAITS)
    assert (made.retries, made.successes, made.wait_ms) == (70, 31, 5_000)
    assert made.wait_rate == pytest.approx(0.57, abs=0.02)
    assert made.sentence() == (
        "`timeout` of `search_hotels` resolves on retry 57 % of the time after 5 s (24 of 40 retries then; 31 of 70 after "
        "any wait, 95 % interval 33 to 56 %)"
    )
    more = one(WAITS, repaired=Count(10, 9), corrected=Count(20, 15))
    assert more.retries == 70
    assert more.sentence().endswith("; 90 % worked after something was changed in between")
    assert more.document()["corrected"] == [20, 15]
    again = profile_of(more.document())
    assert (again.sentence(), again.document()) == (more.sentence(), more.document())


@table("waits, sentence", TABLES["sentences"])
def test_a_sentence_claims_no_more_than_was_seen(waits: Waits, sentence: str) -> None:
    assert f"`timeout` of `search_hotels` {sentence}" in one(waits).sentence()


def test_a11_how_often_refused_arguments_are_corrected_is_told_without_retries() -> None:
    (made,) = profiles({Correction("book", "validation_error"): Count(20, 16)})
    assert made.sentence() == (
        "after `validation_error` of `book`, the model corrects it itself 4 times in 5 (16 of 20, 95 % interval 58 to 92 %)"
    )


@table("waits", TABLES["hopeless"])
def test_where_nothing_helps_no_wait_is_the_best(waits: Waits) -> None:
    assert one(waits).wait_ms is None


def test_few_retries_are_drawn_to_the_rate_of_their_error_type() -> None:
    many = {at(0, f"tool{i}"): Count(100, 50 + i) for i in range(5)}
    made = {p.tool: p for p in profiles({**many, at(0, "new"): Count(2, 2)})}
    assert made["new"].rate < 0.62
    assert made["new"].high == 1
