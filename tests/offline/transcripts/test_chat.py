"""
Conversations: messages of OpenAI, Anthropic, Cline and Roo, and items of OpenAI's Responses API.
"""

import json

from typing import Any


def made(*calls: tuple[str, str, str]) -> dict[str, Any]:
    wires = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
        for call_id, name, text in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": wires}


def answer(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_calls_that_are_blocks_are_read_once_where_langchain_writes_both(read: Any) -> None:
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}
    both = used | {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}]}
    for message in (used, both):
        calls, _ = read(json.dumps({"messages": [{"role": "user", "content": "go"}, message]}))
        assert [(c.id, c.tool) for c in calls] == [("a", "t")]


def test_a_task_of_cline_or_roo_gives_its_calls(read: Any) -> None:
    calls, report = read("cline.json")
    assert [(c.session_id, c.turn, c.tool, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("cline.json", 1, "read_file", False, None, 2000),
        ("cline.json", 1, "execute_command", True, "other", 2000),
        ("cline.json", 2, "write_to_file", True, "cancelled", 5000),
        ("cline.json", 3, "read_file", True, "validation", 100),
        ("cline.json", 4, "execute_command", True, "exec_nonzero", 500),
    ]
    assert (calls[0].tokens_in, calls[0].tokens_out, calls[0].cost_usd) == (1200, 80, 0.02)
    assert calls[0].model == "claude-opus-4-6"
    assert report.notices == []


def test_a_command_of_roo_that_was_not_successful_has_failed(read: Any) -> None:
    said = "Command executed in terminal within working directory '/x'. Command execution was not successful.\nExit code: 1"
    calls = "<execute_command>\n<command>ls</command>\n</execute_command>"
    texts = [("user", "<task>x</task>"), ("assistant", calls), ("user", f"[execute_command for 'ls'] Result:\n{said}")]
    task = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in texts]
    [call], _ = read(json.dumps(task))
    assert call.is_error


def test_a_task_of_cline_whose_calls_are_tags_gives_those_that_were_answered(read: Any) -> None:
    calls, _ = read("cline_tags.json")
    assert [(c.tool, c.arguments, c.is_error, c.ts_ms) for c in calls] == [
        ("read_file", {"path": "a.py"}, False, 1_790_000_001_000),
        ("execute_command", {"command": 'make && echo "<b>"', "requires_approval": "false"}, True, 1_790_000_003_000),
    ]
    assert calls[0].result == "print(1)"


def test_tags_of_one_message_have_a_result_each(read: Any) -> None:
    tags = (
        "<read_file>\n<path>a</path>\n</read_file>\n<read_file>\n<path>b</path>\n</read_file>\n<think>no call</think>"
    )
    told = "[read_file for 'a'] Result:\none\n[read_file for 'b'] Result:\ntwo\n<environment_details>\n</environment_details>"
    said = [("user", "go"), ("assistant", tags), ("user", told)]
    calls, _ = read(json.dumps([{"role": role, "content": content} for role, content in said]))
    assert [(c.tool, c.arguments, c.result) for c in calls] == [
        ("read_file", {"path": "a"}, "one"),
        ("read_file", {"path": "b"}, "two"),
    ]


def test_the_only_result_of_a_user_is_of_the_only_call_by_whatever_name(read: Any) -> None:
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "use_subagents", "input": {}}]}
    calls, _ = read(json.dumps([used, {"role": "user", "content": "[subagents] Result:\nTotal: 5"}]))
    assert [(c.tool, c.result) for c in calls] == [("use_subagents", "Total: 5")]


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


def test_lines_of_chats_are_sessions_of_their_own(read: Any, files: Any) -> None:
    calls, report = read("openai_chat.jsonl")
    spaced = (files / "openai_chat.jsonl").read_text().replace("\n", "\n\n")
    assert read(f"\n{spaced}", "openai_chat.jsonl")[0] == calls, "blank lines cost nothing"
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


def test_times_and_cost_are_taken_where_they_are_written(read: Any) -> None:
    first = made(("x", "a", "{}")) | {"timestamp": "2026-01-01T00:00:00Z", "cost": 0.25}
    calls, _ = read(json.dumps([first, answer("x", "1") | {"timestamp": 1767225600.5}]))
    assert (calls[0].ts_ms, calls[0].duration_ms, calls[0].cost_usd) == (1_767_225_600_000, 500, 0.25)


