"""
What is written in code is held to the rules of a file.
"""

from typing import Annotated, Any

import pytest

from annotated_types import Ge

from guardrails import Budget, Guard, Policy, PolicyError, Rule, Tool, guard
from tests.tables import table


class Client:
    pass


@guard
class Words(Guard):
    words: list[str] | None = None
    either: tuple[str, ...] | str = ()
    count: Annotated[int, Ge(0)] = 0


@guard
class Lost(Guard):
    where: "Nowhere" = None  # type: ignore[name-defined] # noqa: F821


@guard
class Holds(Guard):
    client: Client | None = None
    words: tuple[str, ...] = ()


def mistakes(*guards: Any, **settings: Any) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Policy(guards, **settings)
    return caught.value.mistakes


# Own guards


def test_a_list_becomes_a_tuple_only_where_the_setting_is_one() -> None:
    made: Any = Policy([Words(words=["a"], either=["b"])]).chain.guards[0]  # type: ignore[arg-type]
    assert (made.words, made.either) == (["a"], ("b",))
    written: Any = Budget(max_elapsed="10m")  # type: ignore[arg-type]
    assert Policy([written]).chain.guards[0].settings() == {"max_elapsed": 600.0}


def test_a_setting_may_be_an_object_and_one_that_cannot_be_checked_is_named() -> None:
    client = Client()
    assert Policy([Holds(client=client)]).chain.guards[0] == Holds(client=client)
    (said,) = mistakes(Holds(client=3))  # type: ignore[arg-type]
    assert said.startswith(
        "holds.client: the type of this setting cannot be checked: Unable to generate pydantic-core schema"
    )
    (said,) = mistakes(Lost(where=3))
    assert said.startswith("lost.where: the type of this setting cannot be checked: ")


# Rules


@table("match", ["pay_*", ("pay_*",), ["pay_*"]])
def test_a_rule_may_match_one_glob_or_several(match: Any, clock: Any) -> None:
    rule = Rule(match=match, guards={"budget": {"max_tool_calls": 0}})
    session = Policy(rules=[rule]).session("s", clock=clock)
    said = [session.call(tool, {}, lambda *_: 1).code for tool in ("pay_now", "read")]
    assert said == ["tools.budget.max_calls", None]


def test_a_rule_takes_what_people_write() -> None:
    declared = {"timeout": "2s", "ask_user": ["city"], "annotations": {"readOnlyHint": True}, "parameters": lambda x: x}
    plan = Policy(rules=[Rule(match="t", declared=declared)]).chain.plan("t")
    assert (plan.tool.timeout, plan.tool.ask_user, plan.tool.read_only) == (2.0, ("city",), True)
    assert plan.arguments is not None


RULES: list[tuple[Any, str]] = [
    (Rule(match="b["), "match.0: a glob that matches no name"),
    (Rule(match=""), "match.0: a glob that matches no name"),
    (Rule(match=()), "match: must have a length of at least 1, got 0"),
    (Rule(match=7), "match: not text or a list: got `7`"),  # type: ignore[arg-type]
    (Rule(match="x", declared={"pollng": True}), "declared: unknown key `pollng`, did you mean `polling`?"),
    (Rule(match="x", declared={"cost_usd": -1.0}), "declared.cost_usd: must be at least 0, got `-1.0`"),
    (Rule(match="x", declared={"parameters": {"type": "strng"}}), "declared.parameters: the schema of the arguments"),
    (Rule(match="x", declared=7), "declared: not a map of keys: got `7`"),  # type: ignore[arg-type]
    (Rule(match="x", guards={"budgt": {}}), "guards: unknown key `budgt`, did you mean `budget`?"),
    (Rule(match="x", guards={"growth": {}}), "guards: unknown key `growth`"),
    (Rule(match="x", guards={"budget": {"max_calls": "3"}}), "guards.budget.max_calls: not a whole number: got `'3'`"),
    (Rule(match="x", guards={"budget": {"max_calls": 1, "max_tool_calls": 2}}), "guards.budget: `max_calls` is given"),
    (Rule(match="x", guards={"budget": 3}), "guards.budget: not a map of keys: got `3`"),  # type: ignore[dict-item]
    (Rule(match="x", mode="on"), "mode: not one of `enforce`, `observe`, `off`: got `'on'`"),  # type: ignore[arg-type]
    (Rule(match="x", on_error="ignore"), "on_error: not one of `deny`, `allow`: got `'ignore'`"),
]


def test_the_mistakes_of_all_rules_guards_and_tools_are_told_at_once() -> None:
    found = mistakes(
        Budget(max_cost_usd=0.5, final_answer_reserve_usd=0.5),
        rules=[rule for rule, _ in RULES],
        tools=[Tool(name="t", parameters={"type": "strng"})],
        messages={"budget.nope": {"message": "x"}},
    )
    expected = [
        "messages: no guard says `budget.nope`",
        "budget: final_answer_reserve_usd ($0.50) must be below max_cost_usd ($0.50)",
        *(f"rules.{number}.{said}" for number, (_, said) in enumerate(RULES)),
        "tools.t.parameters: the schema of the arguments is not valid",
    ]
    assert len(found) == len(expected)
    assert [said for said, start in zip(found, expected, strict=True) if not said.startswith(start)] == []
