"""
Models that repeat refused calls.
"""

from typing import Any

import pytest

from guardrails import Denials, Duplicates, Policy, Rate, ToolFilter, Validation


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy([ToolFilter(deny=("no",)), *guards], **settings).session("s", clock=clock)


def turn(session: Any, *calls: Any) -> list[Any]:
    session.begin_turn(calls=len(calls))
    return [session.call(tool, arguments, ok) for tool, arguments in calls]


REFUSED: Any = ("no", {})


def test_a4_three_turns_of_nothing_but_refusals_end_the_session(clock: Any) -> None:
    session = make(clock, Denials())
    seen = [(turn(session, REFUSED), session.exhausted)[1] for _ in range(3)]
    assert seen == [False, False, True]
    assert session.exhausted_by == "denials.max_turns_in_a_row"
    assert turn(session, ("t", {}))[0].code == "denials.max_turns_in_a_row"


def test_five_denials_of_one_parallel_turn_are_one_strike(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(2):
        turn(session, *[("no", {"n": n}) for n in range(5)])
        assert not session.exhausted
    turn(session, *[("no", {"n": n}) for n in range(5)])
    assert session.exhausted


def test_one_admitted_call_starts_the_count_again(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(5):
        turn(session, REFUSED)
        turn(session, REFUSED)
        turn(session, REFUSED, ("t", {}))
    assert not session.exhausted


def test_turns_without_calls_neither_count_nor_reset(clock: Any) -> None:
    session = make(clock, Denials())
    for _ in range(3):
        turn(session, REFUSED)
        session.begin_turn()
        session.begin_turn()
    assert session.exhausted


def test_retryable_refusals_are_no_strikes(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1), Rate(max_calls_per_minute=1))
    turn(session, ("t", {}))
    for number in range(5):
        assert turn(session, ("t", {"n": number}))[0].retryable is True
    assert not session.exhausted


def test_the_first_validation_error_of_a_signature_is_no_strike_and_the_next_is(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=2), Validation())
    for text in ("{a", "{b", "{c", "{d"):
        assert turn(session, ("t", text))[0].status == "validation_error"
    assert not session.exhausted
    turn(session, ("t", "{a"))
    turn(session, ("t", "{d"))
    assert session.exhausted


def test_the_last_refusal_of_the_last_turn_tells_the_limit(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=2))
    turn(session, REFUSED)
    first, last = turn(session, REFUSED, REFUSED)
    assert (first.limit_message, last.code) == (None, "tool_filter.deny")
    assert last.limit_message == "Every tool call of 2 turns in a row was refused. Stopping tool loop."


def test_one_turn_of_refusals_is_said_in_the_singular(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1))
    turn(session, REFUSED)
    assert session.limit_message == "Every tool call of 1 turn was refused. Stopping tool loop."


def test_a_call_that_may_still_be_admitted_keeps_the_turn_open(clock: Any) -> None:
    session = make(clock, Denials(max_turns_in_a_row=1))
    session.begin_turn()
    session.call("no", {}, ok)
    assert session.call("t", {}, ok).ok
    assert not session.exhausted


@pytest.mark.parametrize("guard", [Denials(max_turns_in_a_row=None), Denials(mode="off"), Denials(mode="observe")])
def test_without_the_cap_refusals_go_on_for_ever(guard: Any, clock: Any) -> None:
    session = make(clock, guard)
    for _ in range(10):
        turn(session, REFUSED)
    assert not session.exhausted


def test_duplicates_a_model_insists_on_end_its_session(clock: Any) -> None:
    session = make(clock, Denials(), Duplicates())
    turn(session, ("t", {}))
    for _ in range(3):
        assert turn(session, ("t", {}))[0].code == "duplicates.window"
    assert session.exhausted
