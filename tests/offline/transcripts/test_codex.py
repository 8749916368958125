"""
Codex CLI rollouts.
"""

import json

from typing import Any

from tests.tables import table


def test_a_rollout_gives_its_calls_with_exit_codes_and_tokens(read: Any) -> None:
    calls, report = read("codex_rollout.jsonl")
    assert [(c.tool, c.turn, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("exec_command", 1, False, None, 432),
        ("exec_command", 1, True, "exec_nonzero", 0),
        ("apply_patch", 2, True, "validation", 100),
        ("local_shell", 3, True, "exec_nonzero", 250),
        ("exec_command", 4, False, None, 500),
        ("_fetch_pr", 5, True, "rate_limit", 100),
        ("exec_command", 6, None, None, None),
        ("exec_command", 6, True, "cancelled", 500),
    ]
    assert [c.tokens_in for c in calls] == [100, None, 200, 300, 400, 500, None, None]
    assert {c.session_id for c in calls} == {"019e"}, "a fork repeats the name of its parent"
    assert {c.model for c in calls} == {"gpt-5.5"}
    assert calls[2].arguments == "*** Begin Patch\n*** End Patch"
    assert calls[3].arguments == {"type": "exec", "command": ["ls"]}
    assert report.notices == ["`codex_rollout.jsonl`: 1 of 8 calls has no result"]


def test_a_script_of_code_mode_has_failed_if_something_in_it_has(read: Any) -> None:
    calls, report = read("codex_code_mode.jsonl")
    assert [(c.tool, c.turn, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("exec", 1, True, "exec_nonzero", 300),
        ("exec", 2, True, "exec_nonzero", 300),
        ("exec", 3, True, "exec_nonzero", 300),
        ("exec", 4, True, "other", 100),
        ("exec", 5, False, None, 1000),
        ("wait", 6, True, "exec_nonzero", 900),
        ("exec", 7, True, "not_found", 300),
        ("exec", 8, False, None, 300),
        ("exec", 9, True, "exec_nonzero", 300),
    ]
    assert [c.tokens_in for c in calls if c.tokens_in] == [900, 1000]
    assert {c.model for c in calls} == {"gpt-5.6"}
    assert report.notices == []


@table(
    "shown, is_error",
    [
        ('{"first": {"exit_code": 0}, "second": {"exit_code": 2, "output": ""}}', True),
        ('made:\n{"exit_code": 2, "output": ""}', True),
        ('{"exit_code": 0}\n{"exit_code": 1}', True),
        ('[{"status": "rejected", "reason": {}}]', True),
        ('[{"status": "fulfilled", "value": {"content": [], "isError": true}}]', True),
        ('{"error": "no such file"}', True),
        ('[{"status": "fulfilled", "value": {"exit_code": 0}}]', False),
        ('{"exit_code": 0, "output": "{\\"exit_code\\": 2}"}', False),
        ("0 failed, 3 passed", False),
    ],
)
def test_a_failure_that_a_script_shows_is_seen_in_any_form(read: Any, shown: str, is_error: bool) -> None:
    made = {"type": "custom_tool_call", "name": "exec", "input": "text(r)", "call_id": "c"}
    texts = ["Script completed\nWall time 0.3 seconds\nOutput:\n", shown]
    output = [{"type": "input_text", "text": text} for text in texts]
    calls, _ = read(rollout(made, {"type": "custom_tool_call_output", "call_id": "c", "output": output}))
    assert [c.is_error for c in calls] == [is_error]


@table("output, is_error", [("unsupported call: exec", True), ("aborted by user after 2.0s", True)])
def test_a_script_that_could_not_run_has_what_was_said_of_it_for_its_result(
    read: Any, output: str, is_error: bool
) -> None:
    made = {"type": "custom_tool_call", "name": "exec", "input": "text(1)", "call_id": "c"}
    calls, _ = read(rollout(made, {"type": "custom_tool_call_output", "call_id": "c", "output": output}))
    assert [(c.result, c.is_error) for c in calls] == [(output, is_error)]


def test_what_codex_exec_prints_is_read(read: Any) -> None:
    calls, report = read("codex_exec.jsonl")
    assert [(c.session_id, c.id, c.turn, c.tool, c.is_error, c.error_type) for c in calls] == [
        ("0199", "item_1", 1, "exec_command", False, None),
        ("0199", "item_2", 1, "exec_command", True, "exec_nonzero"),
        ("0199", "item_3", 2, "apply_patch", False, None),
        ("0199", "item_4", 3, "mcp__crm__find", True, "cancelled"),
        ("0199", "item_5", 4, "exec_command", None, None),
    ]
    assert (sum(c.tokens_in or 0 for c in calls), sum(c.tokens_out or 0 for c in calls)) == (24763, 122)
    assert report.notices == ["`codex_exec.jsonl`: 1 of 5 calls has no result"]


def test_the_items_of_a_thread_that_was_resumed_are_other_calls(read: Any, files: Any) -> None:
    once = (files / "codex_exec.jsonl").read_text()
    calls, _ = read(once + once)
    assert [c.id for c in calls] == [f"item_{n}" for n in (1, 2, 3, 4, 5)] * 2
    assert [c.has_result for c in calls] == [True, True, True, True, False] * 2


def rollout(*payloads: dict[str, Any], source: Any = "cli") -> str:
    meta = {"type": "session_meta", "payload": {"id": "own", "source": source}}
    return "\n".join(map(json.dumps, [meta, *({"type": "response_item", "payload": p} for p in payloads)]))


def test_a_spawned_agent_is_a_session_below_its_parent(read: Any) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "above", "depth": 1}}}
    calls, _ = read(rollout({"type": "function_call", "name": "t", "arguments": "", "call_id": "c"}, source=spawned))
    assert [c.session_id for c in calls] == ["above/own"]


@table(
    "output, is_error",
    [
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nError: in the text only", False),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\n", True),
        ("Exit code: -1\nWall time: 0 seconds\nOutput:\n", True),
        ("Plan updated", False),
        ("write_stdin failed: Unknown process id 3", True),
        ("Wall time: 2 seconds\nOutput:\nfine", False),
        ('Wall time: 2 seconds\nOutput:\n[{"type":"text","text":"Error: no such table"}]', True),
        ('Wall time: 2 seconds\nOutput:\n{"type":"text","text":"3 rows","annotations":null}', False),
        ("Wall time: 2 seconds\nOutput:\nTraceback (most recent call last):\nKeyError", True),
        ('{"output":"x","metadata":{"exit_code":"?"}}', False),
        ('{"output":', False),
        (None, False),
        ([], False),
        (7, False),
    ],
)
def test_an_output_says_whether_its_call_failed(read: Any, output: Any, is_error: bool) -> None:
    made = {"type": "function_call", "name": "t", "arguments": "{}", "call_id": "c"}
    calls, _ = read(rollout(made, {"type": "function_call_output", "call_id": "c", "output": output}))
    assert [(c.has_result, c.is_error) for c in calls] == [(True, is_error)]


def test_a_response_without_a_count_of_tokens_does_not_take_the_next_ones(read: Any) -> None:
    def made(id: str) -> dict[str, Any]:
        return {"type": "function_call", "name": "t", "arguments": "{}", "call_id": id}

    count = {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 9}}}}
    text = rollout(made("a"), {"type": "function_call_output", "call_id": "a", "output": ""}, made("b"))
    calls, _ = read(f"{text}\n{json.dumps(count)}\n{json.dumps(count)}")
    assert [(c.id, c.turn, c.tokens_in) for c in calls] == [("a", 1, None), ("b", 2, 9)]
