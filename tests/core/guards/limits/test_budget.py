"""
What a session, and one tool, may use.
"""

from typing import Any

import pytest

from guardrails import Budget, Facts, Rule, SessionState, Success, Tool, ToolCall
from guardrails.core.guards.budget import ToolBudget
from guardrails.core.refusals import usd
from tests.core.guards.calls import admitted, gives, make, ok
from tests.tables import table


def costs(usd: float) -> Any:
    return gives(Success("ok", cost_usd=usd))


def uses(tokens: int) -> Any:
    return gives(Success("ok", tokens=tokens))


DOLLAR = {"max_cost_usd": 1.0}


@table(("budget", "tool", "execute", "admits", "ends", "left"), [
    ({"max_calls": 2}, {}, ok, 2, "max_calls", {}),
    ({"max_calls": 2, **DOLLAR}, {"cost_usd": 0.4}, gives(ValueError("no")), 0, "max_calls", {"cost_left_usd": 0.2}),
    ({"max_calls": 2, **DOLLAR}, {"cost_usd": 0.4}, gives(TimeoutError("slow")), 0, "max_calls", {"cost_left_usd": 0.2}),
    (DOLLAR, {"cost_usd": 0.5}, costs(-5), 2, "max_cost_usd", {"cost_left_usd": 0.0}),
    (DOLLAR, {"cost_usd": 0.05}, costs(0.01), 15, None, {"cost_left_usd": 0.85}),
    ({**DOLLAR, "final_answer_reserve_usd": 0.3}, {"cost_usd": 0.1}, ok, 7, "max_cost_usd", {"cost_left_usd": 0.0}),
    ({"max_tokens": 100}, {}, uses(40), 3, "max_tokens", {"tokens_left": 0}),
    *(({limit: 0}, {}, ok, 0, limit, {}) for limit in ("max_calls", "max_turns", "max_cost_usd", "max_tokens")),
])  # fmt: skip
def test_a4_a_limit_ends_the_session_whatever_becomes_of_its_calls(
    budget: Any, tool: Any, execute: Any, admits: int, ends: str | None, left: dict[str, Any], clock: Any
) -> None:
    session = make(clock, Budget(**budget), tools=[Tool(name="t", **tool)])
    assert admitted(session, 15, execute) == admits
    assert session.exhausted == (ends and f"budget.{ends}")
    assert session.ledger.progress.items() >= left.items()


def test_a5_the_call_that_uses_up_the_limit_says_so_and_the_next_is_refused(clock: Any) -> None:
    session = make(clock, Budget(max_calls=2))
    first, last, over = (session.call("t", {"n": n}, ok) for n in range(3))
    assert (first.limit_message, first.ok) == (None, True)
    assert (last.limit_message, last.ok) == ("Tool call limit reached (2). Stopping tool loop.", True)
    assert (over.status, over.limit_message) == ("limit_reached", last.limit_message)
    assert over.next_action_hint == "Write the final answer from what you have."


