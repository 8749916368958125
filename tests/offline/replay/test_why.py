"""
Why a denial was wrong.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Denials, Duplicates, Loops, Policy
from guardrails.offline.replay.judgement import Judge
from guardrails.offline.replay.result import Tally
from guardrails.offline.transcripts import RecordedCall
from tests.offline.judging import judged as told
from tests.tables import table


Calls = Callable[..., list[RecordedCall]]

ALWAYS = Duplicates(window=5)


def judged(policy: Policy, made: list[RecordedCall]) -> tuple[list[tuple[str | None, bool | None]], Tally]:
    judge = Judge(policy)
    said = judge.judge(made)
    return [(each.why, each.worked) for each in said], judge.judgement().total


@table(
    "first, then, why",
    [
        ("a=3 passed in 0.12s", "a=4 passed in 0.12s", ("changed", True)),
        ("a=3 passed in 0.12s", "a=3 passed in 0.34s", ("changed", True)),
        ("a=price 10", "a=price 11", ("changed", True)),
        (
            "a=request 123e4567-e89b-12d3-a456-426614174000",
            "a=request 123e4567-e89b-12d3-a456-426614174001",
            ("changed", True),
        ),
        ("a=done", "a!no such file", ("changed", False)),
        ("a!no such file", "a=done", ("changed", True)),
        ("a=done", "a=done", (None, None)),
        ("a!line 1", "a!line 2", (None, None)),
        ("a=done", "a?", (None, None)),
    ],
)
def test_an_identical_call_is_wrongly_denied_if_its_result_changed(
    calls: Calls, first: str, then: str, why: tuple[str | None, bool | None]
) -> None:
    said, total = judged(Policy([ALWAYS]), calls(first, then))
    assert said == [(None, None), why]
    assert total.wrong_why.total() == total.wrong.total() == (why[0] is not None)
    assert total.wrong_worked.total() == (why[1] is True)


def test_a_result_that_is_cut_or_known_by_its_hash_alone_counts_as_another_one(calls: Calls) -> None:
    first, then = "3 passed in 0.12s", "3 passed in 0.34s"
    said, _ = judged(Policy([ALWAYS]), calls(f"a={'x' * 4_000}{first}", f"a={'x' * 4_000}{then}"))
    assert said[1] == ("changed", True)
    made = calls({"call": f"a={first}", "result": None, "plain_hash": 1}, {"call": f"a={then}", "plain_hash": 2})
    assert judged(Policy([ALWAYS]), made)[0][1] == ("changed", True)


@table(
    "first, then, why",
    [
        ('{"took_ms": 3, "price": 17}', '{"took_ms": 41, "price": 17}', "volatile"),
        ('{"took_ms": 3, "price": 17}', '{"took_ms": 3, "price": 18}', "changed"),
        ('{"request_id": "a1b2c3d4", "rows": [1]}', '{"request_id": "b1b2c3d5", "rows": [1]}', "volatile"),
        ('{"version": 3, "rows": [1]}', '{"version": 4, "rows": [1]}', "volatile"),
        ('{"version": 3, "price": 1}', '{"version": 4, "price": 1}', "changed"),
    ],
)
def test_fields_that_are_no_news_to_the_guards_are_none_to_the_judge(
    calls: Calls, first: str, then: str, why: str
) -> None:
    said, _ = judged(Policy([ALWAYS]), calls(f"get_offer={first}", f"get_offer={then}"))
    assert said[1] == (why, True)


@table("last, why", [("a!no such column", ("known", False)), ("a=found", ("news", True))])
def test_a_call_with_other_arguments_brought_news_or_what_another_had_brought(
    calls: Calls, last: str, why: tuple[str, bool]
) -> None:
    made = calls(*["a!no such column"] * 4, last)
    for number, call in enumerate(made):
        call.arguments, call.error_type = {"path": "lmnop"[number] * 9}, "validation" if call.is_error else None
    said, total = judged(Policy([Loops(same_error={"nudge": None, "deny": 4})]), made)
    assert said == [(None, None)] * 4 + [why]
    assert total.wrong == {"loops.same_error": 1}


def test_calls_that_are_lost_after_the_end_are_told_with_those_that_worked(calls: Calls) -> None:
    said, total = judged(Policy([Budget(max_calls=2)]), calls("a=1", "b=1", "a=1", "c=1", "d!no", "e?"))
    assert said == [(None, None)] * 2 + [("ended", True), ("ended", True), ("ended", False), ("ended", False)]
    assert (total.lost, total.after_exhaustion) == ({"budget.max_calls": 4}, {"budget.max_calls": 3})
    assert (total.lost_worked.total(), total.lost_new.total()) == (2, 1), "one of the two was a pointless repeat"
    assert not total.wrong


def test_calls_that_are_lost_after_refusals_were_ignored_are_those_of_denials(calls: Calls) -> None:
    made = calls(*["a=Oslo"] * 8, "b=2", "c=3")
    for number, call in enumerate(made, 1):
        call.turn = number
    said, total = judged(Policy([Loops(identical={"deny": 2}), Denials()]), made)
    assert said[-2:] == [("ended", True), ("ended", True)]
    assert not total.wrong_why
    assert total.lost == {"denials.max_turns_in_a_row": 3}


def test_what_guards_in_observe_mode_would_have_denied_is_split_apart(calls: Calls) -> None:
    said, total = judged(Policy([Duplicates(window=5, mode="observe")]), calls("a=1", "a=2"))
    assert said[1] == ("changed", True)
    assert (total.wrong_why, total.wrong_observed_why, total.wrong_observed_worked) == (
        {},
        {"changed": 1},
        {"changed": 1},
    )


@st.composite
def stories(draw: st.DrawFn) -> list[dict[str, Any]]:
    said = st.sampled_from(["a=1", "a=2", "a=1 in 3s", "a=1 in 4s", "b=1", "b=2", "a!x", "b!y", "a?", "c=1"])
    return [{"call": one, "turn": n // 2 + 1} for n, one in enumerate(draw(st.lists(said, max_size=40)))]


POLICIES = (
    Policy([ALWAYS]),
    Policy([Denials(), Loops()]),
    Policy([Budget(max_calls=9), Denials(max_turns_in_a_row=1), Duplicates(rule="evidence", window=20)]),
    Policy([Duplicates(window=5, mode="observe"), Loops()]),
)


@given(story=stories(), policy=st.sampled_from(POLICIES))
def test_the_parts_add_up_to_all_that_is_wrong(story: list[dict[str, Any]], policy: Policy) -> None:
    from .conftest import recorded

    judge = Judge(policy)
    said = told(judge, recorded(*story))
    total = judge.judgement().total
    assert total.wrong_why.total() == total.wrong.total()
    assert total.wrong_observed_why.total() == total.wrong_observed.total()
    assert total.lost.total() >= total.after_exhaustion.total()
    assert total.lost.total() == sum(each.why == "ended" for each in said)
    assert total.lost.total() >= total.lost_worked.total() >= total.lost_new.total()
    assert all(total.wrong_worked[why] <= n for why, n in total.wrong_why.items())
