"""
Turns, charges and extensions of a session.
"""

from decimal import Decimal
from typing import Any

import pytest

from guardrails import Budget, Denials, Envelope, Growth, Policy, SessionError, Validation
from guardrails.core.guards.amounts import internal
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def calls(session: Any, count: int, execute: Any = ok) -> list[Envelope]:
    return [session.call("t", {"n": number}, execute) for number in range(count)]


def limited(envelopes: list[Envelope]) -> list[bool]:
    return [envelope.limit_message is not None for envelope in envelopes]


# Turns


def test_b1_calls_of_the_last_turn_run_and_those_of_the_next_do_not(clock: Any) -> None:
    session = make(clock, Budget(max_turns=2))
    for _ in range(2):
        session.begin_turn()
        assert all(envelope.ok for envelope in calls(session, 3))
    assert session.exhausted
    session.begin_turn()
    assert [envelope.code for envelope in calls(session, 2)] == ["budget.max_turns"] * 2


def test_b1_without_a_number_of_calls_each_result_of_the_last_turn_says_the_limit(clock: Any) -> None:
    session = make(clock, Budget(max_turns=2))
    session.begin_turn()
    assert limited(calls(session, 2)) == [False, False]
    session.begin_turn()
    last = calls(session, 2)
    assert limited(last) == [True, True]
    assert last[0].limit_message == "Tool call limit reached (2). Stopping tool loop."


def test_b1_with_a_number_of_calls_the_last_of_them_says_it(clock: Any) -> None:
    session = make(clock, Budget(max_turns=1))
    session.begin_turn(calls=3)
    assert limited(calls(session, 3)) == [False, False, True]


def test_b1_the_last_call_of_the_last_turn_says_it_even_when_it_is_refused(clock: Any) -> None:
    session = make(clock, Budget(max_turns=1), Validation())
    session.begin_turn(calls=2)
    results = [session.call("t", {}, ok), session.call("t", "{broken", ok)]
    assert [envelope.status for envelope in results] == ["success", "validation_error"]
    assert limited(results) == [False, True]


def test_b1_calls_that_are_decided_first_and_run_later_say_it_once(clock: Any) -> None:
    session = make(clock, Budget(max_turns=1))
    session.begin_turn(calls=2)
    first, second = session.decide("t", {"n": 1}, id="a"), session.decide("t", {"n": 2}, id="b")
    assert limited([session.complete(second, "ok"), session.complete(first, "ok")]) == [True, False]


def test_a_turn_without_calls_or_with_refused_ones_costs_none(clock: Any) -> None:
    session = make(clock, Budget(max_turns=2, max_cost_usd=1), Validation())
    session.begin_turn()
    session.begin_turn()
    session.call("t", "{broken", ok)
    assert session.ledger.progress["turns_left"] == 2


def test_a5_an_exhausted_session_stays_so_and_says_its_first_cause(clock: Any) -> None:
    session = make(clock, Budget(max_calls=1, max_elapsed=10))
    assert session.tool_choice("auto") == "auto"
    calls(session, 1)
    clock.advance(60)
    session.begin_turn()
    assert (session.exhausted, session.tool_choice("required")) == ("budget.max_calls", "none")


# Charges


@table("cost", [-0.01, float("nan"), float("inf"), True, "ten", [1]])
def test_a_cost_that_is_no_amount_is_refused_and_charges_nothing(cost: Any, clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1))
    with pytest.raises(SessionError, match="amount in USD"):
        session.charge(model="m", cost_usd=cost)
    assert session.ledger.cost_usd == 0


@table("cost", [0.1, "0.1", Decimal("0.1")])
def test_a_cost_may_be_a_number_or_its_decimal(cost: Any, clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1))
    session.charge(model="m", cost_usd=cost)
    session.extend(max_cost_usd=cost)
    assert session.ledger.progress["cost_left_usd"] == 1.0


# Extensions


def test_an_extension_forgives_refused_turns_and_blown_growth_caps(clock: Any) -> None:
    refused = make(clock, Denials(max_turns_in_a_row=1), Validation())
    for _ in range(2):
        refused.begin_turn()
        refused.call("t", "{broken", ok)
    assert refused.exhausted == "denials.max_turns_in_a_row"
    fast = make(clock, Growth(max_requests_per_second=1))
    fast.request()
    fast.request()
    assert fast.exhausted == "growth.max_requests_per_second"
    for session in (refused, fast):
        session.extend()
        assert not session.exhausted
        assert session.call("t", {}, ok).ok


@table("count", ["2", -1, 1.5, True])
def test_a_number_of_calls_that_is_none_is_refused_and_leaves_no_trace(count: Any, clock: Any) -> None:
    session = make(clock, Budget(max_turns=1))
    with pytest.raises(SessionError, match="`calls` takes"):
        session.begin_turn(count)
    with pytest.raises(SessionError, match="`calls` takes"):
        session.charge(model="m", cost_usd=0.1, calls=count)
    assert session.ledger.cost_usd == 0
    assert session.call("t", {}, ok).ok


@table("amounts", [{"max_calls": 1}, {"max_cost_usd": 1}])
def test_a_limit_that_is_not_set_cannot_be_raised(amounts: Any, clock: Any) -> None:
    with pytest.raises(SessionError, match="sets no limit"):
        make(clock, Budget(max_turns=3)).extend(**amounts)


@table(
    ("amounts", "message"),
    [
        ({"max_cals": 1}, "`max_cals` is no limit"),
        ({"max_calls": -1}, "at least 0"),
        ({"max_calls": True}, "at least 0"),
        ({"max_calls": 1.5}, "whole number"),
        ({"max_calls": "3"}, "at least 0"),
        ({"max_cost_usd": float("nan")}, "in USD of at least 0"),
        ({"max_cost_usd": True}, "in USD of at least 0"),
        ({"max_elapsed": float("inf")}, "at least 0"),
    ],
)
def test_amounts_that_make_no_sense_are_refused(amounts: Any, message: str) -> None:
    with pytest.raises(SessionError, match=message):
        internal(amounts)
