"""
Turns, charges and extensions: when a session ends, and when a limit only refuses what is too dear.
"""

from decimal import Decimal
from typing import Any

import pytest

from guardrails import Budget, Denials, Duplicates, Growth, Success, Tool, Validation
from guardrails.errors import SessionError
from tests.core.guards import calls
from tests.core.guards.calls import gives, ok
from tests.tables import table


LAST = "Tool call limit reached ({}). Stopping tool loop."


@table(("most", "turns", "limited"), [
    # Without a number of calls each result of the last turn says the limit, with one the last of them, refused or not.
    (2, [(None, "tt"), (None, "tt")], "..!!"), (1, [(3, "ttt")], "..!"), (1, [(2, "t{")], ".!"), (1, [(None, "t=")], "!!"),
])  # fmt: skip
def test_b1_the_results_of_the_last_turn_say_the_limit(most: int, turns: Any, limited: str, clock: Any) -> None:
    """
    Calls by letters: `t` runs, `{` is no JSON, `=` is a duplicate.
    """
    session, envelopes = calls.make(clock, Budget(max_turns=most), Validation(), Duplicates()), list[Any]()
    for number, letters in turns:
        session.begin_turn(number)
        for letter in letters:
            arguments = {"t": {"n": len(envelopes)}, "{": "{broken", "=": {"n": 0}}[letter]
            envelopes.append(session.call("t", arguments, ok))
    assert [envelope.limit_message for envelope in envelopes] == [
        LAST.format(most) if sign == "!" else None for sign in limited
    ]
    assert session.exhausted
    session.begin_turn()
    assert [session.call("t", {"n": n}, ok).code for n in (8, 9)] == ["budget.max_turns"] * 2


def test_b1_calls_that_are_decided_first_say_it_once_and_turns_without_calls_cost_none(clock: Any) -> None:
    session = calls.make(clock, Budget(max_turns=1, max_cost_usd=1), Validation())
    session.begin_turn()
    session.begin_turn()
    session.call("t", "{broken", ok)
    assert session.ledger.progress["turns_left"] == 1
    session.begin_turn(calls=2)
    first, second = (session.decide("t", {"n": n}, id=f"{n}") for n in (1, 2))
    ends = [session.complete(one, "ok").limit_message for one in (second, first)]
    assert ends == [LAST.format(1), None]


def test_a5_an_exhausted_session_stays_so_and_says_its_first_cause(clock: Any) -> None:
    session = calls.make(clock, Budget(max_calls=1, max_elapsed=10))
    assert session.tool_choice("auto") == "auto"
    session.call("t", {}, ok)
    clock.advance(60)
    session.begin_turn()
    assert (session.exhausted, session.tool_choice("required")) == ("budget.max_calls", "none")


def test_an_extension_forgives_refused_turns_and_blown_growth_caps(clock: Any) -> None:
    refused = calls.make(clock, Denials(max_turns_in_a_row=1), Validation())
    for _ in range(2):
        refused.begin_turn()
        refused.call("t", "{broken", ok)
    fast = calls.make(clock, Growth(max_requests_per_second=1))
    fast.request()
    fast.request()
    ends = ("denials.max_turns_in_a_row", "growth.max_requests_per_second")
    assert (refused.exhausted, fast.exhausted) == ends
    for session in (refused, fast):
        session.extend()
        assert not session.exhausted
        assert session.call("t", {}, ok).ok


# Amounts


@table("cost", [0.1, "0.1", Decimal("0.1")])
def test_a_cost_is_an_amount_in_usd(cost: Any, clock: Any) -> None:
    session = calls.make(clock, Budget(max_cost_usd=1))
    session.charge(model="m", cost_usd=cost)
    session.extend(max_cost_usd=cost)
    assert session.ledger.progress["cost_left_usd"] == 1.0


@table(("how", "odd", "said"), [
    *(("charge", {"model": "m", "cost_usd": odd}, "amount in USD") for odd in (-0.01, float("nan"), float("inf"), True, "ten", [1])),
    *(("begin_turn", {"calls": odd}, "`calls` takes") for odd in ("2", -1, 1.5, True)),
    *(("charge", {"model": "m", "cost_usd": 0.1, "calls": odd}, "`calls` takes") for odd in ("2", -1, 1.5, True)),
    ("extend", {"max_calls": 1}, "sets no limit"), ("extend", {"max_cals": 1}, "`max_cals` is no limit"),
    *(("extend", {"max_turns": odd}, "at least 0") for odd in (-1, True, "3")), ("extend", {"max_turns": 1.5}, "whole number"),
    ("extend", {"max_cost_usd": float("nan")}, "in USD of at least 0"), ("extend", {"max_elapsed": float("inf")}, "at least 0"),
])  # fmt: skip
def test_an_amount_that_makes_no_sense_is_refused_and_leaves_no_trace(
    how: str, odd: Any, said: str, clock: Any
) -> None:
    session = calls.make(clock, Budget(max_turns=1, max_cost_usd=1, max_elapsed=60))
    with pytest.raises(SessionError, match=said):
        getattr(session, how)(**odd)
    assert session.ledger.read(lambda state, _: (state.n, state.cost, state.limits)) == (0, 0, {})


