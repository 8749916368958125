"""
What a session may use.
"""

from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy, Success, Tool
from guardrails.core.refusals import usd
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def admitted(session: Any, tries: int, execute: Any = ok, tool: str = "t") -> int:
    return sum(bool(session.call(tool, {"n": number}, execute).ok) for number in range(tries))


def test_a5_the_call_that_uses_up_the_limit_says_so_and_the_next_is_refused(clock: Any) -> None:
    session = make(clock, Budget(max_calls=2))
    first, last, over = (session.call("t", {"n": n}, ok) for n in range(3))
    assert (first.limit_message, first.ok) == (None, True)
    assert (last.limit_message, last.ok) == ("Tool call limit reached (2). Stopping tool loop.", True)
    assert (over.status, over.limit_message) == ("limit_reached", last.limit_message)
    assert over.next_action_hint == "Write the final answer from what you have."


@table(
    ("limit", "price", "expected"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (0.7, 0.1, 7), (1.0, 0.3, 3), (0.0003, 0.0001, 3)]
)
@table("charged", ["estimate", "actual", "both"])
def test_a4_money_is_exact(limit: float, price: float, expected: int, charged: str, clock: Any) -> None:
    tool = Tool(name="t", cost_usd=0.0 if charged == "actual" else price)
    session = make(clock, Budget(max_cost_usd=limit), tools=[tool])
    execute = ok if charged == "estimate" else lambda *_: Success("ok", cost_usd=price)
    if charged == "actual":
        # What nobody estimated is known only afterwards, so that the last call may go over.
        expected = -(-round(limit * 1_000_000) // round(price * 1_000_000))
    assert admitted(session, 15, execute) == expected


def test_a4_50_parallel_calls_of_50_cents_under_a_dollar_admit_2(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1.0), tools=[Tool(name="t", cost_usd=0.5)])
    decisions = [session.decide("t", {"n": n}, id=f"call_{n}") for n in range(50)]
    assert [decision.allowed for decision in decisions] == [True, True] + [False] * 48
    assert {decision.code for decision in decisions[2:]} == {"budget.max_cost_usd"}
    assert not any(decision.denial.ends_session for decision in decisions[2:])
    for decision in decisions[:2]:
        session.complete(decision, "ok")
    assert (session.ledger.cost_usd, session.exhausted) == (1.0, "budget.max_cost_usd")


def test_an_estimate_is_given_back_where_the_call_cost_less(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1.0), tools=[Tool(name="t", cost_usd=0.6)])
    assert admitted(session, 3, lambda *_: Success("ok", cost_usd=0.1)) == 3
    assert session.ledger.progress["cost_left_usd"] == 0.7


def test_a_call_that_does_not_fit_is_refused_alone_and_cheaper_ones_still_run(clock: Any) -> None:
    tools = [Tool(name="dear", cost_usd=0.6), Tool(name="cheap", cost_usd=0.1)]
    session = make(clock, Budget(max_cost_usd=1.0), tools=tools)
    assert admitted(session, 2, tool="dear") == 1
    envelope = session.call("dear", {"n": 5}, ok)
    assert envelope.limit_message == "This call is estimated at $0.60, $0.40 is left."
    assert not session.exhausted
    assert admitted(session, 9, tool="cheap") == 4


@table("error", [ValueError("no"), TimeoutError("slow")])
def test_a4_failing_tools_are_not_free(error: Exception, clock: Any) -> None:
    def fails(*_: Any) -> None:
        raise error

    session = make(clock, Budget(max_calls=2, max_cost_usd=1.0), tools=[Tool(name="t", cost_usd=0.4)])
    assert [session.call("t", {"n": n}, fails).status for n in range(3)] == ["error", "error", "limit_reached"]
    assert session.ledger.cost_usd == 0.8


def test_a_denied_call_is_charged_nothing(clock: Any) -> None:
    session = make(clock, Budget(max_calls=5, max_cost_usd=1.0), Duplicates(), tools=[Tool(name="t", cost_usd=0.2)])
    session.call("t", {}, ok)
    before = session.ledger.progress
    for _ in range(20):
        assert not session.call("t", {}, ok).ok
    assert session.ledger.progress == before


