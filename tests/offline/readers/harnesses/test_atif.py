"""
ATIF trajectories, as Harbor writes them.
"""

import json

from typing import Any

import pytest


def test_a_trajectory_of_claude_code_gives_what_its_session_gives(read: Any) -> None:
    calls, _ = read("atif.json")
    own = {c.id: c for c in read("claude_code.jsonl")[0]}
    assert [(c.session_id, c.call_index, c.tool, c.turn) for c in calls] == [
        ("s-1", 0, "Read", 1),
        ("s-1", 1, "Task", 1),
        ("s-1/sidechain", 0, "Grep", 1),
        ("s-1/a7f", 0, "Grep", 1),
        ("s-1", 2, "Bash", 2),
        ("s-1", 3, "Bash", 3),
    ]
    for call in calls:
        known = own[call.id]
        assert (call.arguments, call.is_error, call.error_type) == (known.arguments, known.is_error, known.error_type)
        assert call.result == known.result
    assert [(c.tokens_in, c.tokens_out, c.cost_usd) for c in calls[:2]] == [(1110, 40, 0.002175), (None, None, None)]


def test_a_trajectory_of_codex_gives_the_exit_codes_of_its_outputs(read: Any) -> None:
    calls, _ = read("atif_codex.json")
    own = {c.id: c for c in read("codex_rollout.jsonl")[0]}
    assert [(c.tool, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("exec_command", False, None, 432),
        ("exec_command", True, "exec_nonzero", 0),
        ("apply_patch", True, "validation", None),
        ("exec_command", False, None, 500),
        ("_fetch_pr", True, "rate_limit", 100),
        ("exec_command", True, "cancelled", None),
    ], "what the server does by itself, as a search, is no call"
    assert all(call.result == own[call.id].result for call in calls)
    assert [c.tokens_in for c in calls] == [100, None, 200, 400, 500, None]


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": n, "source": "agent", "message": "", **step} for n, step in enumerate(steps, 1)]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": numbered, **more}


def step(*ids: str, results: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    made = [{"tool_call_id": each, "function_name": "look", "arguments": {"of": each}} for each in ids]
    told = [{"source_call_id": each, "content": f"saw {each}"} for each in ids] if results is None else results
    return {"tool_calls": made, "observation": {"results": told}, **more}


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (step("a", "b"), ["saw a", "saw b"]),
        (step("a", results=[{"content": "Error: x"}]), ["Error: x"]),
        (step("a", "b", results=[{"content": "of both"}]), [None, None]),
        (step("a", results=[{"source_call_id": "z", "content": "of another"}]), [None]),
        (step("a", results=[{"source_call_id": "a"}]), [None]),
        (step("a", results=[{"source_call_id": "a", "content": None}]), [""]),
        (step("a", results=[{"content": [{"type": "text", "text": '{"type":"text","text":"x"}'}]}]), ["x"]),
    ],
)
def test_a_result_is_joined_by_id_or_is_that_of_the_only_call(
    read: Any, made: dict[str, Any], found: list[Any]
) -> None:
    assert [c.result for c in read(json.dumps(trajectory(made)))[0]] == found


def test_a_sub_agent_is_a_session_below_and_a_copied_step_is_left_out(read: Any) -> None:
    below = trajectory(step("c"), trajectory_id="t")
    above = trajectory(step("a", is_copied_context=True), step("b"), session_id="s", subagent_trajectories=[below])
    assert [(c.session_id, c.id) for c in read(json.dumps(above))[0]] == [("s", "b"), ("s/t", "c")]


def test_a_dispatch_without_a_model_belongs_to_no_turn(read: Any) -> None:
    calls, _ = read(json.dumps(trajectory(step("a"), step("b", llm_call_count=0), step("c"))))
    assert [c.turn for c in calls] == [1, None, 2]