# Money that is nearly spent


CODE = "budget.max_cost_usd"
DEAR, CHEAP, FREE = Tool(name="dear", cost_usd=0.6), Tool(name="cheap", cost_usd=0.1), Tool(name="free")


def make(clock: Any, *tools: Tool, reserve: float = 0.0) -> Any:
    return calls.make(clock, Budget(max_cost_usd=1.0, final_answer_reserve_usd=reserve), tools=tools)


def test_a5_a_session_ends_once_no_tool_fits(clock: Any) -> None:
    session = make(clock, DEAR)
    session.charge(model="m", cost_usd=0.25, calls=1)
    assert session.call("dear", {}, ok).limit_message is None
    assert session.exhausted == CODE
    assert session.ledger.limit_message == (
        "$0.15 of the cost limit ($1.00) is left, less than a tool or a usual model turn costs. Stopping tool loop."
    )
    session.extend()
    assert session.exhausted
    session.extend(max_cost_usd=0.5)
    assert session.call("dear", {"n": 1}, ok).ok


@table(("tools", "turn", "spent", "goes_on"), [
    # A cheaper tool, a free one, one that nobody listed fits, and so does a turn.
    ((DEAR, CHEAP), 0.25, 0.4, True), ((DEAR, FREE), 0.25, 0.5, True), ((), 0.25, 0.5, True), ((), None, 0.9, True),
    # No tool fits, however cheap the turns are.
    *(((DEAR,), turn, spent, False) for turn, spent in ((0.05, 0.6), (0.0, 0.6), (None, 0.9))), ((DEAR, CHEAP), 0.02, 0.9, False),
    # No usual turn fits, even if a tool does.
    *((tools, 0.25, 0.6, False) for tools in ((DEAR, CHEAP), (DEAR, FREE), ())),
])  # fmt: skip
def test_a5_money_nearly_spent_ends_the_tools(tools: Any, turn: Any, spent: float, goes_on: bool, clock: Any) -> None:
    session = make(clock, *tools)
    if turn is not None:
        session.charge(model="m", cost_usd=turn, calls=1)
    session.call("dear", {}, gives(Success("ok", cost_usd=spent)))
    assert (session.exhausted is None, session.tool_choice("auto") == "auto") == (goes_on, goes_on)


def test_the_calls_of_a_response_run_although_no_other_response_fits(clock: Any) -> None:
    session = make(clock, FREE)
    session.charge(model="m", cost_usd=0.6, calls=2)
    assert session.exhausted
    assert [session.call("free", {"n": n}, ok).ok for n in range(2)] == [True, True]
    session.request()
    assert session.exhausted == CODE


def test_a_usual_turn_is_the_average_one_and_what_is_held_back_for_the_answer_is_not_left(clock: Any) -> None:
    session, ends = make(clock), []
    for cost in (0.05, 0.4, 0.15, 0.25):
        session.charge(model="m", cost_usd=cost)
        ends.append(session.exhausted)
    assert ends == [None, None, None, CODE]
    for reserve, end in ((0.1, CODE), (0.0, None)):
        held = make(clock, DEAR, reserve=reserve)
        held.charge(model="m", cost_usd=0.05)
        held.call("dear", {}, gives(Success("ok", cost_usd=0.3)))
        assert held.exhausted == end


def test_what_may_be_given_back_exhausts_nothing_and_what_was_used_does(clock: Any) -> None:
    session = make(clock, DEAR, CHEAP, FREE)
    session.charge(model="m", cost_usd=0.2, calls=3)
    held = [session.decide(tool, {"id": n}, id=f"{n}") for n, tool in enumerate(("dear", "cheap", "cheap"))]
    refused = session.call("cheap", {"n": 1}, ok)
    assert (refused.code, refused.limit_message) == (CODE, "This call is estimated at $0.10, $0.00 is left.")
    assert session.call("free", {}, ok).ok
    for decision in held:
        session.complete(decision, Success("ok", cost_usd=0))
    assert not session.exhausted
    assert session.call("dear", {"n": 2}, ok).ok
    parent = make(clock, DEAR)
    parent.charge(model="m", cost_usd=0.3, calls=1)
    with parent.child("c") as child:
        assert child.call("dear", {}, ok).ok
        assert (child.exhausted, parent.exhausted) == (CODE, None)
    assert parent.exhausted == CODE
