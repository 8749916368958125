"""
What applies to each tool.
"""

from typing import Any

from guardrails import Budget, Duplicates, Guard, Policy, Streak, Tool, ToolFilter, Truncate, guard
from guardrails.core.chain import PLANS, WINDOW, Chain, Rule
from tests.core.guards.calls import admitted, make, ok
from tests.tables import table


def rule(match: str, guards: dict[str, Any] | None = None, /, **more: Any) -> Rule:
    return Rule(**{"match": (match,), "declared": {}, "guards": guards or {}, **more})


def test_a_printed_chain_reads_as_a_list_in_order() -> None:
    assert str(Policy.load("default").chain).splitlines()[:3] == [
        " 1. ToolFilter()",
        " 2. Validation()",
        " 3. Budget(max_calls=1000, max_elapsed=604800.0)",
    ]
    guards = Policy([Truncate(), Streak(), Budget(), ToolFilter(), Duplicates()]).chain.guards
    assert [one.name for one in guards] == ["tool_filter", "budget", "streak", "duplicates", "truncate"]


def test_the_window_is_as_long_as_the_longest_that_a_guard_or_rule_asks_for() -> None:
    rules = [rule("t", {"duplicates": {"window": 90}})]
    chains = (Chain([]), Chain([Duplicates(window=5)]), Chain([Duplicates(window=50)], rules=rules))
    assert [chain.window for chain in chains] == [WINDOW, WINDOW, 90]


def test_a_plan_is_made_once_and_made_up_names_do_not_fill_the_memory() -> None:
    chain = Chain([Budget(max_calls=3)])
    assert chain.plan("t") is chain.plan("t")
    for number in range(3 * PLANS):
        chain.plan(f"made_up_{number}")
    assert len(chain.plans) <= PLANS


@guard
class Broken(Guard):
    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Any:
        if call.tool in ("read", "write"):
            raise RuntimeError


def test_rules_add_guards_turn_them_on_or_off_and_let_calls_through_where_one_fails(clock: Any) -> None:
    rules = [
        rule("pay", {"duplicates": {"window": 3}, "streak": {"max_same": 2}, "truncate": {"max_bytes": 300}}),
        rule("a", {"duplicates": {"mode": "off"}}),
        rule("b", {"streak": {"mode": "enforce", "max_same": 1}, "duplicates": {"mode": "off"}}),
        rule("read", on_error="allow"),
        rule("poll_*", mode="observe"),
    ]
    added = make(clock, rules=rules)
    assert added.call("pay", {}, lambda *_: "x" * 1_000).is_complete is False
    assert added.call("pay", {}, ok).code == "duplicates.window"
    assert [added.call("pay", {"n": n}, ok).code for n in range(2)] == [None, "streak.max_same"]
    session = make(clock, Duplicates(), Streak(max_same=1, mode="off"), Broken(), rules=rules)
    called = [(tool, session.call(tool, {}, ok).ok) for tool in ("a", "a", "b", "b", "c", "c", "poll_x", "poll_x")]
    assert "".join(f"{tool[0]}{int(ran)}" for tool, ran in called) == "a1a1b1b0c1c0p1p1"
    assert [session.call(tool, {"n": 1}, ok).code for tool in ("read", "write")] == [None, "call.error"]


@table(("name", "expected"), [("search_web", 3), ("search_mail", 5), ("read", 9), ("[x]", 9)])
def test_the_first_rule_that_matches_wins(name: str, expected: int, clock: Any) -> None:
    globs = (("search_web", 3), ("search_*", 5), ("*", 9))
    session = make(clock, rules=[rule(match, {"budget": {"max_calls": most}}) for match, most in globs])
    assert admitted(session, 12, tool=name) == expected


@table(("declared", "changes"), [
    ({}, True), ({"read_only": True}, False), ({"repeats": "evidence"}, False), ({"read_only": False}, True),
    ({"repeats": "allow"}, True),
])  # fmt: skip
def test_what_is_not_known_to_change_nothing_counts_as_changing(declared: Any, changes: bool) -> None:
    assert Chain([], {"t": Tool(name="t", **declared)}).plan("t").changes is changes
