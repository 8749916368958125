"""
Names of sessions, which reach no file outside, and of tools, whose words tell looks from work (MISSION D8, A6).
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, Loops, Policy, Tool
from guardrails.core.chain import Rule
from guardrails.core.values.names import checked_id, look_by_name, own_name, session_name
from guardrails.errors import SessionError
from tests.tables import table


NAMES = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text())


@table(("name", "said"), NAMES["refused"])
def test_d8_a_name_that_could_reach_outside_is_refused(name: Any, said: str) -> None:
    with pytest.raises(SessionError, match=said):
        checked_id(name)


SOUND = ["trip-42", "x" * 256, "é" * 128, "user@example.org:7", "a b", ".", "日本", "C:x", "می‌خواهم", "👩‍🔬", "שלום"]


@table("name", SOUND)
def test_d8_other_names_are_kept_as_they_are(name: str) -> None:
    assert checked_id(name) is session_name(name) is name


@given(st.text(), st.text())
def test_d8_a_hosts_names_are_harmless_path_parts_and_two_threads_never_share_a_session(one: str, other: str) -> None:
    name = session_name(one)
    assert not set(name) & {"/", "\\", "\x00", "\n"}
    assert ".." not in name
    assert 0 < len(name.encode()) <= 256
    assert checked_id(name) is name
    assert (name == session_name(other)) == (one == other)


def test_d8_the_name_of_a_child_is_held_to_the_same(clock: Any) -> None:
    session = Policy([Budget(max_calls=3)]).session("s", clock=clock)
    for name in ("", "..", "a/b"):
        with pytest.raises(SessionError):
            session.child(name)
    assert session.child("sub").id == "s/sub"


# Tools


PREFIXES = ("", "mcp__server__", "server__", "server/", "server.", "server:", "functions.", "a__b/", "read_ai__")


@table("prefix", PREFIXES)
def test_a_word_of_a_look_makes_a_look_and_one_of_work_makes_none(prefix: str) -> None:
    for kind, names in ((True, "looks"), (False, "work"), (None, "silent")):
        assert {look_by_name(prefix + name) for name in NAMES[names].split()} == {kind}


def test_shipped_policies_go_by_names_and_declarations_and_rules_outweigh_them() -> None:
    for name in ("default", "strict", "observe", "agent"):
        assert not Policy.load(name).chain.plan("get_x").changes
    assert Policy([Loops()]).chain.plan("get_x").changes
    rules = [Rule(match="get_key", declared={"read_only": False})]
    rules += [Rule(match="get_*", declared={"read_only": True, "timeout": 5.0})]
    tools = [Tool(name="get_lease", read_only=False), Tool(name="get_x")]
    policy = Policy([Loops()], rules=rules, tools=tools, by_name=True)
    changes = [policy.chain.plan(name).changes for name in ("get_key", "get_lease", "get_x", "get_y")]
    assert (changes, policy.chain.plan("get_lease").timeout_ms) == ([True, True, False, False], 5_000)


@table("between", ["get_order", "server-get_order", "mcp__server__get_order"])
def test_looks_between_free_no_look(between: str, clock: Any) -> None:
    one, seen = Policy([Duplicates(rule="evidence", window=20)], by_name=True).session(between, clock=clock), []
    for tool in ("read_file", between, "read_file", between, "read_file"):
        clock.advance(5)
        seen.append(one.call(tool, {"of": 1}, lambda *_: "same").ok)
    assert seen == [True, True, True, True, False]


@given(st.text(max_size=40))
def test_the_own_name_of_a_tool_is_the_end_of_its_name(name: str) -> None:
    assert name.endswith(own_name(name))
    assert own_name(name) in (name, *(name[at + 1 :] for at, mark in enumerate(name) if mark in "_/.:-"))


@table("part", ["a-", "a_", "__", "get_", "-_", "."])
def test_a_name_of_a_megabyte_has_an_own_name_too(part: str) -> None:
    assert own_name(part * (1_000_000 // len(part)) + "_x/search_x") == "search_x"
