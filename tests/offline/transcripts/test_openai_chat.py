"""
OpenAI chat messages.
"""

import json

from pathlib import Path
from typing import Any

from guardrails.offline.transcripts import Report, open_calls


def made(*calls: tuple[str, str, str]) -> dict[str, Any]:
    wires = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
        for call_id, name, text in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": wires}


def answer(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_calls_in_the_blocks_of_another_api_are_told_of_and_not_denied(tmp_path: Path) -> None:
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}
    made = {"id": "b", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    path, report = tmp_path / "chat.json", Report()
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "go"}, used]}))
    assert not list(open_calls(path, report))
    assert report.without[str(path)] == "chat messages whose calls are `tool_use` blocks, which are not read"
    assert not any("no tool calls" in notice for notice in report.notices)
    # LangChain writes both.
    path.write_text(json.dumps({"messages": [used | {"tool_calls": [made]}]}))
    report = Report()
    assert len(list(open_calls(path, report))) == 1
    assert report.notices == [f"`{path}`: 1 of 1 call has no result"]


def test_a_chat_gives_its_calls_with_their_results(read: Any) -> None:
    calls, report = read("openai_chat.json")
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.is_error) for c in calls] == [
        ("trip-42", 0, "search_hotels", 1, False),
        ("trip-42", 1, "weather", 1, True),
        ("trip-42", 2, "book", 2, True),
        ("trip-42", 3, "book", 3, None),
    ]
    assert calls[0].arguments == {"city": "Shibuya", "max_price": 150}
    assert calls[0].result == "h_1234\nh_5678"
    assert (calls[0].tokens_in, calls[0].tokens_out, calls[1].tokens_in) == (120, 30, None)
    assert {c.model for c in calls} == {"gpt-5-mini"}
    assert calls[1].arguments == '{"city": "Tokyo"', "what is no JSON stays text"
    assert calls[2].error_type == "timeout", "an envelope of this library names its error"
    assert not calls[3].has_result
    assert report.notices == ["`openai_chat.json`: 1 of 4 calls has no result"]


def test_lines_of_chats_are_sessions_of_their_own(read: Any) -> None:
    calls, report = read("openai_chat.jsonl")
    assert [(c.session_id, c.tool, c.arguments, c.is_error, c.error_type) for c in calls] == [
        ("openai_chat.jsonl", "grep", {"pattern": "x"}, False, None),
        ("openai_chat.jsonl:2", "patch", "*** Begin", False, None),
        ("named", "old", {}, True, "code_error"),
    ]
    assert report.broken == []


def test_an_id_that_is_used_again_means_the_latest_call(read: Any) -> None:
    messages = [made(("call_0", "a", "{}")), made(("call_0", "b", "{}")), answer("call_0", "of b")]
    calls, _ = read(json.dumps(messages))
    assert [(c.tool, c.result) for c in calls] == [("a", None), ("b", "of b")]


def test_two_calls_of_one_message_with_one_id_take_their_results_in_order(read: Any) -> None:
    messages = [made(("x", "a", "{}"), ("x", "b", "{}")), answer("x", "1"), answer("x", "2")]
    calls, _ = read(json.dumps(messages))
    assert [(c.tool, c.result) for c in calls] == [("a", "1"), ("b", "2")]


def test_times_and_cost_are_taken_where_they_are_written(read: Any) -> None:
    first = made(("x", "a", "{}")) | {"timestamp": "2026-01-01T00:00:00Z", "cost": 0.25}
    calls, _ = read(json.dumps([first, answer("x", "1") | {"timestamp": 1767225600.5}]))
    assert (calls[0].ts_ms, calls[0].duration_ms, calls[0].cost_usd) == (1_767_225_600_000, 500, 0.25)


def test_items_of_the_responses_api_among_messages_are_read_as_such(read: Any) -> None:
    said = [{"role": "user", "content": "go"}] * 20
    items = [{"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}]
    calls, _ = read(json.dumps({"messages": [*said, *items]}))
    assert [c.tool for c in calls] == ["t"]


def test_a_chat_without_calls_is_told_of(read: Any) -> None:
    calls, report = read('{"messages": [{"role": "user", "content": "hi"}]}')
    assert calls == []
    assert report.notices == ["`given`: no tool calls in this openai chat"]


def test_a_document_that_is_cut_off_gives_what_stands_before_the_cut(read: Any, files: Any) -> None:
    text = (files / "openai_chat.json").read_text()
    for size in range(700, len(text) - 2, 61):
        calls, report = read(text[:size])
        assert report.broken_count == 1
        assert any("cut off" in notice for notice in report.notices)
        assert [c.tool for c in calls] == ["search_hotels", "weather", "book", "book"][: len(calls)]
    assert len(calls) == 4


def test_messages_that_are_lines_are_a_chat(read: Any) -> None:
    said = [
        {"role": "user", "content": "hi"},
        made(("a", "look", "{}"), ("b", "book", "{}")),
        answer("b", "Error: full"),
    ]
    said += [answer("a", "1"), {"role": "assistant", "content": "so"}, made(("a", "look", "{}")), answer("a", "2")]
    calls, report = read("\n".join(map(json.dumps, said)))
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.result) for c in calls] == [
        ("given", 0, "look", 1, "1"),
        ("given", 1, "book", 1, "Error: full"),
        ("given", 2, "look", 2, "2"),
    ]
    assert (report.broken, report.notices) == ([], [])
    whole, _ = read(json.dumps(said))
    assert calls == whole, "as they are in one list"


def test_a_list_of_conversations_gives_a_session_for_each_task_and_trial(read: Any) -> None:
    calls, report = read("traj.json")
    assert [(c.session_id, c.call_index, c.turn, c.tool, c.is_error) for c in calls] == [
        ("0/0", 0, 1, "get_user_details", False),
        ("0/0", 1, 2, "search_direct_flight", False),
        ("0/0", 2, 3, "search_onestop_flight", False),
        ("3/0", 0, 1, "update_reservation_flights", True),
    ]
    assert calls[1].id == calls[2].id, "a server uses an id again"
    assert calls[1].result != calls[2].result
    assert report.notices == []
