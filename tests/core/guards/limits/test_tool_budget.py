"""
What one tool may use.
"""

from typing import Any

from guardrails import Budget, Facts, Policy, Rule, SessionState, Success, Tool, ToolCall
from guardrails.core.guards.budget import ToolBudget
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, budget: dict[str, Any], *guards: Any, match: str = "search_*", **settings: Any) -> Any:
    rules = [Rule(match=(match,), declared={}, guards={"budget": budget})]
    return Policy(guards, rules=rules, **settings).session("s", clock=clock)


def admitted(session: Any, tool: str, tries: int, execute: Any = ok) -> int:
    return sum(bool(session.call(tool, {"n": number}, execute).ok) for number in range(tries))


def test_a4_each_tool_that_matches_has_the_limit_to_itself_and_the_session_goes_on(clock: Any) -> None:
    session = make(clock, {"max_calls": 2}, Budget(max_calls=100))
    assert [admitted(session, tool, 5) for tool in ("search_web", "search_mail", "read")] == [2, 2, 5]
    envelope = session.call("search_web", {}, ok)
    assert (envelope.status, envelope.code) == ("denied", "tools.budget.max_calls")
    assert envelope.message == "`search_web` has used 2 calls of its 2 calls in this session."
    assert not session.exhausted


@table(("limit", "price", "expected"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (1.0, 0.5, 2)])
def test_a4_money_of_one_tool_is_exact_and_reserved(limit: float, price: float, expected: int, clock: Any) -> None:
    tools = [Tool(name="search_web", cost_usd=price)]
    session = make(clock, {"max_cost_usd": limit}, tools=tools)
    decisions = [session.decide("search_web", {"n": n}, id=f"{n}") for n in range(50)]
    assert sum(decision.allowed for decision in decisions) == expected
    for decision in decisions[:expected]:
        session.complete(decision, Success("ok", cost_usd=0))
    assert session.decide("search_web", {"n": 99}).allowed


def test_what_a_call_really_cost_counts_and_a_late_claim_does_not(clock: Any) -> None:
    tools = [Tool(name="search_web", cost_usd=0.1, timeout=5)]
    session = make(clock, {"max_cost_usd": 1.0}, tools=tools)
    assert admitted(session, "search_web", 1, lambda *_: Success("ok", cost_usd=0.7)) == 1
    slow = session.decide("search_web", {"n": "slow"}, id="slow")
    clock.advance(6)
    session.decide("search_web", {"n": "other"}, id="other")
    session.complete(slow, Success("ok", cost_usd=0))
    assert [session.decide("search_web", {"n": n}, id=f"{n}").allowed for n in range(2)] == [True, False]


def test_money_that_a_tool_spent_under_0_2_0_still_counts() -> None:
    call, facts = ToolCall("pay", {}, "1", None, 1), Facts(0, cost=200_000)
    for spent, refused in ((700_000, False), (900_000, True)):
        denial = ToolBudget(limit="max_cost_usd", amount=10**6).check(
            call, SessionState(), {"max_cost:pay": spent}, facts
        )
        assert (denial is not None) is refused


def test_tokens_of_one_tool_are_counted_when_its_calls_are_done(clock: Any) -> None:
    session = make(clock, {"max_tokens": 100})
    assert admitted(session, "search_web", 5, lambda *_: Success("ok", tokens=50)) == 2


def test_time_of_one_tool_is_the_time_its_calls_took(clock: Any) -> None:
    session = make(clock, {"max_elapsed": 10})
    assert admitted(session, "search_web", 5, lambda *_: clock.advance(4)) == 3
    clock.advance(1_000)
    assert session.call("search_web", {}, ok).message == "`search_web` has used 12 s of its 10 s in this session."


def test_the_names_of_the_seeds_and_a_mode_are_taken(clock: Any) -> None:
    said = {"max_tool_calls": 3, "max_total_cost_usd": 0.5, "max_elapsed": 1.001, "max_tokens": None}
    assert [*Budget.ruled(None, said)] == [
        ToolBudget(limit="max_calls", amount=3),
        ToolBudget(limit="max_cost_usd", amount=500_000),
        ToolBudget(limit="max_elapsed", amount=1_001),
    ]
    session = make(clock, {"max_calls": 1, "mode": "observe"})
    assert admitted(session, "search_web", 4) == 4


def test_more_names_than_there_are_counters_make_it_stricter_and_never_looser(clock: Any) -> None:
    session = make(clock, {"max_calls": 2}, match="*")
    counts = [admitted(session, f"tool_{number}", 4) for number in range(120)]
    assert counts[:20] == [2] * 20
    assert max(counts) == 2
    assert sum(counts[70:]) <= 4
