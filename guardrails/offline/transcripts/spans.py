"""
The spans of agents as calls: OTLP JSON (one export, or JSON lines of exports), or as the SDK writes them (`span.to_json`), a span a line.

With attributes of OpenTelemetry's GenAI convention or of OpenInference. Spans are written as they end: they are put into the order of
their start. The spans of models between calls tell the tokens of the response that made them, and with which ids and arguments.
A session is the `gen_ai.conversation.id` or `session.id`, or else the trace. Spans of this library also tell the decision
(`guardrails.*`). A span whose call another span tells (`guardrails.status` is `claimed`) is left out.
"""

import re

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from guardrails.core.result.kinds import kind_of_name, kind_of_status
from guardrails.core.values.types import ERROR_TYPES, ErrorType

from .calls import RecordedCall, Report
from .events import Event, Made, Values
from .fields import amount, arguments_of, count, is_one_of, listed, mapping, objects, text, text_of, time_ms
from .json_text import parsed
from .results import settle


MODEL_CALLS: Final = frozenset({"chat", "generate_content", "text_completion"})
_SIGNALS: Final = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
_OWN: Final[dict[str, ErrorType]] = {kind: kind for kind in ERROR_TYPES}
_REFUSED: Final = frozenset({"deny", "pending"})
_ENDED: Final = frozenset({"success", "error", "validation_error"})
_KIND: Final = "openinference.span.kind"
_CALL: Final = re.compile(
    r"llm\.output_messages\.(\d{1,4})\.message\.tool_calls\.(\d{1,4})\.tool_call\.(id|function\.name|function\.arguments)"
)
_HIDDEN: Final = "__REDACTED__"
"""What stands for a text that was asked to be left out."""
_MAX_PARSED: Final = 1 << 20


class Asked(NamedTuple):
    """
    A call that a model's response asks for.
    """

    id: str | None
    tool: str
    arguments: Any


class Span(NamedTuple):
    """
    A call of a tool, or of a model.
    """

    start_ns: int
    end_ns: int
    session_id: str
    is_call: bool
    attributes: Mapping[str, Any]
    status: Mapping[str, Any]
    asked: tuple[Asked, ...] = ()
    """What a model's response called."""
    by_text: bool = False
    """A status that is no error says only that nothing was raised: then *failed* tells, or the text."""
    failed: bool | None = None


class Spans:
    """
    Exports of spans.
    """

    name = "opentelemetry spans"

    def fits(self, value: Any) -> bool:
        return not _SIGNALS.isdisjoint(mapping(value)) or any(
            map(_is_sdk_span, value[:5] if type(value) is list else [value])
        )

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        spans: list[Span | None] = []
        for number, value in values:
            alone = value if type(value) is list else [value]
            if not self.fits(value):
                report.broke(file, number)
            elif _SIGNALS.isdisjoint(mapping(value)):
                spans += map(_sdk_span, filter(_is_sdk_span, alone))
            else:
                spans += _exported(value)
        yield from span_events(span for span in spans if span is not None)


def span_events(spans: Iterable[Span]) -> Iterator[Event]:
    """
    Yields the calls among *spans*, in the order of their start in each session.
    """
    sessions: dict[str, _Session] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, span.end_ns)):
        session = sessions.setdefault(span.session_id, _Session())
        if not span.is_call:
            session.responded(span)
        elif span.attributes.get("guardrails.status") != "claimed" and text(span.attributes.get("gen_ai.tool.name")):
            yield session.made(span)


class _Session:
    def __init__(self) -> None:
        self._turn = 0
        self._response: Mapping[str, Any] = {}
        self._told = True
        """The tokens of the response are on a call."""
        self._asked: list[Asked] = []
        """What the latest response called, as far as no span was found for it."""

    def responded(self, span: Span) -> None:
        """
        Take note of a response of a model.
        """
        self._response, self._told, self._asked = span.attributes, False, list(span.asked)

    def made(self, span: Span) -> Made:
        """
        Returns the call of *span*.
        """
        said, response = span.attributes, self._response
        call = RecordedCall(
            "", span.session_id, 0, said["gen_ai.tool.name"], arguments_of(said.get("gen_ai.tool.call.arguments"))
        )
        call.id = text(said.get("gen_ai.tool.call.id"))
        self._join(call)
        call.model = text(response.get("gen_ai.response.model")) or text(response.get("gen_ai.request.model"))
        if not self._told:
            self._turn, self._told = self._turn + 1, True
            call.tokens_in = count(response.get("gen_ai.usage.input_tokens"))
            call.tokens_out = count(response.get("gen_ai.usage.output_tokens"))
        if span.start_ns:
            call.ts_ms = span.start_ns // 1_000_000
            call.duration_ms = max(span.end_ns - span.start_ns, 0) // 1_000_000 if span.end_ns else None
        if text(said.get("guardrails.decision")) is None:
            _settle(call, span)
        else:
            _decide(call, span)
        return Made(call, response=self._turn or None, again=True)

    def _join(self, call: RecordedCall) -> None:
        """
        Give *call* the id and the arguments that the model's response has for it.
        """
        asked = [each for each in self._asked if each.tool == call.tool]
        found = next((each for each in asked if each.id is not None and each.id == call.id), None)
        if found is None and call.id is None:
            found = next((each for each in asked if each.arguments == call.arguments), None)
            if found is None and asked and type(call.arguments) is not dict:
                # Some programs write the bare value of a single argument.
                found = asked[0]
        if found is not None:
            self._asked.remove(found)
            call.id = call.id or found.id
            if type(call.arguments) is not dict:
                call.arguments = found.arguments


