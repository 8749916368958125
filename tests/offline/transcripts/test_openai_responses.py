"""
OpenAI Responses items.
"""

import json

from typing import Any

import pytest


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


def test_what_the_client_library_writes_is_read(read: Any) -> None:
    pytest.importorskip("openai")
    from openai.types.responses import Response, ResponseFunctionToolCallOutputItem, ResponseInputText
    from openai.types.responses.response_custom_tool_call_output import ResponseCustomToolCallOutput
    from openai.types.responses.response_function_shell_tool_call_output import ResponseFunctionShellToolCallOutput

    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get", "arguments": '{"n": 1}'},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "sql", "input": "select 1"},
        {
            "type": "shell_call",
            "id": "sh_1",
            "call_id": "call_3",
            "status": "completed",
            "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
        },
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_4",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
    ]
    response = Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1_800_000_000,
            "model": "gpt-5-mini",
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "conversation": {"id": "conv_9"},
            "usage": {
                "input_tokens": 328,
                "output_tokens": 52,
                "total_tokens": 380,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }
    )
    shell = {"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}}
    outputs: list[Any] = [
        ResponseFunctionToolCallOutputItem(
            id="o1", call_id="call_1", type="function_call_output", output="one", status="completed"
        ),
        ResponseCustomToolCallOutput(
            call_id="call_2",
            type="custom_tool_call_output",
            output=[ResponseInputText(type="input_text", text="two")],
        ),
        ResponseFunctionShellToolCallOutput.model_validate(
            {"id": "o3", "call_id": "call_3", "type": "shell_call_output", "output": [shell], "status": "completed"}
        ),
        {"type": "local_shell_call_output", "id": "call_4", "output": "four", "status": "incomplete"},
    ]
    next_request = {
        "conversation": "conv_9",
        "input": [o if isinstance(o, dict) else o.model_dump(mode="json") for o in outputs],
    }
    calls, report = read(response.model_dump_json() + "\n" + json.dumps(next_request) + "\n")
    assert [(c.session_id, c.tool, c.arguments, c.is_error) for c in calls] == [
        ("conv_9", "get", {"n": 1}, False),
        ("conv_9", "sql", "select 1", False),
        ("conv_9", "shell", {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}, True),
        (
            "conv_9",
            "local_shell",
            {
                "type": "exec",
                "command": ["ls"],
                "env": {},
                "timeout_ms": None,
                "user": None,
                "working_directory": None,
            },
            True,
        ),
    ]
    assert [c.result for c in calls[:2]] == ["one", "two"]
    assert [(c.turn, c.tokens_in) for c in calls] == [(1, 328), (1, None), (1, None), (1, None)]
    assert report.broken == []


def test_a_history_that_is_sent_again_is_read_once(read: Any) -> None:
    first = [call("c1"), output("c1", "one")]
    lines = [{"input": first}, {"input": [*first, call("c2"), output("c2", "two")]}]
    calls, _ = read("\n".join(map(json.dumps, lines)))
    assert [(c.id, c.result, c.turn) for c in calls] == [("c1", "one", 1), ("c2", "two", 2)]


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


def test_what_the_server_ran_itself_is_no_call(read: Any) -> None:
    hosted = {"type": "mcp_call", "id": "m", "name": "t", "arguments": "{}", "output": "x", "server_label": "s"}
    calls, _ = read(json.dumps([hosted, {"type": "web_search_call", "id": "w"}, call("c1")]))
    assert [c.id for c in calls] == ["c1"]


def test_an_output_of_no_call_is_left_out(read: Any) -> None:
    calls, _ = read(json.dumps([output("c9", "late"), call("c1")]))
    assert [(c.id, c.has_result) for c in calls] == [("c1", False)]
