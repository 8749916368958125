"""
What applies to each tool.
"""

from typing import Any

from guardrails import (
    Budget,
    Chain,
    Denials,
    Duplicates,
    Growth,
    Policy,
    Rate,
    Retryable,
    Rule,
    Streak,
    Summary,
    Tool,
    ToolFilter,
    Truncate,
    Validation,
)
from guardrails.core.chain import PLANS, WINDOW
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def rule(match: str, guards: dict[str, Any] | None = None, /, **declared: Any) -> Rule:
    return Rule(match=(match,), declared=declared, guards=guards or {})


def test_a_printed_chain_reads_as_a_list_in_order() -> None:
    assert str(Policy.load("default").chain).splitlines()[:3] == [
        " 1. ToolFilter()",
        " 2. Validation()",
        " 3. Budget(max_calls=1000, max_elapsed=604800.0)",
    ]
    everything = [Truncate(), Summary(), Retryable(), Duplicates(), Denials(), Streak(), Rate(), Growth(), Budget()]
    names = [guard.name for guard in Policy([*everything, Validation(), ToolFilter()]).chain.guards]
    assert names == [
        "tool_filter",
        "validation",
        "budget",
        "growth",
        "rate",
        "streak",
        "denials",
        "duplicates",
        "retryable",
        "summary",
        "truncate",
    ]


def test_the_window_is_as_long_as_the_longest_that_a_guard_or_rule_asks_for() -> None:
    assert Chain([]).window == WINDOW
    assert Chain([Duplicates(window=5)]).window == WINDOW
    assert Chain([Duplicates(window=50)]).window == 50
    assert Chain([Duplicates(window=50)], rules=[rule("t", {"duplicates": {"window": 90}})]).window == 90


def test_a_plan_is_made_once_and_made_up_names_do_not_fill_the_memory() -> None:
    chain = Chain([Budget(max_calls=3)])
    assert chain.plan("t") is chain.plan("t")
    for number in range(3 * PLANS):
        chain.plan(f"made_up_{number}")
    assert len(chain.plans) <= PLANS


def test_rules_add_guards_that_the_chain_does_not_have(clock: Any) -> None:
    rules = [rule("pay", {"duplicates": {"window": 3}, "streak": {"max_same": 2}, "truncate": {"max_bytes": 300}})]
    session = Policy(rules=rules).session("s", clock=clock)
    assert session.call("pay", {}, lambda *_: "x" * 1_000).is_complete is False
    assert session.call("pay", {}, ok).code == "duplicates.window"
    assert [session.call("pay", {"n": n}, ok).code for n in range(2)] == [None, "streak.max_same"]
    assert [session.call("look", {}, ok).ok for _ in range(5)] == [True] * 5


@table(("name", "expected"), [("search_web", 3), ("search_mail", 5), ("read", 9), ("[x]", 9)])
def test_the_first_rule_that_matches_wins(name: str, expected: int, clock: Any) -> None:
    rules = [
        rule("search_web", {"budget": {"max_calls": 3}}),
        rule("search_*", {"budget": {"max_calls": 5}}),
        rule("*", {"budget": {"max_calls": 9}}),
    ]
    session = Policy(rules=rules).session("s", clock=clock)
    assert sum(session.call(name, {"n": n}, ok).ok for n in range(12)) == expected


def test_a_rule_may_turn_a_guard_on_or_off_for_its_tools(clock: Any) -> None:
    rules = [rule("a", {"duplicates": {"mode": "off"}}), rule("b", {"streak": {"mode": "enforce"}})]
    guards = [Duplicates(), Streak(max_same=1, mode="off")]
    session = Policy(guards, rules=rules).session("s", clock=clock)
    assert [session.call("a", {}, ok).ok for _ in range(2)] == [True, True]
    assert [session.call("b", {"n": n}, ok).ok for n in range(2)] == [True, False]
    assert [session.call("c", {}, ok).ok for _ in range(2)] == [True, False]


def test_a_rule_may_let_calls_through_where_a_guard_fails(clock: Any) -> None:
    from guardrails import Guard, guard

    @guard
    class Broken(Guard):
        def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Any:
            raise RuntimeError

    rules = [Rule(match=("read",), declared={}, guards={}, on_error="allow")]
    session = Policy([Broken()], rules=rules).session("s", clock=clock)
    assert [session.call(tool, {}, ok).code for tool in ("read", "write")] == [None, "call.error"]


@table(
    ("tool", "changes"),
    [
        (Tool(name="t"), True),
        (Tool(name="t", read_only=True), False),
        (Tool(name="t", repeats="evidence"), False),
        (Tool(name="t", read_only=False), True),
        (Tool(name="t", repeats="allow"), True),
    ],
)
def test_what_is_not_known_to_change_nothing_counts_as_changing(tool: Tool, changes: bool) -> None:
    assert Chain([], {tool.name: tool}).plan("t").changes is changes
