"""
A policy in code and in a file: guards of the library and of one's own, rules, scopes and words.
"""

import ast

from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import typing_extensions
import yaml

from annotated_types import Ge

import guardrails.core.guards

from guardrails import (
    Budget,
    Denial,
    Duplicates,
    Guard,
    Policy,
    PolicyError,
    Retryable,
    Tool,
    Truncate,
    Validation,
    guard,
)
from guardrails.cli.policy import chain_of
from guardrails.core.chain import Rule
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Keys, map_of
from guardrails.core.guards.budget import ToolBudget
from guardrails.core.values.errors import ModelError
from guardrails.core.values.units import Duration
from guardrails.policy.check import CODES
from tests.tables import table


MISTAKES = yaml.safe_load((Path(__file__).parent / "files" / "mistakes.yaml").read_text(encoding="utf-8"))


class Hours(typing_extensions.TypedDict, total=False):
    first: Annotated[int, Ge(0)]
    last: Annotated[int, Ge(0)]


@guard
class Office(Guard):
    """
    A guard with a map, a file, an alias, settings that go together, and one that a scope may not have.
    """

    aliases: ClassVar[dict[str, str]] = {"pause": "rest"}
    scope_settings: ClassVar[tuple[str, ...] | None] = ("mode", "hours")
    files: ClassVar[tuple[str, ...]] = ("holidays",)

    hours: Annotated[Hours, Keys()] = map_of(first=9, last=17)
    rest: Duration = 0.0
    holidays: str | None = None

    @property
    def remembers(self) -> int:
        return self.hours["last"] * 10

    @property
    def result_bytes(self) -> int:
        return 1_000 + self.hours["first"]

    @classmethod
    def check_settings(cls, settings: Any) -> None:
        hours = {"first": 9, "last": 17, **settings.get("hours", {})}
        if hours["first"] >= hours["last"]:
            raise ValueError("the office closes before it opens")

    def prepare(self) -> None:
        if self.holidays is not None and not Path(self.holidays).exists():
            raise ModelError(f"no file `{Path(self.holidays).name}`")

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        hour = facts.now_ms // 3_600_000 % 24
        is_open = self.hours["first"] <= hour < self.hours["last"]
        return None if is_open else Denial(code="office.hours", message="Closed.", values={"limit": 3})

    def edges(self, state: Any, mine: Any, now_ms: int) -> tuple[()]:
        return ()


@guard
class Seal(Guard):
    """
    A guard of results with words of its own, for single tools only; it is of one setting and its codes are declared.
    """

    codes = {"seal.limit": ("limit",)}  # noqa: RUF012
    word: str | None = None
    words: list[str] | None = None
    either: tuple[str, ...] | str = ()
    client: "Client | None" = None

    def shape(self, envelope: Any, *_: Any) -> Any:
        return envelope


class Client:
    pass


@guard
class Lost(Guard):
    where: "Nowhere" = None  # type: ignore[name-defined] # noqa: F821


def search(query: str) -> str:
    """Search the web."""
    return query


def load(folder: Path, text: str, *guards: Any, name: str = "policy") -> Policy:
    file = folder / f"{name}.yaml"
    file.write_text(f"version: 1\n{text}\n")
    return Policy.load(file, guards=guards)


def mistakes(*guards: Any, folder: Path | None = None, text: str = "", **settings: Any) -> list[str]:
    """
    Returns the mistakes of a policy in code, or of the *text* of a file in *folder*, each on a line.
    """
    with pytest.raises(PolicyError) as caught:
        load(folder, text, *guards) if folder else Policy(guards, **settings)
    return [one.splitlines()[0].removeprefix(f"{folder}/policy.yaml:") for one in caught.value.mistakes]


def begins(found: list[str], expected: list[str]) -> bool:
    # The order of what code gives says nothing.
    unexpected = [one for one in found if not one.startswith(tuple(expected))]
    return (unexpected, len(found)) == ([], len(expected))


# In code


def test_a_chain_is_a_list_in_the_librarys_order_with_own_guards_before_the_last() -> None:
    policy = Policy([Truncate(), Seal(word="x"), Duplicates(window=5), Budget(max_calls=20), Validation()], name="trip")
    assert str(policy) == (
        "trip\n1. Validation()\n2. Budget(max_calls=20)\n3. Duplicates()\n4. Seal(word='x')\n5. Truncate()"
    )
    assert (len(policy.chain.guards), str(Policy().chain)) == (5, "(no guards)")


