"""
OpenInference's attributes on spans of OpenTelemetry.
"""

import json

from typing import Any

from tests.tables import table


def test_spans_of_langchain_give_calls_with_the_ids_and_arguments_of_the_model(read: Any) -> None:
    calls, report = read("openinference.jsonl")
    assert [(c.session_id, c.call_index, c.turn, c.id, c.tool, c.is_error) for c in calls] == [
        ("trip-42", 0, 1, "call_0_0", "weather", False),
        ("trip-42", 1, 1, "call_0_1", "weather", True),
        ("trip-42", 2, 2, "call_1_0", "rates", False),
    ]
    assert [c.arguments for c in calls] == [{"city": "Kyoto"}, {"city": "Atlantis"}, {"of": "USD"}]
    assert [c.result for c in calls] == ["Kyoto: rain", "ValueError('no such city')", '{"of": "USD", "rate": 3}']
    assert [(c.tokens_in, c.tokens_out) for c in calls] == [(96, 13), (None, None), (204, 5)]
    assert {c.model for c in calls} == {"gpt-5-mini"}
    assert [c.duration_ms for c in calls] == [1, 20, 1]
    assert report.notices == []


def test_an_export_of_the_openai_agents_sdk_gives_its_calls(read: Any) -> None:
    calls, report = read("openinference_otlp.jsonl")
    assert [(c.call_index, c.turn, c.id, c.tool, c.is_error, c.result) for c in calls] == [
        (0, 1, "call_0_0", "weather", False, "Kyoto: rain"),
        (1, 1, "call_0_1", "weather", True, "An error occurred while running the tool. Please try again."),
        (2, 2, "call_1_0", "rates", False, '{"of": "USD", "rate": 3}'),
    ]
    assert [c.arguments for c in calls] == [{"city": "Kyoto"}, {"city": "Atlantis"}, {"of": "USD"}]
    assert len({c.session_id for c in calls}) == 1, "a trace"
    assert report.notices == []


def span(end: str | None = "2026-11-23T11:53:36Z", status: str = "OK", **values: Any) -> str:
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "look", "session.id": "s"}
    attributes |= {key.replace("_", "."): value for key, value in values.items()}
    context = {"trace_id": "0x1", "span_id": "0x2"}
    at = {"start_time": "2026-11-23T11:53:35Z", "end_time": end}
    return json.dumps(
        {"name": "look", "context": context, **at, "status": {"status_code": status}, "attributes": attributes}
    )


@table(
    "values, result, is_error",
    [
        ({"output_value": "fine"}, "fine", False),
        ({"output_value": "fine", "status": "ERROR"}, "fine", True),
        ({"output_value": "Error: no such table"}, "Error: no such table", True),
        ({"output_value": '{"type":"text","text":"Error: x","annotations":null}'}, "Error: x", True),
        (
            {"output_value": '{"type": "tool", "data": {"content": "no", "tool_call_id": "c", "status": "error"}}'},
            "no",
            True,
        ),
        ({"output_value": '{"type": "tool", "content": "yes", "tool_call_id": "c"}'}, "yes", False),
        ({"output_value": '{"type": "tool", "no'}, '{"type": "tool", "no', False),
        ({"output_value": "__REDACTED__"}, None, False),
        ({}, None, False),
    ],
)
def test_a_status_of_no_error_says_only_that_nothing_was_raised(
    read: Any, values: dict[str, str], result: str | None, is_error: bool
) -> None:
    calls, _ = read(span(**values))
    assert [(c.has_result, c.result, c.is_error) for c in calls] == [(True, result, is_error)]


def test_what_one_response_called_is_given_to_one_span_each(read: Any) -> None:
    made = {"openinference.span.kind": "LLM", "session.id": "s"}
    for place, city in enumerate(("Kyoto", "Nara")):
        of = f"llm.output_messages.0.message.tool_calls.{place}.tool_call"
        made |= {
            f"{of}.id": f"c{place}",
            f"{of}.function.name": "look",
            f"{of}.function.arguments": json.dumps({"at": city}),
        }
    model = json.loads(span())
    model |= {"attributes": made, "start_time": "2026-11-23T11:53:34Z"}
    lines = [json.dumps(model), span(input_value="Kyoto"), span(input_value="Nara"), span(input_value="Uji")]
    calls, _ = read("\n".join(lines))
    assert [(c.id, c.arguments) for c in calls] == [("c0", {"at": "Kyoto"}), ("c1", {"at": "Nara"}), (None, "Uji")]
