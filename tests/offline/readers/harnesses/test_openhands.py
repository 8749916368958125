"""
Conversations of OpenHands.
"""

import json

from typing import Any

import pytest


def test_events_of_version_1_give_calls_with_results_times_and_tokens(read: Any) -> None:
    calls, report = read("openhands.jsonl")
    assert [(c.tool, c.turn, c.call_index, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("terminal", 1, 0, True, "other", 404),
        ("terminal", 2, 1, True, "code_error", 789),
    ]
    assert [(c.tokens_in, c.tokens_out, c.cost_usd) for c in calls] == [(35_299, 185, None), (71_563, 387, None)]
    assert {c.model for c in calls} == {"litellm_proxy/minimax-m2.7"}
    assert calls[0].labels == ("summary", "security_risk"), "a person reads them, no tool does"
    assert calls[0].result.startswith("Cannot execute multiple commands at once.")
    assert calls[0].id == "chatcmpl-tool-9d0341c7a033ae28"
    assert report.broken == []


def test_events_of_version_0_give_calls_with_exit_codes_and_usage(read: Any) -> None:
    calls, report = read("openhands_2025.json")
    assert [(c.tool, c.turn, c.is_error, c.duration_ms, c.tokens_in, c.tokens_out) for c in calls] == [
        ("execute_bash", 1, False, 658, 3439, 104),
        ("str_replace_editor", 2, False, 43, 3601, 1142),
        ("str_replace_editor", 3, False, 34, 4769, 693),
        ("execute_bash", 4, False, 30_580, 5488, 85),
    ]
    assert calls[0].arguments == {"command": "mkdir -p /workspace/todo-app"}
    assert {c.model for c in calls} == {"claude-3-5-sonnet-20241022"}
    assert report.notices == []


def act(name: str = "terminal", call_id: str = "c", response: str = "r", **more: Any) -> dict[str, Any]:
    return {
        "id": f"a-{call_id}",
        "timestamp": "2026-06-16T05:39:18.8",
        "source": "agent",
        "kind": "ActionEvent",
        "tool_name": name,
        "tool_call_id": call_id,
        "tool_call": {"id": call_id, "name": name, "arguments": '{"command": "ls"}'},
        "llm_response_id": response,
        **more,
    }


def seen(observation: dict[str, Any], call_id: str = "c", kind: str = "ObservationEvent") -> dict[str, Any]:
    event = {"id": "o", "timestamp": "2026-06-16T05:39:19.8", "source": "environment", "kind": kind}
    return {**event, "tool_name": "terminal", "tool_call_id": call_id, "observation": observation}


def lines(*events: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, events))


@pytest.mark.parametrize(
    ("observation", "is_error", "error_type"),
    [
        ({"is_error": False, "exit_code": 0}, False, None),
        ({"is_error": False, "exit_code": 1}, True, "exec_nonzero"),
        ({"is_error": True, "exit_code": 0}, True, "other"),
        ({"is_error": False, "exit_code": -1, "timeout": True}, False, None),
        ({"is_error": False, "exit_code": None}, False, None),
        ({"is_error": True}, True, "other"),
    ],
)
def test_a_command_has_failed_by_its_exit_code_and_a_tool_by_its_flag(
    read: Any, observation: dict[str, Any], is_error: bool, error_type: str | None
) -> None:
    content = [{"type": "text", "text": "a b", "cache_prompt": False}]
    calls, _ = read(lines(act(), seen({"content": content, **observation})))
    assert [(c.result, c.is_error, c.error_type) for c in calls] == [("a b", is_error, error_type)]
    assert calls[0].duration_ms == 1000


def test_an_error_of_the_agent_and_a_refusal_are_failures(read: Any) -> None:
    error = {**seen({}, "x", "AgentErrorEvent"), "error": "Error validating args for tool 'terminal'"}
    person = {**seen({}, "y", "UserRejectObservation"), "rejection_reason": "no", "rejection_source": "user"}
    hook = {**seen({}, "z", "UserRejectObservation"), "rejection_reason": "no", "rejection_source": "hook"}
    calls, _ = read(lines(*(act(call_id=each) for each in "xyz"), error, person, hook))
    assert [(c.is_error, c.error_type) for c in calls[1:]] == [(True, "cancelled"), (True, "permission")]
    assert calls[0].is_error
    assert {c.turn for c in calls} == {1}, "calls of one response"


def test_results_that_are_wrapped_by_a_server_are_unwrapped(read: Any) -> None:
    inner = '{"type":"text","text":"Error: no such table","annotations":null}'
    calls, _ = read(lines(act(), seen({"content": [{"type": "text", "text": inner}]})))
    assert [(c.result, c.is_error) for c in calls] == [("Error: no such table", True)]


def test_a_label_that_is_the_tools_own_is_an_argument(read: Any) -> None:
    made = act("note", action={"summary": "s", "kind": "NoteAction"})
    made["tool_call"]["arguments"] = '{"summary": "s", "security_risk": "LOW"}'
    assert read(lines(made))[0][0].labels == ("security_risk",)


def test_a_list_of_events_is_read_as_their_lines_are(read: Any, files: Any) -> None:
    events = [json.loads(line) for line in (files / "openhands.jsonl").read_text().splitlines()]
    assert read(json.dumps(events), "f")[0] == read((files / "openhands.jsonl").read_text(), "f")[0]


def test_what_was_spent_before_the_first_total_is_nobodys(read: Any) -> None:
    def stats(tokens: int, cost: float) -> dict[str, Any]:
        usage = {"accumulated_token_usage": {"prompt_tokens": tokens, "completion_tokens": 1}, "accumulated_cost": cost}
        event = {"id": "s", "timestamp": "2026-06-16T05:39:18", "source": "environment", "key": "stats"}
        return {**event, "kind": "ConversationStateUpdateEvent", "value": {"usage_to_metrics": {"agent": usage}}}

    calls, _ = read(lines(stats(900, 0.5), act(call_id="a"), stats(1000, 0.75), act(call_id="b", response="s")))
    assert [(c.tokens_in, c.cost_usd) for c in calls] == [(None, None), (100, 0.25)]
