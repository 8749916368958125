"""
The spans of agents as calls: OTLP JSON (one export, or JSON lines of exports), or as the SDK writes them (`span.to_json`), a span a line.

With attributes of OpenTelemetry's GenAI convention or of OpenInference. Spans are written as they end: they are put into the order of
their start. The spans of models between calls tell the tokens of the response that made them, and with which ids and arguments. Where a
session has no spans of tools, the messages of its models (`gen_ai.output.messages`, and the results in later `gen_ai.input.messages`)
tell the calls. A session is the `gen_ai.conversation.id` or `session.id`, or else the trace. Spans of this library also tell the decision
(`guardrails.*`). A span whose call another span tells (`guardrails.status` is `claimed`) is left out.
"""

import re

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from guardrails.core.result.kinds import kind_of_name, kind_of_status
from guardrails.core.values.types import ERROR_TYPES, ErrorType

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import NOTHING, amount, arguments_of, count, is_one_of, listed, mapping, objects, text, text_of, time_ms
from .json_text import parsed
from .results import settle


_MODEL_CALLS: Final = frozenset({"chat", "generate_content", "text_completion"})
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


@dataclass(slots=True)
class Span:
    """
    A call of a tool, or a response of a model.
    """

    start_ns: int
    end_ns: int
    """0: it has not ended."""
    session_id: str
    tool: str | None = None
    """None: a response."""
    id: str | None = None
    arguments: Any = None
    result: Any = None
    """None: the text is not there."""
    failed: bool | None = None
    """None: nothing is known but that nothing was raised, and the text is asked."""
    message: str = ""
    """Of its status."""
    error: Any = None
    """The name of the failure: a status, or a class."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of this library."""
    model: str | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    asked: list[Asked] = field(default_factory=list)
    """What a response called."""
    answers: list[tuple[str, Any]] | None = None
    """The ids and results that a response was given; None: its messages are not there."""


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
            if not self.fits(value):
                report.broke(file, number)
            elif _SIGNALS.isdisjoint(mapping(value)):
                spans += map(_sdk_span, filter(_is_sdk_span, value if type(value) is list else [value]))
            else:
                spans += _exported(value)
        yield from span_events(span for span in spans if span is not None)


def span_events(spans: Iterable[Span]) -> Iterator[Event]:
    """
    Yields the calls among *spans*, in the order of their start in each session.
    """
    ordered = sorted(spans, key=lambda span: (span.start_ns, span.end_ns))
    traced = {span.session_id for span in ordered if span.tool is not None}
    sessions = defaultdict[str, _Session](_Session)
    for number, span in enumerate(ordered):
        session = sessions[span.session_id]
        if span.tool is not None:
            yield session.made(span)
            continue
        session.response, session.number, session.asked = span, number, list(span.asked)
        yield Used(span.session_id, number, *span.tokens)
        if span.session_id not in traced and span.answers is not None:
            for id_, content in span.answers:
                yield Came(span.session_id, id_, content)
            for asked in span.asked:
                call = RecordedCall("", span.session_id, 0, asked.tool, asked.arguments, id=asked.id, model=span.model)
                call.ts_ms = span.end_ns // 1_000_000 or None
                yield Made(call, asked.id, number, again=True)


@dataclass(slots=True)
class _Session:
    response: Span | None = None
    """The latest."""
    number: int | None = None
    asked: list[Asked] = field(default_factory=list)
    """What it called, as far as no span was found for it."""

    def made(self, span: Span) -> Made:
        """
        Returns the call of *span*.
        """
        call = RecordedCall("", span.session_id, 0, str(span.tool), span.arguments, id=span.id)
        self._join(call)
        call.model = self.response.model if self.response is not None else None
        if span.start_ns:
            call.ts_ms = span.start_ns // 1_000_000
            call.duration_ms = max(span.end_ns - span.start_ns, 0) // 1_000_000 if span.end_ns else None
        if text(span.own.get("guardrails.decision")) is None:
            _settle(call, span)
        else:
            _decide(call, span)
        return Made(call, response=self.number, again=True)

    def _join(self, call: RecordedCall) -> None:
        """
        Give *call* the id and the arguments that the model's response has for it.
        """
        asked = [each for each in self.asked if each.tool == call.tool]
        found = next((each for each in asked if each.id is not None and each.id == call.id), None)
        if found is None and call.id is None:
            found = next((each for each in asked if each.arguments == call.arguments), None)
            if found is None and asked and type(call.arguments) is not dict:
                # Some programs write the bare value of a single argument.
                found = asked[0]
        if found is not None:
            self.asked.remove(found)
            call.id = call.id or found.id
            call.arguments = call.arguments if type(call.arguments) is dict else found.arguments


def _decide(call: RecordedCall, span: Span) -> None:
    """
    Note the decision that a chain of this library made on *call*. A call that it refused, or that did not end, has no
    result.
    """
    said = span.own
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
    if span.failed is None and not span.end_ns and span.result is None:
        call.has_result = False
        return
    settle(call, span.message if span.result is None else span.result, failed=span.failed)
    if span.result is None and not call.is_error:
        call.result = None
    if call.is_error and type(span.error) is str:
        status = kind_of_status(int(span.error)) if span.error.isdecimal() and len(span.error) == 3 else None
        named = status or _OWN.get(span.error) or kind_of_name(span.error.rsplit(".", 1)[-1])
        call.error_type = named or call.error_type


