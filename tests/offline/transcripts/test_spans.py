"""
OpenTelemetry GenAI spans as OTLP JSON.
"""

import json

from typing import Any

from tests.tables import table


def tool(start: int, name: str = "t", conversation: str = "c", end: int | None = None, **more: Any) -> dict[str, Any]:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.conversation.id": conversation}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in (said | more).items()]
    return {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end or start), "attributes": attributes}


def export(*spans: dict[str, Any]) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def test_spans_are_calls_in_the_order_of_their_start(read: Any) -> None:
    calls, report = read("otlp.jsonl")
    assert [
        (c.session_id[:6], c.call_index, c.tool, c.turn, c.is_error, c.error_type, c.duration_ms) for c in calls
    ] == [
        ("conv-1", 0, "slow", 1, False, None, 800),
        ("conv-1", 1, "fast", 1, False, None, 100),
        ("conv-1", 2, "slow", 2, True, "timeout", 100),
        ("conv-1", 3, "gone", 2, True, "not_found", 100),
        ("ffffff", 0, "other", None, True, "unavailable", 200),
    ]
    assert [c.arguments for c in calls] == [{"n": 1, "deep": [True, 0.5]}, {"n": 2}, {"n": 1}, {}, "not JSON"]
    assert [(c.tokens_in, c.tokens_out) for c in calls][:4] == [(100, 10), (None, None), (200, 20), (None, None)]
    assert calls[0].ts_ms == 1_800_000_001_100
    assert calls[0].id == "a"
    assert report.broken == [], "other signals are no fault"


def test_what_was_not_captured_is_unknown_and_not_empty(read: Any) -> None:
    calls, _ = read(export(tool(1)))
    assert [(c.has_result, c.is_error, c.result, c.arguments) for c in calls] == [(True, False, None, None)]


@table("time", ["", "x", None, -1, "-5", "9" * 30, 1.5, True, {}])
def test_a_time_that_is_none_is_unknown(read: Any, time: Any) -> None:
    span = tool(1) | {"startTimeUnixNano": time}
    calls, _ = read(export(span))
    assert [(c.ts_ms, c.duration_ms) for c in calls] == [(None, None)]


def test_calls_that_stand_only_in_the_messages_of_models_are_read(read: Any) -> None:
    calls, report = read("otlp_messages.json")
    assert [(c.session_id, c.turn, c.id, c.tool, c.arguments, c.is_error, c.result) for c in calls] == [
        ("conv-9", 1, "call_0", "weather", {"city": "Kyoto"}, False, "rain"),
        ("conv-9", 1, "call_1", "weather", {"city": "Atlantis"}, True, "Error: no such city"),
        ("conv-9", 2, "call_2", "weather", {"city": "Uji"}, None, None),
    ]
    assert [c.tokens_in for c in calls] == [100, None, 300]
    assert [c.ts_ms for c in calls] == [1_800_000_001_000, 1_800_000_001_000, 1_800_000_006_000]
    assert report.notices == ["`otlp_messages.json`: 1 of 3 calls has no result"]


NAMED: Any = {"gen_ai.tool.call.id": "call_1"}


@table(
    "span, told",
    [
        (tool(1_800_000_001_200_000_000, "weather", "conv-9"), [("call_0", 200), ("call_1", None), ("call_2", None)]),
        (
            tool(1_800_000_001_200_000_000, "forecast", "conv-9", **NAMED),
            [("call_0", None), ("call_1", 200), ("call_2", None)],
        ),
        # Names and ids of no message: both would tell of the same calls.
        (tool(1_800_000_001_200_000_000, "Weather.run", "conv-9"), [(None, 200)]),
        (tool(1, "weather", "conv-9"), [(None, None)]),
    ],
)
def test_a_span_of_a_tool_tells_more_of_a_call_that_stands_in_messages(
    read: Any, files: Any, span: Any, told: list[Any]
) -> None:
    spans = json.loads((files / "otlp_messages.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    calls, _ = read(export(*spans, span))
    after_ms = [None if c.ts_ms is None else c.ts_ms % 1000 or None for c in calls]
    assert list(zip([c.id for c in calls], after_ms, strict=True)) == told


def test_calls_and_results_without_ids_belong_together_by_their_order(read: Any) -> None:
    def said(*parts: dict[str, Any]) -> str:
        return json.dumps([{"role": "assistant", "parts": parts}])

    asked = [{"type": "tool_call", "name": "find", "arguments": {"q": n}} for n in range(3)]
    answers = [{"type": "tool_call_response", "response": f"found {n}"} for n in range(2)]
    chat: Any = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said(*asked[:2])}
    more: Any = chat | {"gen_ai.input.messages": said(*asked[:2], *answers), "gen_ai.output.messages": said(asked[2])}
    calls, _ = read(export(tool(1, "", **chat), tool(2, "", **more)))
    assert [(c.turn, c.arguments["q"], c.result) for c in calls] == [(1, 0, "found 0"), (1, 1, "found 1"), (2, 2, None)]


def test_messages_of_an_agent_tell_the_calls_of_a_session_without_other_spans(read: Any) -> None:
    made = {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": "x"}}
    said = [
        {"role": "assistant", "parts": [made]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "2 rows"}]},
    ]
    more: Any = {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": json.dumps(said)}
    agent = tool(1, "", **more)
    calls, _ = read(export(agent))
    assert [(c.id, c.tool, c.arguments, c.result) for c in calls] == [("c1", "find", {"q": "x"}, "2 rows")]
    calls, _ = read(export(agent, tool(2, "find")))
    assert [(c.id, c.tool, c.result) for c in calls] == [("c1", "find", "2 rows")]