@table(("limit", "price", "expected"), [
    (1.0, 0.1, 10), (0.3, 0.1, 3), (0.7, 0.1, 7), (1.0, 0.3, 3), (0.0003, 0.0001, 3),
])  # fmt: skip
@table("charged", ["estimate", "actual", "both"])
def test_a4_money_is_exact(limit: float, price: float, expected: int, charged: str, clock: Any) -> None:
    tool = Tool(name="t", cost_usd=0.0 if charged == "actual" else price)
    session = make(clock, Budget(max_cost_usd=limit), tools=[tool])
    if charged == "actual":
        # What nobody estimated is known only afterwards, so that the last call may go over.
        expected = -(-round(limit * 1_000_000) // round(price * 1_000_000))
    assert admitted(session, 15, ok if charged == "estimate" else costs(price)) == expected


def test_a4_50_parallel_calls_of_50_cents_under_a_dollar_admit_2(clock: Any) -> None:
    session = make(clock, Budget(max_cost_usd=1.0), tools=[Tool(name="t", cost_usd=0.5)])
    decisions = [session.decide("t", {"n": n}, id=f"call_{n}") for n in range(50)]
    assert [decision.allowed for decision in decisions] == [True, True] + [False] * 48
    refusals = {(decision.code, decision.denial.ends_session) for decision in decisions[2:]}
    assert refusals == {("budget.max_cost_usd", False)}
    for decision in decisions[:2]:
        session.complete(decision, "ok")
    assert (session.ledger.cost_usd, session.exhausted) == (1.0, "budget.max_cost_usd")


def test_a_call_that_does_not_fit_is_refused_alone_and_cheaper_ones_still_run(clock: Any) -> None:
    tools = [Tool(name="dear", cost_usd=0.6), Tool(name="cheap", cost_usd=0.1)]
    session = make(clock, Budget(max_cost_usd=1.0), tools=tools)
    assert admitted(session, 2, tool="dear") == 1
    envelope = session.call("dear", {"n": 5}, ok)
    assert (envelope.limit_message, session.exhausted) == ("This call is estimated at $0.60, $0.40 is left.", None)
    assert admitted(session, 9, tool="cheap") == 4


def test_a4_tokens_count_and_the_model_and_the_tools_share_them(clock: Any) -> None:
    session = make(clock, Budget(max_tokens=100))
    session.charge(model="m", usage={"prompt_tokens": 50, "completion_tokens": 9})
    assert session.call("t", {}, uses(41)).limit_message is not None
    assert session.exhausted == "budget.max_tokens"


def test_a4_time_ends_a_session_at_its_limit_and_not_before(clock: Any) -> None:
    session = make(clock, Budget(max_elapsed=1.001))
    assert session.call("t", {}, ok).ok
    clock.advance(1.0005)
    assert session.call("t", {"n": 2}, ok).ok
    clock.advance(0.001)
    envelope, message = session.call("t", {"n": 3}, ok), "Time limit reached (1.001 s). Stopping tool loop."
    assert (envelope.code, envelope.limit_message) == ("budget.max_elapsed", message)
    # Time that passes while a tool runs is told with its result.
    late = make(clock, Budget(max_elapsed=1.001)).call("t", {}, lambda *_: clock.advance(11))
    assert (late.ok, late.limit_message) == (True, message)


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


def test_the_names_of_the_seeds_are_accepted() -> None:
    seeds: Any = {"max_tool_calls": 1, "max_tool_turns": 2, "max_total_cost_usd": 3.0}
    more: Any = {"max_tool_iterations": 4}
    assert (Budget(**seeds), Budget(**more)) == (
        Budget(max_calls=1, max_turns=2, max_cost_usd=3.0),
        Budget(max_turns=4),
    )
    twice: Any
    for twice in ({"max_calls": 5, "max_tool_calls": 900}, {"max_tool_turns": 1, "max_tool_iterations": 2}):
        with pytest.raises(TypeError, match=r"`max_(calls|turns)` is given twice, once as `max_tool_(calls|turns)`"):
            Budget(**twice)
    given = {"max_tool_calls": 3, "max_total_cost_usd": 0.5, "max_elapsed": 1.001, "max_tokens": None}
    assert [(one.limit, one.amount) for one in Budget.ruled(None, given) if isinstance(one, ToolBudget)] == [
        ("max_calls", 3),
        ("max_cost_usd", 500_000),
        ("max_elapsed", 1_001),
    ]


@table(("micro", "text"), [(400, "$0.0004"), (-1_250_000, "-$1.25"), (12_000_000, "$12.00")])
def test_money_is_written_as_people_write_it(micro: int, text: str) -> None:
    assert usd(micro) == text


# Of one tool


def ruled(clock: Any, budget: dict[str, Any], *guards: Any, match: str = "search_*", **settings: Any) -> Any:
    return make(clock, *guards, rules=[Rule(match=match, guards={"budget": budget})], **settings)


def test_a4_each_tool_that_matches_has_the_limit_to_itself_and_the_session_goes_on(clock: Any) -> None:
    session = ruled(clock, {"max_calls": 2}, Budget(max_calls=100))
    assert [admitted(session, 5, tool=tool) for tool in ("search_web", "search_mail", "read")] == [2, 2, 5]
    envelope = session.call("search_web", {}, ok)
    assert (envelope.status, envelope.code, session.exhausted) == ("denied", "tools.budget.max_calls", None)
    assert envelope.message == "`search_web` has used 2 calls of its 2 calls in this session."
    assert admitted(ruled(clock, {"max_calls": 1, "mode": "observe"}), 4, tool="search_web") == 4


@table(("limit", "price", "expected"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (1.0, 0.5, 2)])
def test_a4_money_of_one_tool_is_exact_and_reserved(limit: float, price: float, expected: int, clock: Any) -> None:
    session = ruled(clock, {"max_cost_usd": limit}, tools=[Tool(name="search_web", cost_usd=price)])
    decisions = [session.decide("search_web", {"n": n}, id=f"{n}") for n in range(50)]
    assert sum(decision.allowed for decision in decisions) == expected
    for decision in decisions[:expected]:
        session.complete(decision, Success("ok", cost_usd=0))
    assert session.decide("search_web", {"n": 99}).allowed


def test_what_a_call_of_a_tool_really_used_counts_and_a_late_claim_does_not(clock: Any) -> None:
    session = ruled(clock, {"max_cost_usd": 1.0}, tools=[Tool(name="search_web", cost_usd=0.1, timeout=5)])
    assert admitted(session, 1, costs(0.7), "search_web") == 1
    slow = session.decide("search_web", {"n": "slow"}, id="slow")
    clock.advance(6)
    session.decide("search_web", {"n": "other"}, id="other")
    session.complete(slow, Success("ok", cost_usd=0))
    assert [session.decide("search_web", {"n": n}, id=f"{n}").allowed for n in range(2)] == [True, False]
    assert admitted(ruled(clock, {"max_tokens": 100}), 5, uses(50), "search_web") == 2
    timed = ruled(clock, {"max_elapsed": 10})
    assert admitted(timed, 5, lambda *_: clock.advance(4), "search_web") == 3
    clock.advance(1_000)
    assert timed.call("search_web", {}, ok).message == "`search_web` has used 12 s of its 10 s in this session."


@table(("spent", "refused"), [(700_000, False), (900_000, True)])
def test_money_that_a_tool_spent_under_0_2_0_still_counts(spent: int, refused: bool) -> None:
    guard, call = ToolBudget(limit="max_cost_usd", amount=10**6), ToolCall("pay", {}, "1", None, 1)
    denial = guard.check(call, SessionState(), {"max_cost:pay": spent}, Facts(0, cost=200_000))
    assert (denial is not None) is refused


def test_more_names_than_there_are_counters_make_it_stricter_and_never_looser(clock: Any) -> None:
    session = ruled(clock, {"max_calls": 2}, match="*")
    counts = [admitted(session, 4, tool=f"tool_{number}") for number in range(120)]
    assert (counts[:20], max(counts), sum(counts[70:]) <= 4) == ([2] * 20, 2, True)