def test_every_mistake_of_guards_rules_tools_and_settings_is_told_at_once() -> None:
    bad: Any = [Budget(max_calls=-1, max_cost_usd=float("nan"), mode="on"), Duplicates(window=0), Duplicates, 7]  # type: ignore[arg-type]
    bad += [Retryable(max_retries=True), Seal(), Seal(word="3"), Lost(where=3)]
    scopes: Any = {"user": [Budget(max_cost_usd=0.5, final_answer_reserve_usd=0.5)], "a": []}
    tools: Any = [
        Tool(name="a", cost_usd=-1),
        Tool(name="b", timeout=0),
        "search",
        partial(search, "x"),
        search,
        search,
    ]
    rules = [Rule(**rule) for rule, _ in MISTAKES["rules"]]
    found = mistakes(*bad, rules=rules, scopes=scopes, tools=tools, **MISTAKES["settings"])
    of_rules = [f"rules.{number}.{mistake}" for number, (_, mistake) in enumerate(MISTAKES["rules"])]
    assert begins(found, [*MISTAKES["code"], *of_rules])
    with pytest.raises(PolicyError, match="is no tool"):
        Policy().session("s", tools=["search"])  # type: ignore[list-item]


def test_what_people_write_is_made_what_its_type_is(clock: Any) -> None:
    client = Client()
    made: Any = Policy([Seal(words=["a"], either=["b"], client=client)]).chain.guards[0]  # type: ignore[arg-type]
    assert (made.words, made.either, made.client) == (["a"], ("b",), client)
    [mistake] = mistakes(Seal(client=3))  # type: ignore[arg-type]
    assert mistake.startswith("seal.client: the type of this setting cannot be checked: ")
    written: Any = Budget(max_elapsed="10m")  # type: ignore[arg-type]
    assert Policy([written]).chain.guards[0].settings() == {"max_elapsed": 600.0}
    for match in ("pay_*", ["pay_*"]):
        rule = Rule(match=match, guards={"budget": {"max_tool_calls": 0}})  # type: ignore[arg-type]
        session = Policy(rules=[rule]).session("s", clock=clock)
        assert [session.call(t, {}, lambda *_: 1).code for t in ("pay_now", "read")] == ["tools.budget.limit", None]
    declared = {"timeout": "2s", "ask_user": ["city"], "annotations": {"readOnlyHint": True}, "parameters": lambda x: x}
    plan = Policy(rules=[Rule(match="t", declared=declared)]).chain.plan("t")
    assert (plan.tool.timeout, plan.tool.ask_user, plan.tool.read_only) == (2.0, ("city",), True)
    assert plan.arguments is not None
    session = Policy([Budget(max_calls=3)], fields=(name for name in ["progress"])).session("s", clock=clock)
    progress = '"progress":{"calls_used":1,"calls_left":2}'
    assert session.call("t", {}, lambda *_: "ok").to_json() == f'{{"status":"success","result":"ok",{progress}}}'


def test_coverage_says_what_is_undeclared_unpriced_or_unguarded() -> None:
    policy = Policy(
        [Validation(), Budget(max_calls=9), Duplicates(mode="observe"), Truncate(mode="off")],
        tools=[Tool(name="pay", cost_usd=0.1)],
        rules=[Rule(match=("mcp_*",), declared={"read_only": True}, guards={"budget": {"mode": "enforce"}})],
    )
    covered = [one[:3] for one in policy.coverage(["pay", Tool(name="mcp_x"), search])]
    assert covered == [("pay", True, True), ("mcp_x", True, False), ("search", False, False)]
    # Of those that do something, not only of those that refuse.
    assert policy.coverage(["pay"])[0].guards == ("validation", "budget")
    assert Policy([Budget(), Retryable()]).coverage(["t"])[0].guards == ("retryable",)


# Own guards in a file


def test_a_class_stands_in_the_chain_only_where_the_file_has_its_key(tmp_path: Path) -> None:
    made = Office(hours={"first": 8}, rest=1800.0)
    assert list(load(tmp_path, "office: {hours: {first: 8}, pause: 30m}", Office).chain.guards) == [made]
    assert list(load(tmp_path, "budget: {}", Office).chain.guards) == list(load(tmp_path, "budget: {}").chain.guards)
    chain = load(tmp_path, "truncate: {}\noffice: {}\nsummary: {}", Office).chain
    assert [guard.name for guard in chain.guards] == ["summary", "office", "truncate"]