def _decide(call: RecordedCall, span: Span) -> None:
    """
    Note the decision that a chain of this library made on *call*. A call that it refused, or that did not end, has no
    result.
    """
    said = span.attributes
    call.decision, call.code = text(said.get("guardrails.decision")), text(said.get("guardrails.code"))
    call.nudges = tuple(code for code in listed(said.get("guardrails.nudges")) if type(code) is str)
    call.run, call.number = text(said.get("guardrails.run")) or "", count(said.get("guardrails.n"))
    call.has_result = not is_one_of(call.decision, _REFUSED) and is_one_of(said.get("guardrails.status"), _ENDED)
    if not call.has_result:
        call.duration_ms = None
        return
    _settle(call, span)
    complete = said.get("guardrails.is_complete")
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = amount(said.get("guardrails.cost_usd"))
    if call.is_error:
        call.retry_after_ms = count(said.get("guardrails.retry_after_ms"))


def _settle(call: RecordedCall, span: Span) -> None:
    """
    A span that ended had a result, though its text may have been left out.
    """
    kind = span.attributes.get("error.type")
    failed: bool | None = kind is not None or span.status.get("code") in (2, "STATUS_CODE_ERROR")
    if not failed and span.by_text:
        failed = span.failed
    content = span.attributes.get("gen_ai.tool.call.result")
    if span.by_text and not span.end_ns and not failed and content is None:
        call.has_result = False
        return
    settle(call, content if content is not None else text_of(span.status.get("message")), failed=failed)
    if content is None and not failed:
        call.result = None
    if failed and (named := _error_type(kind)) is not None:
        call.error_type = named


def _error_type(kind: Any) -> ErrorType | None:
    """
    Returns the meaning of `error.type`: a status, or the name of a class.
    """
    if type(kind) is not str:
        return None
    if kind.isdecimal() and len(kind) == 3:
        return kind_of_status(int(kind))
    return _OWN.get(kind) or kind_of_name(kind.rsplit(".", 1)[-1])


def _is_sdk_span(value: Any) -> bool:
    span = mapping(value)
    return {"trace_id", "span_id"} <= mapping(span.get("context")).keys() and type(span.get("attributes")) is dict


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
    span = Span(start, end, text(attributes.get("gen_ai.conversation.id")) or trace, is_call, attributes, status)
    return span if is_call or is_one_of(operation, MODEL_CALLS) else _openinference(span, trace)


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
    return number if type(number) is int and 0 < number < 2**63 else 0


def _openinference(span: Span, trace: str) -> Span | None:
    """
    Returns a span of OpenInference with the attributes of the GenAI convention. Returns None if it is no call of a tool
    or of a model.
    """
    said = span.attributes
    session_id = text(said.get("session.id")) or trace
    if said.get(_KIND) == "LLM":
        known = {
            "gen_ai.response.model": said.get("llm.model_name"),
            "gen_ai.usage.input_tokens": said.get("llm.token_count.prompt"),
            "gen_ai.usage.output_tokens": said.get("llm.token_count.completion"),
        }
        return span._replace(session_id=session_id, attributes=known, asked=_asked(said))
    name = text(said.get("tool.name"))
    if said.get(_KIND) != "TOOL" or name is None:
        return None
    arguments, result = (
        None if (value := said.get(f"{key}.value")) == _HIDDEN else value for key in ("input", "output")
    )
    known = {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": arguments}
    message = _message(said.get("output.value"))
    if message:
        result = message.get("content")
        known["gen_ai.tool.call.id"] = message.get("tool_call_id")
    known["gen_ai.tool.call.result"] = result
    failed = True if message.get("status") == "error" else None
    return span._replace(session_id=session_id, is_call=True, attributes=known, by_text=True, failed=failed)


def _message(written: Any) -> Mapping[str, Any]:
    """
    The message of LangChain that a result is wrapped in; an empty one if it is not.
    """
    if type(written) is not str or not written.startswith('{"type": "tool"') or len(written) > _MAX_PARSED:
        return {}
    found = mapping(parsed(written))
    message = mapping(found.get("data")) or found
    return message if "content" in message and "tool_call_id" in message else {}


def _asked(said: Mapping[str, Any]) -> tuple[Asked, ...]:
    """
    Returns the calls in a model's response, in its order.
    """
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for key, value in said.items():
        if key.startswith("llm.output_messages.") and (place := _CALL.fullmatch(key)):
            found.setdefault((int(place[1]), int(place[2])), {})[place[3]] = value
    calls = [found[place] for place in sorted(found)]
    return tuple(
        Asked(text(call.get("id")), name, arguments_of(call.get("function.arguments")))
        for call in calls
        if (name := text(call.get("function.name")))
    )
