"""
Looks are told from work by the words of names, where a policy says so (MISSION A6).
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Duplicates, Loops, Policy, Rule, Tool
from guardrails.core.values.names import look_by_name, own_name
from tests.tables import table


NAMES = {
    True: """get_x list_files find_user search search_docs read_file lookup fetch_page Read Grep WebSearch webFetch get_news
list_bookings get_payments get_settings get_dataset list_assets canvas_list_courses bigquery-list_datasets
confluence_get_page describe_table browser_snapshot get_order list_issues get_post server-get_x
retrieve_document check_balance git_status""",
    False: """edit_file create_issue send_email bookFlight makePayment upload_file insert_rows update_status set_status
press_key scroll go_back undo roll_dice deposit add_to_cart pay click buy open_account mark-read_all drop-get_x
set-read_only browser_press_key slack_post_message chat_postMessage""",
    None: """get_or_create find_then_fix read_and_clear get_next_mail fetch_add list_append getOrCreate fetchAndStore
get_lock search_replace get_human_input get_user_approval get_token_refresh list_reorder query sql frobnicate
budget_x forget_x thread_x canvas_update_list gmail_mark_read canvas_mark_module_read git_log""",
}
"""Looks, work, and those that do not say."""
PREFIXES = ("", "mcp__server__", "server__", "server/", "server.", "server:", "functions.", "a__b/", "read_ai__")


@table("prefix", PREFIXES)
def test_a_word_of_a_look_makes_a_look_and_one_of_work_makes_none(prefix: str) -> None:
    for kind, names in NAMES.items():
        assert {look_by_name(prefix + name) for name in names.split()} == {kind}


@table("name", ["default", "strict", "observe", "agent"])
def test_shipped_policies_go_by_names_and_one_made_in_code_only_if_it_is_told_to(name: str) -> None:
    assert not Policy.load(name).chain.plan("get_x").changes
    assert Policy([Loops()]).chain.plan("get_x").changes
    assert not Policy([Loops()], by_name=True).chain.plan("get_x").changes


def test_a_declaration_and_a_rule_of_ones_own_outweigh_a_name() -> None:
    rules = [Rule(match="get_key", declared={"read_only": False})]
    tools = [Tool(name="get_lease", read_only=False), Tool(name="get_x")]
    policy = Policy([Loops()], rules=rules, tools=tools, by_name=True)
    assert [policy.chain.plan(name).changes for name in ("get_key", "get_lease", "get_x")] == [True, True, False]


@table("between", ["get_order", "server-get_order", "mcp__server__get_order"])
def test_looks_between_free_no_look(between: str, clock: Any) -> None:
    one = Policy([Duplicates(rule="evidence", window=20)], by_name=True).session(between, clock=clock)
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