@table(("given", "rest"), [(Office(rest=3.0), 3.0), (Office, 0.0)])
def test_a_rule_lays_its_settings_upon_the_guard_given_made_or_by_class(
    given: Any, rest: float, tmp_path: Path
) -> None:
    rules = (
        "tools:\n  - {match: a, office: {hours: {first: 7}}}\n  - {match: '*', office: {hours: {last: 20, first: 1}}}"
    )
    chain = load(tmp_path, rules, given).chain
    for tool, first in (("a", 7), ("b", 1)):
        assert chain.plan(tool).guards == (Office(hours={"first": first, "last": 20}, rest=rest),)
    # What it asks of the library is heard of rules too.
    assert chain.window == 200
    chain = load(tmp_path, "tools: [{match: a, office: {hours: {last: 23}}}]", given).chain
    assert chain.plan("a").max_bytes == 1_009


@table(("text", "expected"), MISTAKES["own"])
def test_its_mistakes_are_told_as_those_of_the_library_are(text: str, expected: str, tmp_path: Path) -> None:
    assert begins(
        mistakes(Seal if "office.hours" in text else Office, Seal, folder=tmp_path, text=text)[:1], [expected]
    )


def test_a_file_that_it_names_is_looked_for_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "days.txt").write_text("1 May")
    text = "office: {holidays: days.txt}\ntools:\n  - {match: a, office: {holidays: days.txt}}"
    made: Any = load(tmp_path, text, Office).chain.guards[0]
    assert made.holidays == str(tmp_path / "days.txt")


# Scopes


def test_a_file_names_scopes_and_one_that_extends_it_changes_single_settings(tmp_path: Path) -> None:
    policy = load(tmp_path, MISTAKES["scopes"], name="base")
    assert {name: [str(guard) for guard in chain.guards] for name, chain in policy.scopes.items()} == {
        "tenant": ["Growth(max_tokens_per_minute=1000000)"],
        "user": ["Budget(max_calls=10, max_cost_usd=1.5, max_elapsed=2592000.0)", "Rate(max_calls_per_minute=30)"],
    }
    session = policy.session("s", scopes={"user": "u1", "tenant": "acme"})
    last = [session.call("t", {"n": n}, lambda *_: "ok") for n in range(10)][-1]
    assert last.limit_message == "All 10 calls of today are used."
    assert chain_of(policy)["scopes"]["tenant"] == [{"guard": "growth", "max_tokens_per_minute": 1_000_000}]
    assert "scope `user`" in str(policy)
    raised = load(tmp_path, "extends: ./base.yaml\nscopes: {user: {budget: {max_calls: 20}}}").scopes["user"].guards
    assert raised[0] == Budget(max_calls=20, max_cost_usd=1.5, max_elapsed=2_592_000.0)


# Words


def test_every_code_that_a_guard_writes_out_is_declared_and_begins_with_its_name() -> None:
    kinds: tuple[type[Guard], ...] = (*GUARDS, ToolBudget)
    for cls in kinds:
        assert cls.codes is not None
        assert all(code.startswith((f"{cls.name}.", f"tools.{cls.name}.")) for code in cls.codes)
    paths = Path(guardrails.core.guards.__file__).parent.rglob("*.py")
    calls = [node for path in paths for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    said = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("Denial", "Nudge")]
    codes = [one for call in said for one in (*call.args[:1], *(k.value for k in call.keywords if k.arg == "code"))]
    written = {code.value for code in codes if isinstance(code, ast.Constant)}
    assert len(written) > 4
    assert written <= CODES.keys()


@table(("messages", "wrong"), MISTAKES["words"])
def test_what_a_guard_says_may_be_worded_anew_and_what_none_says_is_a_mistake(messages: Any, wrong: str | None) -> None:
    # Of the numbers of a guard that declares no codes nothing is known.
    guards = [Seal()] if wrong and "$n" in wrong else [Seal(), Office()]
    if wrong is None:
        assert Policy(guards, messages=messages).chain.messages
    else:
        [mistake] = mistakes(*guards, messages=messages)
        assert wrong in mistake
