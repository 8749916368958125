"""
OpenTelemetry spans as OTLP JSON (one export, or JSON lines of exports), or as the SDK writes them (`span.to_json`), a span a line.

With attributes of the GenAI convention or of OpenInference. `execute_tool` spans are the calls; `chat` spans between
them tell the tokens of the response that made them. A session is the `gen_ai.conversation.id` or `session.id`, or else
the trace. Spans are exported as they end: they are put into the order of their start, as far as 64 of a session reach
back. Spans of this library also tell the decision (`guardrails.*`). A span whose call another span tells
(`guardrails.status` is `claimed`) is left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import is_one_of, listed, mapping, objects, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.traces.openinference import openinference_span
from guardrails.offline.readers.traces.spans import MODEL_CALLS, Sessions, Span


_SIGNALS: Final = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
_MAX_NANOSECONDS: Final = 2**63


class OTLP:
    """
    Exports of spans.
    """

    name = "opentelemetry spans"
    whole = True

    def recognises(self, head: str) -> bool:
        values = leading_values(head)
        first = values[0] if values else None
        return any("resourceSpans" in mapping(value) for value in values) or any(
            map(_is_sdk_span, (first if type(first) is list else values)[:5])
        )

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        sessions = Sessions(source)
        for number, value in parsed_values(lines, report, file):
            export = mapping(value)
            alone = value if type(value) is list else [value]
            if export.keys() & _SIGNALS:
                found = _exported(export)
            elif any(map(_is_sdk_span, alone)):
                found = map(_sdk_span, filter(_is_sdk_span, alone))
            else:
                report.broke(file, number)
                continue

            for span in found:
                if span is not None:
                    yield from sessions.add(span)
        yield from sessions.rest()


def _is_sdk_span(value: Any) -> bool:
    span = mapping(value)
    within = mapping(span.get("context"))
    return "trace_id" in within and "span_id" in within and type(span.get("attributes")) is dict


def _exported(export: Mapping[str, Any]) -> Iterator[Span | None]:
    """
    The spans of an export; None for one that is no call of a tool or of a model.
    """
    for resource in objects(export.get("resourceSpans")):
        for scope in objects(resource.get("scopeSpans")):
            for span in objects(scope.get("spans")):
                start, end = _nanoseconds(span.get("startTimeUnixNano")), _nanoseconds(span.get("endTimeUnixNano"))
                within = text(span.get("traceId")) or ""
                yield _span(start, end, within, _attributes(span.get("attributes")), mapping(span.get("status")))


def _sdk_span(span: Mapping[str, Any]) -> Span | None:
    said = mapping(span.get("status"))
    status = {"code": f"STATUS_CODE_{said.get('status_code')}", "message": said.get("description")}
    start, end = ((time_ms(span.get(key)) or 0) * 1_000_000 for key in ("start_time", "end_time"))
    return _span(start, end, text(span["context"]["trace_id"]) or "", span["attributes"], status)


def _span(start: int, end: int, trace: str, attributes: dict[str, Any], status: Mapping[str, Any]) -> Span | None:
    operation = attributes.get("gen_ai.operation.name")
    is_call = operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in attributes)
    if not is_call and not is_one_of(operation, MODEL_CALLS):
        return openinference_span(Span(start, end, 0, trace, is_call=False, attributes=attributes, status=status))

    session_id = text(attributes.get("gen_ai.conversation.id")) or trace
    return Span(start, end, 0, session_id, is_call, attributes=attributes, status=status)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value")) for pair in objects(pairs) if type(pair.get("key")) is str}


def _value(wrapped: Any) -> Any:
    """
    The value of an attribute: OTLP names its type, and writes 64-bit integers as text.
    """
    value = mapping(wrapped)
    for kind in ("stringValue", "boolValue", "doubleValue"):
        if kind in value:
            return value[kind]

    if "intValue" in value:
        return _integer(value["intValue"])

    if "arrayValue" in value:
        return [_value(each) for each in listed(mapping(value["arrayValue"]).get("values"))]

    return _attributes(mapping(value["kvlistValue"]).get("values")) if "kvlistValue" in value else None


def _integer(value: Any) -> Any:
    try:
        return int(value) if type(value) is str and len(value) <= 20 else value
    except ValueError:
        return value


def _nanoseconds(value: Any) -> int:
    number = _integer(value)
    return number if type(number) is int and 0 < number < _MAX_NANOSECONDS else 0
