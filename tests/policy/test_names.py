"""
Looks are told from work by names, in shipped policies and in those made in code (MISSION A6).
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import READ_ONLY_NAMES, Duplicates, Loops, Policy, Rule, Tool
from guardrails.core.values.tool_name import own_name
from tests.tables import table


LOOKS = (
    "get_x",
    "list_files",
    "find_user",
    "search",
    "search_docs",
    "read_file",
    "lookup",
    "fetch",
    "fetch_page",
    "Read",
)
WORK = (
    *(
        "get_or_create",
        "read_and_clear",
        "fetch_and_lock",
        "get_lock",
        "list_on_market",
        "list_car_for_sale",
        "get_rid_of",
    ),
    *("search_and_replace", "search_replace", "find_then_fix", "get_next_mail", "fetch_add", "read_aloud", "get_paid"),
    *("get_human_input", "get_user_approval", "list_append", "get_and_delete", "get-and-delete", "getAndDelete"),
    *(
        "check_in",
        "checkout",
        "buy",
        "run",
        "open_account",
        "edit_file",
        "frobnicate",
        "budget_x",
        "forget_x",
        "thread_x",
    ),
)
PREFIXES = ("", "mcp__server__", "server__", "server/", "server.", "server:", "functions.", "a__b/", "read_ai__")
CODE = Policy([Duplicates(rule="evidence"), Loops()], rules=READ_ONLY_NAMES)
POLICIES = {"code": CODE, **{name: Policy.load(name) for name in ("default", "strict", "observe", "agent")}}


def changes(policy: Policy, name: str) -> bool:
    return policy.chain.plan(name).changes


@table("policy", POLICIES)
@table("prefix", PREFIXES)
def test_a_prefix_of_the_host_alters_no_name(prefix: str, policy: str) -> None:
    seen = {name: changes(POLICIES[policy], prefix + name) for name in (*LOOKS, *WORK)}
    assert seen == {**dict.fromkeys(LOOKS, False), **dict.fromkeys(WORK, True)}


@table("name", ["server-get_x", "github-mcp-server-get_file", "linear-list_issues", "get_user-profile"])
def test_a_server_may_stand_before_a_hyphen(name: str) -> None:
    assert not changes(CODE, name)


@table(
    "name",
    [
        *("mark-read_all", "force-get_lock", "un-list_item", "drop-get_x", "set-read_only", "bulk-read_receipts"),
        *("pre-search", "get-forecast", "reset-the-list_view", "server-get_or_create", "server-edit_file"),
        *("get_started__buy", "get_started/open_account", "get_started-open_account", "search.run", "list_co:pay"),
    ],
)
def test_a_verb_that_is_not_the_tools_own_makes_no_look(name: str) -> None:
    assert changes(CODE, name)


def test_a_policy_made_in_code_guesses_nothing_unless_it_is_told_to() -> None:
    assert changes(Policy([Duplicates(rule="evidence"), Loops()]), "get_x")


def test_the_names_are_those_of_the_shipped_policy() -> None:
    shipped = [rule for rule in Policy.load("default").chain.rules if "read_only" in rule.declared]
    assert [*READ_ONLY_NAMES] == shipped
    assert [rule for rule in Policy.load("agent").chain.rules if rule in shipped] == shipped


def test_a_declaration_and_a_rule_of_ones_own_outweigh_a_name() -> None:
    rules = [Rule(match="get_key", declared={"read_only": False}), *READ_ONLY_NAMES]
    policy = Policy([Loops()], rules=rules, tools=[Tool(name="get_lease", read_only=False), Tool(name="get_x")])
    assert [changes(policy, name) for name in ("get_key", "get_lease", "get_x")] == [True, True, False]


@table("between", ["get_order", "server-get_order", "mcp__server__get_order"])
def test_looks_between_free_no_look_in_a_policy_made_in_code(between: str, clock: Any) -> None:
    one = Policy([Duplicates(rule="evidence", window=20)], rules=READ_ONLY_NAMES).session(between, clock=clock)
    heard = []
    for tool in ("read_file", between, "read_file", between, "read_file"):
        clock.advance(5)
        heard.append(one.call(tool, {"of": 1}, lambda _tool, _arguments: "same").ok)
    assert heard == [True, True, True, True, False]


@given(st.text(max_size=40))
def test_the_own_name_of_a_tool_is_the_end_of_its_name(name: str) -> None:
    assert name.endswith(own_name(name))
    assert own_name(name) in (name, *(name[at + 1 :] for at, mark in enumerate(name) if mark in "_/.:-"))


@table("part", ["a-", "a_", "__", "get_", "-_", "."])
def test_a_name_of_a_megabyte_has_an_own_name_too(part: str) -> None:
    assert own_name(part * (1_000_000 // len(part)) + "_x/search_x") == "search_x"
