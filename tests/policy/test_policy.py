"""
The settings of a kind of session.
"""

from functools import partial
from typing import Any

import pytest

from guardrails import (
    Budget,
    Denial,
    Denials,
    Duplicates,
    Guard,
    Policy,
    PolicyError,
    Retryable,
    Rule,
    SessionError,
    Summary,
    Tool,
    ToolFilter,
    Truncate,
    Validation,
    guard,
)
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


@guard
class Mine(Guard):
    limit: int = 1

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        return Denial(code="mine.limit", message="No.") if state.calls >= self.limit else None


def search(query: str) -> str:
    """Search the web."""
    return query


def mistakes(**settings: Any) -> list[str]:
    guards = settings.pop("guards", [])
    with pytest.raises(PolicyError) as caught:
        Policy(guards, **settings)
    return caught.value.mistakes


def test_a_chain_is_a_list_in_the_librarys_order_with_own_guards_before_the_last() -> None:
    policy = Policy([Truncate(), Mine(limit=3), Duplicates(window=5), Budget(max_calls=20), Validation()], name="trip")
    assert str(policy) == (
        "trip\n1. Validation()\n2. Budget(max_calls=20)\n3. Duplicates()\n4. Mine(limit=3)\n5. Truncate()"
    )
    assert [guard.name for guard in policy.chain.guards] == ["validation", "budget", "duplicates", "mine", "truncate"]
    assert (len(policy.chain.guards), str(Policy().chain)) == (5, "(no guards)")


def test_every_mistake_is_told_at_once() -> None:
    bad: Any = [Budget(max_calls=-1, max_cost_usd=float("nan"), mode="on"), Duplicates(window=0), Duplicates, 7]  # type: ignore[arg-type]
    bad += [Retryable(max_retries=True), ToolFilter(deny="rm"), Mine(), Mine(limit="3")]  # type: ignore[arg-type]
    found = mistakes(
        guards=bad,
        mode="enforced",
        on_error="Deny",
        envelope="flat",
        fields=["progress", "staus"],
        messages={"budget.max_calls": {"mesage": "x"}},
        prices={"m": {"input": 1.0}, "n": {"input_mtok": -1.0}},
        tools=[Tool(name="a", cost_usd=-1), Tool(name="b", timeout=0), "search", search, search],
    )
    expected = [
        "`<class 'guardrails.core.guards.duplicates.Duplicates'>` is no guard: write one such as `Budget(max_calls=20)`",
        "`7` is no guard",
        "`mine` is given twice",
        "mode: not one of `enforce`, `observe`, `off`: got `'enforced'`, did you mean `enforce`?",
        "on_error: not one of `deny`, `allow`: got `'Deny'`, did you mean `deny`?",
        "envelope: not one of `nested`, `merged`, `quiet`: got `'flat'`",
        "prices.m: unknown key `input`, did you mean `input_mtok`?",
        "prices.m: missing key `input_mtok`",
        "prices.n.input_mtok: must be at least 0, got `-1.0`",
        "messages.budget.max_calls: unknown key `mesage`, did you mean `message`?",
        "fields.1: not one of ",
        "budget.mode: not one of `enforce`, `observe`, `off`: got `'on'`",
        "budget.max_calls: must be at least 0, got `-1`",
        "budget.max_cost_usd: must be at least 0, got `nan`",
        "duplicates.window: must be at least 1, got `0`",
        "retryable.max_retries: not a whole number: got `True`",
        "tool_filter.deny: not a list: got `'rm'`",
        "tools: `'search'` is no tool",
        "tools: `search` is given twice",
        "tools.a.cost_usd: must be at least 0, got `-1`",
        "tools.b.timeout",
    ]
    assert len(found) == len(expected)
    assert [said for said, start in zip(found, expected, strict=True) if not said.startswith(start)] == []


@table("tool", ["search", 7, partial(search, "x"), None])
def test_what_is_no_tool_is_refused_for_a_policy_and_for_a_session(tool: Any) -> None:
    assert "is no tool" in mistakes(tools=[tool])[0]
    with pytest.raises(PolicyError, match="is no tool"):
        Policy().session("s", tools=[tool])


def test_fields_may_be_any_iterable(clock: Any) -> None:
    policy = Policy([Budget(max_calls=3)], fields=(name for name in ["progress"]))
    assert policy.session("s", clock=clock).call("t", {}, ok).to_json() == (
        '{"status":"success","result":"ok","progress":{"calls_used":1,"calls_left":2}}'
    )


@table("name", ["", "../x", "a/b", "x" * 257])
def test_d8_a_bad_session_name_is_refused_before_anything_is_done(name: str, tmp_path: Any) -> None:
    records = tmp_path / "records.jsonl"
    with pytest.raises(SessionError):
        Policy([Budget(max_calls=1)]).session(name, records=records)
    assert not records.exists() or records.read_bytes() == b""


def test_coverage_says_what_is_undeclared_unpriced_or_unguarded() -> None:
    policy = Policy(
        [Validation(), Budget(max_calls=9), Duplicates(mode="observe")],
        tools=[Tool(name="pay", cost_usd=0.1)],
        rules=[Rule(match=("mcp_*",), declared={"read_only": True}, guards={"budget": {"mode": "enforce"}})],
    )
    told = {covered.tool: covered for covered in policy.coverage(["pay", "mcp_x", search])}
    assert (told["pay"].declared, told["pay"].priced) == (True, True)
    assert (told["mcp_x"].declared, told["mcp_x"].priced) == (True, False)
    assert (told["search"].declared, told["search"].priced) == (False, False)
    assert {"validation", "budget"} <= set(told["pay"].guards)
    assert "duplicates" not in told["pay"].guards
    # Of those that do something, not only of those that refuse.
    policy = Policy([Budget(), Denials(), Retryable(), Summary(mode="observe"), Truncate(mode="off"), Validation()])
    assert policy.coverage(["t"])[0].guards == ("validation", "denials", "retryable")


def test_a_policy_and_its_chain_say_what_they_are() -> None:
    policy = Policy([Budget(max_calls=3), Truncate()], tools=[search], mode="observe", name="trip")
    assert repr(policy) == "Policy('trip', Chain(Budget(max_calls=3), Truncate(); mode=observe; tools: 1))"
    assert repr(Policy().chain) == "Chain()"
    assert repr(Policy(rules=[Rule(match=("t",), declared={}, guards={})]).chain) == "Chain(rules: 1)"