def test_messages_that_are_lines_are_a_chat(read: Any) -> None:
    said = [{"role": "user", "content": "hi"}, made(("a", "look", "{}"), ("b", "book", "{}"))]
    said += [answer("b", "Error: full"), answer("a", "1"), {"role": "assistant", "content": "so"}]
    said += [made(("a", "look", "{}")), answer("a", "2")]
    calls, report = read("\n".join(map(json.dumps, said)))
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.result) for c in calls] == [
        ("given", 0, "look", 1, "1"),
        ("given", 1, "book", 1, "Error: full"),
        ("given", 2, "look", 2, "2"),
    ]
    assert (report.broken, report.notices) == ([], [])
    whole, _ = read(json.dumps(said))
    assert calls == whole, "as they are in one list"


def test_each_conversation_of_a_list_is_a_session(read: Any) -> None:
    one = [{"role": "user", "content": "go"}, made(("call_0", "look", "{}")), answer("call_0", "1")]
    calls, report = read(
        json.dumps([{"task_id": 7, "messages": one * 2}, {"task_id": 7, "messages": one}, {"messages": one}])
    )
    expected = [("given/0", 0, 1), ("given/0", 1, 2), ("given/1", 0, 1), ("given/2", 0, 1)]
    assert [(c.session_id, c.call_index, c.turn) for c in calls] == expected
    assert report.notices == []


def call(id: str, name: str = "search", arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


def output(id: str, text: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": text}


def test_a_list_of_items_is_one_session(read: Any) -> None:
    calls, report = read("openai_responses.json")
    assert [(c.session_id, c.tool, c.arguments, c.turn, c.result, c.is_error) for c in calls] == [
        ("conv_1", "search_hotels", {"city": "Shibuya"}, 1, "h_1234", False),
        ("conv_1", "weather", {"city": "Tokyo"}, 1, "Error: HTTP 503", True),
        ("conv_1", "crm/patch", "*** Begin", 2, None, None),
    ]
    assert [(c.tokens_in, c.tokens_out) for c in calls] == [(328, 52), (None, None), (400, 10)]
    assert calls[0].model == "gpt-5-mini"
    assert calls[0].ts_ms == 1_800_000_000_500
    assert calls[1].error_type == "unavailable"
    assert report.broken == []


def test_a_history_that_is_sent_again_is_read_once(read: Any) -> None:
    items, messages = [[call(i), output(i, i)] for i in "ab"], [[made((i, "t", "{}")), answer(i, i)] for i in "ab"]
    for of, (first, second) in (("input", items), ("messages", messages)):
        lines = [(None, first), (None, first + second), ("x", first), ("y", second), ("x", first + second)]
        calls, _ = read("\n".join(json.dumps({of: history, "session_id": name}) for name, history in lines))
        assert [(c.result, c.turn) for c in calls if c.session_id in ("given", "x")] == [("a", 1), ("b", 2)] * 2


def test_items_as_lines_end_a_response_with_an_output_or_a_message(read: Any) -> None:
    items = [
        call("c1"),
        call("c2"),
        output("c2", "2"),
        output("c1", "1"),
        call("c3"),
        {"role": "user", "content": "no"},
        call("c4"),
    ]
    calls, report = read("\n".join(map(json.dumps, items)))
    assert [(c.id, c.turn, c.result) for c in calls] == [
        ("c1", 1, "1"),
        ("c2", 1, "2"),
        ("c3", 2, None),
        ("c4", 3, None),
    ]
    assert report.notices == ["`given`: 2 of 4 calls have no result"]


def test_conversations_may_be_interleaved(read: Any) -> None:
    lines = [
        {"object": "response", "conversation": {"id": "a"}, "output": [call("c1")]},
        {"object": "response", "conversation": {"id": "b"}, "output": [call("c1")]},
        {"conversation": {"id": "a"}, "input": [output("c1", "of a")]},
        {"conversation": {"id": "b"}, "input": [output("c1", "of b")]},
    ]
    calls, _ = read("\n".join(map(json.dumps, lines)))
    assert [(c.session_id, c.call_index, c.result) for c in calls] == [("a", 0, "of a"), ("b", 0, "of b")]
