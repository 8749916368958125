"""
Runs of LangSmith.
"""

import json

from typing import Any

from tests.tables import table


def test_runs_give_calls_in_the_order_of_their_start_though_the_latest_come_first(read: Any) -> None:
    calls, report = read("langsmith.jsonl")
    own = [c for c in calls if c.session_id == "trip-42"]
    assert [(c.call_index, c.turn, c.id, c.tool, c.arguments, c.is_error) for c in own] == [
        (0, 1, "call_0_0", "weather", {"city": "Kyoto"}, False),
        (1, 1, "call_0_1", "weather", {"city": "Atlantis"}, True),
        (2, 2, "call_1_0", "rates", {"of": "USD"}, False),
    ]
    assert [c.result for c in own] == ["Kyoto: rain", "ValueError('no such city')", '{"of": "USD", "rate": 3}']
    assert [(c.tokens_in, c.tokens_out, c.model) for c in own] == [
        (96, 13, "gpt-5-mini"),
        (None, None, "gpt-5-mini"),
        (204, 5, "gpt-5-mini"),
    ]
    assert [(c.tool, c.result, c.error_type, c.duration_ms) for c in calls if c not in own] == [
        ("plain", '{"sum":1}', None, 0),
        ("broken", "TimeoutError('no answer')", "timeout", 4),
    ]
    assert report.notices == []


def test_a_list_and_an_answer_of_the_api_are_read_as_their_lines_are(read: Any, files: Any) -> None:
    text = (files / "langsmith.jsonl").read_text()
    runs = [json.loads(line) for line in text.splitlines()]
    expected = read(text, "f")[0]
    assert read(json.dumps(runs), "f")[0] == expected
    assert read(json.dumps({"runs": runs, "cursors": {"next": None}}), "f")[0] == expected
    assert read("\n".join(reversed(text.splitlines())), "f")[0] != []


def run(run_id: int, **more: Any) -> dict[str, Any]:
    at = {"start_time": f"2026-11-23T11:53:{run_id:02}Z", "end_time": f"2026-11-23T11:53:{run_id:02}.5Z"}
    named = {"id": str(run_id), "name": "look", "run_type": "tool", "trace_id": "t"}
    return {**named, **at, "inputs": {"n": run_id}, "outputs": {"output": "fine"}, **more}


@table(
    "more, has_result, result, is_error",
    [
        ({}, True, "fine", False),
        ({"outputs": {"output": "Error: no such table"}}, True, "Error: no such table", True),
        ({"outputs": {"output": {"type": "tool", "content": "no", "status": "error"}}}, True, "no", True),
        ({"outputs": {"output": {"type": "tool", "content": [{"type": "text", "text": "a"}]}}}, True, "a", False),
        ({"outputs": {"output": '{"type":"text","text":"Error: x"}'}}, True, "Error: x", True),
        ({"outputs": {"error": "x"}}, True, '{"error":"x"}', True),
        ({"outputs": {}, "error": "boom", "status": "error"}, True, "boom", True),
        ({"outputs": None, "end_time": None}, False, None, None),
    ],
)
def test_a_run_has_failed_by_its_error_its_message_or_its_text(
    read: Any, more: dict[str, Any], has_result: bool, result: str | None, is_error: bool | None
) -> None:
    calls, _ = read(json.dumps(run(1, **more)))
    assert [(c.has_result, c.result, c.is_error) for c in calls] == [(has_result, result, is_error)]
