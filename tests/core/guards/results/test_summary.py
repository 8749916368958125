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
from tests.tables import table


def shown(value: Any, arguments: Any, *guards: Any, clock: Any = lambda: 0.0) -> dict[str, Any]:
    session = Policy([Summary(), *guards]).session("s", clock=clock)
    envelope = session.call("t", arguments, lambda tool, arguments: value)
    read: dict[str, Any] = json.loads(envelope.to_json())
    return read


def test_a8_a_result_carries_its_query_its_progress_and_the_next_step(clock: Any) -> None:
    read = shown([{"ok": True}], {"city": "Tokyo"}, Budget(max_calls=3, max_elapsed=60), clock=clock)
    assert (read["query_summary"], read["is_complete"]) == ({"city": "Tokyo"}, True)
    assert read["progress"] == {"calls_used": 1, "calls_left": 2}
    failed = shown(ValueError("no"), {"city": "Tokyo"}, clock=clock)
    assert (failed["status"], failed["query_summary"]) == ("error", {"city": "Tokyo"})
    assert "is_complete" not in failed


@table(("value", "total", "complete", "hint"), [
    ([], 0, True, "No matches."), ([1], 1, True, "Found 1 match."), ([1] * 7, 7, True, "Found 7 matches."),
    ({"results": [1, 2]}, 2, True, "Found 2 matches."), ({"items": [1], "total_count": 40}, 40, False, " of "),
    ({"data": [1, 2], "next_cursor": "abc"}, 2, False, "`next_cursor`"), ({"data": [1, 2], "next_cursor": None}, 2, True, ""),
    ({"items": [], "nextPageToken": "x"}, 0, False, "`nextPageToken`"), ({"rows": [], "has_more": True}, 0, False, "more"),
    ({"truncated": True}, None, False, "not whole"), ({"a": 1}, None, True, ""),
])  # fmt: skip
def test_a1_matches_are_counted_and_a_page_is_not_complete_and_says_how_to_go_on(
    value: Any, total: int | None, complete: bool, hint: str
) -> None:
    read = shown(value, {})
    assert (read.get("total_matches"), read["is_complete"]) == (total, complete)
    assert hint in read.get("next_action_hint", "")


@table("value", [[], {"rows": [], "rowCount": 1}, [{"id": 1}]])
def test_what_work_brings_back_is_no_search(value: Any) -> None:
    read = json.loads(Policy.load("default").session("s").call("update_record", {"id": 1}, lambda *_: value).to_json())
    assert read.keys().isdisjoint({"total_matches", "next_action_hint"})


def test_a_list_that_is_cut_is_not_complete_and_does_not_say_that_it_can_be_used() -> None:
    read = shown(list(range(1_000)), {}, Truncate(max_bytes=256))
    assert (read["is_complete"], read["total_matches"]) == (False, 1_000)
    assert "smaller part" in read["next_action_hint"]
    assert "Do not search again" not in read["next_action_hint"]


def test_what_a_tools_own_envelope_says_stays() -> None:
    own = {"query_summary": "mine", "total_matches": 9, "is_complete": False, "next_action_hint": "Page 2."}
    assert shown(Envelope.success([1], **own), {"q": 1}).items() >= own.items()


@table(("arguments", "summary"), [
    (
        {"text": "x" * 1_000, "n": 7, "on": None, "rate": 0.5, "list": list(range(500))},
        {"text": "x" * 200 + "...", "n": 7, "on": None, "rate": 0.5, "list": f"{json.dumps([*range(500)], separators=(',', ':'))[:200]}..."},
    ),
    ({f"key_{n}": "x" * 200 for n in range(50)}, {**{f"key_{n}": "x" * 200 for n in range(4)}, "...": "cut"}),
])  # fmt: skip
def test_long_arguments_are_cut_string_by_string_and_then_as_a_whole(arguments: Any, summary: Any) -> None:
    assert summarise(arguments) == summary


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


@table(("more", "change"), [
    ({"page": 1}, lambda given: given.pop("city")), ({"tags": ["wifi", {"pool": 1}]}, lambda given: given["tags"][1].clear()),
    ({"text": "x" * 300}, lambda given: given.clear()),
])  # fmt: skip
def test_the_echo_is_what_was_asked_though_the_tool_changes_its_arguments(more: Any, change: Any) -> None:
    arguments = {"city": "Tokyo", **more}
    expected = Policy([Summary()]).session("a").call("t", copy.deepcopy(arguments), lambda *_: [1]).query_summary
    shown = Policy([Summary()]).session("b").call("t", arguments, lambda _, given: [change(given)]).query_summary
    assert shown == expected
    assert shown["city"] == "Tokyo"