def _is_sdk_span(value: Any) -> bool:
    span = mapping(value)
    return {"trace_id", "span_id"} <= mapping(span.get("context")).keys() and type(span.get("attributes")) is dict


def _exported(export: Mapping[str, Any]) -> Iterator[Span | None]:
    for resource in objects(export.get("resourceSpans")):
        for scope in objects(resource.get("scopeSpans")):
            for span in objects(scope.get("spans")):
                start, end = (_nanoseconds(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano"))
                status, trace = mapping(span.get("status")), text(span.get("traceId"))
                failed = status.get("code") in (2, "STATUS_CODE_ERROR")
                yield _span(
                    _attributes(span.get("attributes")), Span(start, end, trace or ""), failed, status.get("message")
                )


def _sdk_span(span: Mapping[str, Any]) -> Span | None:
    status, trace = mapping(span.get("status")), text(span["context"]["trace_id"])
    start, end = ((time_ms(span.get(key)) or 0) * 1_000_000 for key in ("start_time", "end_time"))
    failed = status.get("status_code") == "ERROR"
    return _span(span["attributes"], Span(start, end, trace or ""), failed, status.get("description"))


def _span(said: Mapping[str, Any], span: Span, failed: bool, message: Any) -> Span | None:
    """
    Returns *span* with what its attributes say; None for one that is no call of a tool or of a model.
    """
    span.message, span.error = text_of(message), said.get("error.type")
    failed = failed or span.error is not None
    span.session_id = text(said.get("gen_ai.conversation.id")) or span.session_id
    operation, tool = said.get("gen_ai.operation.name"), text(said.get("gen_ai.tool.name"))
    if is_one_of(operation, _MODEL_CALLS):
        span.model = text(said.get("gen_ai.response.model")) or text(said.get("gen_ai.request.model"))
        span.tokens = count(said.get("gen_ai.usage.input_tokens")), count(said.get("gen_ai.usage.output_tokens"))
        if "gen_ai.output.messages" in said:
            span.answers = [
                (id_, next((part[key] for key in ("response", "result") if key in part), None))
                for part in _parts(said.get("gen_ai.input.messages"), "tool_call_response")
                if (id_ := text(part.get("id")))
            ]
            span.asked = asked_in(_parts(said["gen_ai.output.messages"], "tool_call"))
        return span
    if operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in said):
        span.tool, span.own, span.failed = tool, said, failed
        span.id, span.result = text(said.get("gen_ai.tool.call.id")), said.get("gen_ai.tool.call.result")
        span.arguments = arguments_of(said.get("gen_ai.tool.call.arguments"))
        return None if tool is None or said.get("guardrails.status") == "claimed" else span
    return _openinference(said, span, failed)


def _parts(messages: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    """
    The parts of a *kind* in messages, which are written as JSON text or as they are.
    """
    for message in objects(parsed(messages) if type(messages) is str else messages):
        yield from (part for part in objects(message.get("parts")) if part.get("type") == kind)


def asked_in(calls: Iterable[Mapping[str, Any]], arguments: str = "arguments") -> list[Asked]:
    """
    Returns what *calls* ask for, whose arguments have this name.
    """
    return [
        Asked(text(call.get("id")), tool, arguments_of(call.get(arguments)))
        for call in calls
        if (tool := text(call.get("name")))
    ]


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


def _openinference(said: Mapping[str, Any], span: Span, failed: bool) -> Span | None:
    span.session_id = text(said.get("session.id")) or span.session_id
    if said.get(_KIND) == "LLM":
        span.model = text(said.get("llm.model_name"))
        span.tokens = count(said.get("llm.token_count.prompt")), count(said.get("llm.token_count.completion"))
        found: dict[tuple[int, int], dict[str, Any]] = {}
        for key, value in said.items():
            if key.startswith("llm.output_messages.") and (place := _CALL.fullmatch(key)):
                found.setdefault((int(place[1]), int(place[2])), {})[place[3].removeprefix("function.")] = value
        span.asked = asked_in(found[place] for place in sorted(found))
        return span
    span.tool = text(said.get("tool.name"))
    if said.get(_KIND) != "TOOL" or span.tool is None:
        return None
    arguments, span.result = (
        None if (value := said.get(f"{key}.value")) == _HIDDEN else value for key in ("input", "output")
    )
    span.arguments, written = arguments_of(arguments), span.result
    message: Mapping[str, Any] = NOTHING
    if type(written) is str and written.startswith('{"type": "tool"') and len(written) <= _MAX_PARSED:
        # The message of LangChain that a result is wrapped in.
        found_in = mapping(parsed(written))
        message = mapping(found_in.get("data")) or found_in
    if {"content", "tool_call_id"} <= message.keys():
        span.result, span.id, failed = (
            message["content"],
            text(message["tool_call_id"]),
            failed or message.get("status") == "error",
        )
    span.failed = failed or None
    return span