def test_a_tool_that_claims_to_have_cost_less_than_nothing_is_charged_its_estimate(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1.0), tools=[Tool(name="t", cost_usd=0.5)])
    assert admitted(session, 5, lambda *_: Success("ok", cost_usd=-5)) == 2


def test_of_a_limit_that_is_spent_to_the_cent_nothing_is_left(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1))
    assert session.call("t", {}, lambda *_: Success("ok", cost_usd=1)).progress == {"calls_used": 1, "cost_left_usd": 0}


def test_a4_tokens_count_and_the_model_and_the_tools_share_them(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=100))
    session.charge(model="m", usage={"prompt_tokens": 50, "completion_tokens": 9})
    assert session.call("t", {}, lambda *_: Success("ok", tokens=41)).limit_message is not None
    assert session.exhausted == "budget.max_tokens"


def test_a4_time_ends_a_session_at_its_limit_and_not_before(clock: Any) -> None:
    session = make(clock, Budget(max_elapsed=1.001))
    session.call("t", {}, ok)
    clock.advance(1.0005)
    assert session.call("t", {"n": 2}, ok).ok
    clock.advance(0.001)
    envelope = session.call("t", {"n": 3}, ok)
    assert (envelope.code, envelope.limit_message) == (
        "budget.max_elapsed",
        "Time limit reached (1.001 s). Stopping tool loop.",
    )


def test_time_that_passes_while_a_tool_runs_is_told_with_its_result(clock: Any) -> None:
    session = make(clock, Budget(max_elapsed=10))
    envelope = session.call("t", {}, lambda *_: clock.advance(11))
    assert (envelope.ok, envelope.limit_message) == (True, "Time limit reached (10 s). Stopping tool loop.")


def test_a_clock_that_goes_back_or_jumps_never_gives_time_back(clock: Any) -> None:
    session = make(clock, Budget(max_elapsed=10))
    session.call("t", {}, ok)
    clock.advance(8)
    assert session.ledger.progress["seconds_left"] == 2
    clock.advance(-1_000_000)
    assert session.ledger.progress["seconds_left"] == 10
    assert session.call("t", {"n": 2}, ok).ok
    clock.advance(1_000_011)
    assert session.call("t", {"n": 3}, ok).code == "budget.max_elapsed"
    clock.advance(-5_000_000)
    assert session.exhausted


def test_money_for_the_final_answer_is_held_back(clock: Any) -> None:
    guard = Budget(max_cost_usd=1.0, final_answer_reserve_usd=0.3)
    session = make(clock, guard, tools=[Tool(name="t", cost_usd=0.1)])
    assert admitted(session, 20) == 7
    assert (session.exhausted, session.ledger.cost_usd) == ("budget.max_cost_usd", 0.7)


@table("limit", ["max_calls", "max_turns", "max_cost_usd", "max_tokens"])
def test_a_limit_of_zero_admits_nothing(limit: str, clock: Any) -> None:
    settings: Any = {limit: 0}
    session = make(clock, Budget(**settings))
    assert session.exhausted
    assert admitted(session, 2) == 0


def test_the_names_of_the_seeds_are_accepted(clock: Any) -> None:
    seeds: Any = {"max_tool_calls": 1, "max_tool_turns": 2, "max_total_cost_usd": 3.0}
    assert Budget(**seeds) == Budget(max_calls=1, max_turns=2, max_cost_usd=3.0)
    more: Any = {"max_tool_iterations": 4}
    assert Budget(**more) == Budget(max_turns=4)
    for twice in ({"max_calls": 5, "max_tool_calls": 900}, {"max_tool_turns": 1, "max_tool_iterations": 2}):
        settings: Any = twice
        with pytest.raises(TypeError, match=r"`max_(calls|turns)` is given twice, once as `max_tool_(calls|turns)`"):
            Budget(**settings)


@table(
    ("micro", "text"),
    [
        (400, "$0.0004"),
        (-1_250_000, "-$1.25"),
        (12_000_000, "$12.00"),
    ],
)
def test_money_is_written_as_people_write_it(micro: int, text: str) -> None:
    assert usd(micro) == text
