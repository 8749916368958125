"""
Results that stand alone.
"""

import copy
import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Envelope, Policy, Summary, Truncate
from guardrails.core.guards.summary import MAX_SUMMARY, summarise
from guardrails.core.text.signature import sign
from guardrails.core.values.types import ToolCall
from tests.tables import table


def shown(value: Any, arguments: Any, *guards: Any, clock: Any = lambda: 0.0) -> dict[str, Any]:
    session = Policy([Summary(), *guards]).session("s", clock=clock)
    envelope = session.call("t", arguments, lambda tool, arguments: value)
    read: dict[str, Any] = json.loads(envelope.to_json())
    return read


def call(arguments: Any) -> ToolCall:
    return ToolCall("t", arguments, "1", None, None, (), sign("t", arguments)[2])


def test_a8_a_result_carries_its_query_its_progress_and_the_next_step(clock: Any) -> None:
    read = shown([{"ok": True}], {"city": "Tokyo"}, Budget(max_calls=3, max_elapsed=60), clock=clock)
    assert read["query_summary"] == {"city": "Tokyo"}
    assert read["progress"] == {"calls_used": 1, "calls_left": 2}
    assert read["is_complete"] is True


def test_a8_an_error_says_what_was_asked_too(clock: Any) -> None:
    read = shown(ValueError("no"), {"city": "Tokyo"}, clock=clock)
    assert (read["status"], read["query_summary"]) == ("error", {"city": "Tokyo"})
    assert "is_complete" not in read


@table(
    ("value", "total", "complete"),
    [
        ([], 0, True),
        ({"results": [1, 2]}, 2, True),
        ({"items": [1], "total_count": 40}, 40, False),
        ({"data": [1, 2], "next_cursor": "abc"}, 2, False),
        ({"data": [1, 2], "next_cursor": None}, 2, True),
        ({"rows": [], "has_more": True}, 0, False),
        ({"truncated": True}, None, False),
        ({"a": 1}, None, True),
    ],
)
def test_a1_matches_are_counted_and_a_page_is_not_complete(value: Any, total: int | None, complete: bool) -> None:
    read = shown(value, {})
    assert (read.get("total_matches"), read["is_complete"]) == (total, complete)
    if not complete:
        assert any(word in read["next_action_hint"] for word in ("more", " of ", "not whole"))


@table(("found", "words"), [(0, "No matches."), (1, "Found 1 match."), (7, "Found 7 matches.")])
def test_a1_the_next_step_says_how_many_were_found(found: int, words: str) -> None:
    assert shown(list(range(found)), {})["next_action_hint"].startswith(words)


@table("value", [[], {"rows": [], "rowCount": 1}, [{"id": 1}]])
def test_what_work_brings_back_is_no_search(value: Any) -> None:
    read = json.loads(Policy.load("default").session("s").call("update_record", {"id": 1}, lambda *_: value).to_json())
    assert read.keys().isdisjoint({"total_matches", "next_action_hint"})


def test_a_cursor_is_named_so_that_the_model_can_go_on() -> None:
    assert "`nextPageToken`" in shown({"items": [], "nextPageToken": "x"}, {})["next_action_hint"]


def test_a_list_that_is_cut_is_not_complete_and_does_not_say_that_it_can_be_used() -> None:
    read = shown(list(range(1_000)), {}, Truncate(max_bytes=256))
    assert (read["is_complete"], read["total_matches"]) == (False, 1_000)
    assert "smaller part" in read["next_action_hint"]
    assert "Do not search again" not in read["next_action_hint"]


def test_what_a_tools_own_envelope_says_stays() -> None:
    own = Envelope.success([1], query_summary="mine", total_matches=9, is_complete=False, next_action_hint="Page 2.")
    read = shown(own, {"q": 1})
    assert [read[name] for name in ("query_summary", "total_matches", "is_complete", "next_action_hint")] == [
        "mine",
        9,
        False,
        "Page 2.",
    ]


def test_long_arguments_are_cut_string_by_string() -> None:
    summary = summarise({"text": "x" * 1_000, "n": 7, "on": None, "rate": 0.5, "list": list(range(500))})
    assert summary["text"] == "x" * 200 + "..."
    assert (summary["n"], summary["on"], summary["rate"]) == (7, None, 0.5)
    assert summary["list"].startswith("[0,1,2,")
    assert len(summary["list"]) == 203


def test_more_arguments_than_fit_are_said_to_be_cut() -> None:
    summary = summarise({f"key_{n}": "x" * 200 for n in range(50)})
    assert list(summary) == ["key_0", "key_1", "key_2", "key_3", "..."]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=300), inner, max_size=9),
    max_leaves=30,
)


@given(anything | st.text('\x01"\\\ud800😀', max_size=400))
def test_a_summary_is_at_most_1_kb_of_json_whatever_the_arguments(arguments: Any) -> None:
    envelope = Envelope.success(1, query_summary=summarise(arguments))
    text = envelope.to_json()
    assert len(text.encode()) - len('{"status":"success","query_summary":,"result":1}') <= MAX_SUMMARY + 16


@table(
    ("arguments", "change"),
    [
        ({"city": "Tokyo", "page": 1}, lambda given: given.pop("city")),
        ({"city": "Tokyo", "tags": ["wifi", {"pool": 1}]}, lambda given: given["tags"][1].clear()),
        ({"city": "Tokyo", "text": "x" * 300}, lambda given: given.clear()),
    ],
)
def test_the_echo_is_what_was_asked_though_the_tool_changes_its_arguments(arguments: Any, change: Any) -> None:
    expected = Policy([Summary()]).session("a").call("t", copy.deepcopy(arguments), lambda *_: [1]).query_summary
    shown = Policy([Summary()]).session("b").call("t", arguments, lambda _, given: [change(given)]).query_summary
    assert shown == expected
    assert shown["city"] == "Tokyo"
