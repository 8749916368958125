"""
What is told of a tool's failures (A11).
"""

import pytest

from guardrails.core.retries.shrinkage import Count
from guardrails.core.retries.trail import Settled, Situation, extended, failure_of
from guardrails.offline.learning.facts import Correction
from guardrails.offline.learning.profiles import Profile, profile_of, profiles
from tests.tables import table


WAITS: dict[int | None, Count] = {0: Count(20, 1), 5_000: Count(40, 24), 60_000: Count(10, 6)}


def at(wait_ms: int | None, tool: str = "search_hotels", *, between: bool = False) -> Situation:
    failure = failure_of(extended(None, Settled(tool, 1, "timeout", 0)), 0)
    return failure.retried(wait_ms, between=between)


def one(waits: dict[int | None, Count], repaired: Count | None = None, corrected: Count | None = None) -> Profile:
    counts: dict[Situation | Correction, Count] = {at(wait): count for wait, count in waits.items()}
    if repaired is not None:
        counts[at(0, between=True)] = repaired
    if corrected is not None:
        counts[Correction("search_hotels", "timeout")] = corrected
    (made,) = profiles(counts)
    return made


def test_a11_a_profile_says_when_a_failure_resolves_and_how_often() -> None:
    made = one({**WAITS})
    assert (made.retries, made.successes, made.wait_ms) == (70, 31, 5_000)
    assert made.wait_rate == pytest.approx(0.57, abs=0.02)
    assert made.sentence() == (
        "`timeout` of `search_hotels` resolves on retry 57 % of the time after 5 s (24 of 40 retries then; 31 of 70 after "
        "any wait, 95 % interval 33 to 56 %)"
    )


def test_a11_corrections_and_repairs_are_told_apart_from_plain_repeats() -> None:
    made = one({**WAITS}, repaired=Count(10, 9), corrected=Count(20, 15))
    assert made.retries == 70
    assert made.sentence().endswith("; 90 % worked after something was changed in between")
    assert made.document()["corrected"] == [20, 15]


@table(
    "waits, said",
    [
        ({0: Count(1, 1)}, "was retried 1 time: too few to say"),
        ({5_000: Count(21, 0.4)}, "has hardly ever resolved on retry (0 of 21 retries worked, 95 % interval 0 to"),
        ({0: Count(200, 0)}, "has hardly ever resolved on retry (0 of 200 retries worked, 95 % interval 0 to 2 %)"),
        ({None: Count(30, 15)}, "resolves on retry 50 % of the time (15 of 30 retries worked"),
        (
            {0: Count(50, 45)},
            "resolves on retry 90 % of the time at once (45 of 50 retries then; 45 of 50 after any wait",
        ),
    ],
)
def test_a_sentence_claims_no_more_than_was_seen(waits: dict[int | None, Count], said: str) -> None:
    assert f"`timeout` of `search_hotels` {said}" in one(waits).sentence()


def test_a11_how_often_refused_arguments_are_corrected_is_told_without_retries() -> None:
    (made,) = profiles({Correction("book", "validation_error"): Count(20, 16)})
    assert made.sentence() == (
        "after `validation_error` of `book`, the model corrects it itself 4 times in 5 (16 of 20, 95 % interval 58 to 92 %)"
    )


@table(
    "waits",
    [
        {0: Count(100, 0), 5_000: Count(100, 1)},
        # Not sure to be hopeless, but no wait that was tried has helped much.
        {0: Count(40, 1), 5_000: Count(20, 1)},
        # Many retries of waits that were tried once or twice each worked more often.
        {**dict.fromkeys((0, 2_000, 15_000, 30_000, 60_000), Count(4, 4)), 5_000: Count(10, 1)},
    ],
)
def test_where_nothing_helps_no_wait_is_the_best(waits: dict[int | None, Count]) -> None:
    assert one(waits).wait_ms is None


def test_few_retries_are_drawn_to_the_rate_of_their_error_type() -> None:
    many = {at(0, f"tool{i}"): Count(100, 50 + i) for i in range(5)}
    made = {p.tool: p for p in profiles({**many, at(0, "new"): Count(2, 2)})}
    assert made["new"].rate < 0.62
    assert made["new"].high == 1


def test_a_profile_is_read_back_as_it_was_written() -> None:
    made = one({**WAITS}, corrected=Count(20, 15))
    again = profile_of(made.document())
    assert (again.sentence(), again.document()) == (made.sentence(), made.document())
