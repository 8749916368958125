"""
The spans of agents as calls: OTLP JSON (one export, or JSON lines of exports), or as the SDK writes them (`span.to_json`), a span a line.

With attributes of OpenTelemetry's GenAI convention or of OpenInference. Spans are written as they end: they are put into the order of
their start. The spans of models between calls tell the tokens of the response that made them, and with which ids and arguments. Where a
session has no spans of tools, the messages of its models, or of its agents (`gen_ai.output.messages`, and the results there or in later
`gen_ai.input.messages`) tell the calls. A session is the `gen_ai.conversation.id` or `session.id`, or else the trace. Spans of this library also tell the decision
(`guardrails.*`). A span whose call another span tells (`guardrails.status` is `claimed`) is left out.
"""

import re

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple, Self

from guardrails.core.result.kinds import kind_of_name, kind_of_status
from guardrails.core.values.types import ERROR_TYPES, ErrorType

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import amount, arguments_of, count, is_one_of, listed, mapping, objects, text, text_of, time_ms
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
    call: RecordedCall | None = None
    """None: a response."""
    model: str | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    asked: list[Asked] = field(default_factory=list)
    """What a response called."""
    messages: tuple[Any, Any] | None = None
    """Those that a response answers, and its own; None: they are not there."""
    is_agent: bool = False
    """All responses of an agent's run in one: it tells nothing beside spans of their own."""

    def of_call(
        self,
        tool: str,
        arguments: Any,
        id_: str | None,
        result: Any,
        failed: bool | None,
        message: str = "",
        error: Any = None,
    ) -> Self:
        """
        Returns the same span as that of a call of *tool*. Its *result* is None if its text was left out; then the *message* of the status
        tells of a failure. Whether it *failed* is None if it is known only that nothing was raised; then the text is asked. An *error* is
        the name of the failure: a status, or a class.
        """
        self.call = call = RecordedCall("", "", 0, tool, arguments, id=id_)
        if self.start_ns:
            call.ts_ms = self.start_ns // 1_000_000
            call.duration_ms = max(self.end_ns - self.start_ns, 0) // 1_000_000 if self.end_ns else None
        if failed is None and not self.end_ns and result is None:
            call.has_result = False
            return self
        settle(call, message if result is None else result, failed=failed)
        if result is None and not call.is_error:
            call.result = None
        if call.is_error and type(error) is str:
            status = kind_of_status(int(error)) if error.isdecimal() and len(error) == 3 else None
            call.error_type = status or _OWN.get(error) or kind_of_name(error.rsplit(".", 1)[-1]) or call.error_type
        return self


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
        for _, value in values:
            if _SIGNALS.isdisjoint(mapping(value)):
                spans += map(_sdk_span, filter(_is_sdk_span, value if type(value) is list else [value]))
            else:
                spans += _exported(value)
        yield from span_events(span for span in spans if span is not None)


def span_events(spans: Iterable[Span]) -> Iterator[Event]:
    """
    Yields the calls among *spans*, in the order of their start in each session.
    """
    ordered = sorted(spans, key=lambda span: (span.start_ns, span.end_ns))
    traced = {span.session_id for span in ordered if span.call is not None}
    told = {span.session_id for span in ordered if not span.is_agent}
    latest: dict[str, tuple[int, Span]] = {}
    for number, span in enumerate(ordered):
        if (call := span.call) is not None:
            call.session_id = span.session_id
            response, by = latest.get(span.session_id, (None, None))
            if by is not None:
                call.model = by.model
                _join(call, by.asked)
            yield Made(call, response=response, again=True)
        elif not (span.is_agent and span.session_id in told):
            latest[span.session_id] = number, span
            yield Used(span.session_id, number, *span.tokens)
            if span.session_id not in traced and span.messages is not None:
                yield from _said(span, number)


def _said(span: Span, number: int) -> Iterator[Event]:
    """
    Yields the results that the messages of a response bring, and the calls that it makes.
    """
    before, own = ([*_parts(messages, "tool_call_response")] for messages in span.messages or ())
    results = (
        Came(span.session_id, id_, next((part[key] for key in ("response", "result") if key in part), None))
        for part in (*before, *own)
        if (id_ := text(part.get("id")))
    )
    yield from islice(results, len(before))
    for asked in span.asked:
        call = RecordedCall("", span.session_id, 0, asked.tool, asked.arguments, id=asked.id, model=span.model)
        call.ts_ms = span.end_ns // 1_000_000 or None
        yield Made(call, asked.id, number, again=True)
    yield from results


def _join(call: RecordedCall, asked: list[Asked]) -> None:
    """
    Give *call* the id and the arguments that the model's response has for it, among those that no other call has.
    """
    named = [each for each in asked if each.tool == call.tool]
    found = next((each for each in named if each.id is not None and each.id == call.id), None)
    if found is None and call.id is None:
        found = next((each for each in named if each.arguments == call.arguments), None)
        if found is None and named and type(call.arguments) is not dict:
            # Some programs write the bare value of a single argument.
            found = named[0]
    if found is not None:
        asked.remove(found)
        call.id = call.id or found.id
        call.arguments = call.arguments if type(call.arguments) is dict else found.arguments


def _decide(call: RecordedCall, said: Mapping[str, Any]) -> None:
    """
    Note the decision that a chain of this library made on *call*. A call that it refused, or that did not end, has no
    result.
    """
    call.decision, call.code = text(said.get("guardrails.decision")), text(said.get("guardrails.code"))
    call.nudges = tuple(code for code in listed(said.get("guardrails.nudges")) if type(code) is str)
    call.run, call.number = text(said.get("guardrails.run")) or "", count(said.get("guardrails.n"))
    if is_one_of(call.decision, _REFUSED) or not is_one_of(said.get("guardrails.status"), _ENDED):
        call.has_result, call.result, call.is_error, call.error_type, call.duration_ms = False, None, None, None, None
        return
    complete = said.get("guardrails.is_complete")
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = amount(said.get("guardrails.cost_usd"))
    call.retry_after_ms = count(said.get("guardrails.retry_after_ms")) if call.is_error else None


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
    failed = failed or said.get("error.type") is not None
    named = text(said.get("gen_ai.conversation.id")) or text(said.get("session.id"))
    span.session_id = named or span.session_id
    operation, tool = said.get("gen_ai.operation.name"), text(said.get("gen_ai.tool.name"))
    if "gen_ai.output.messages" in said:
        span.messages = said.get("gen_ai.input.messages"), said["gen_ai.output.messages"]
        span.asked, span.is_agent = asked_in(_parts(span.messages[1], "tool_call")), operation == "invoke_agent"
    if span.is_agent or is_one_of(operation, _MODEL_CALLS):
        span.model = text(said.get("gen_ai.response.model")) or text(said.get("gen_ai.request.model"))
        span.tokens = count(said.get("gen_ai.usage.input_tokens")), count(said.get("gen_ai.usage.output_tokens"))
        return span
    if operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in said):
        if tool is None or said.get("guardrails.status") == "claimed":
            return None
        arguments, id_ = arguments_of(said.get("gen_ai.tool.call.arguments")), text(said.get("gen_ai.tool.call.id"))
        result, error = said.get("gen_ai.tool.call.result"), said.get("error.type")
        call = span.of_call(tool, arguments, id_, result, failed, text_of(message), error).call
        if call is not None and text(said.get("guardrails.decision")):
            _decide(call, said)
        return span
    return _openinference(said, span, failed, text_of(message))


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


def _openinference(said: Mapping[str, Any], span: Span, failed: bool, message: str) -> Span | None:
    if said.get(_KIND) == "LLM":
        span.model = text(said.get("llm.model_name"))
        span.tokens = count(said.get("llm.token_count.prompt")), count(said.get("llm.token_count.completion"))
        found: dict[tuple[int, int], dict[str, Any]] = {}
        for key, value in said.items():
            if key.startswith("llm.output_messages.") and (place := _CALL.fullmatch(key)):
                found.setdefault((int(place[1]), int(place[2])), {})[place[3].removeprefix("function.")] = value
        span.asked = asked_in(found[place] for place in sorted(found))
        return span
    tool, id_ = text(said.get("tool.name")), None
    if said.get(_KIND) != "TOOL" or tool is None:
        return None
    arguments, result = (
        None if said.get(f"{of}.value") == _HIDDEN else said.get(f"{of}.value") for of in ("input", "output")
    )
    if type(result) is str and result.startswith('{"type": "tool"') and len(result) <= _MAX_PARSED:
        # The message of LangChain that a result is wrapped in.
        held = mapping(parsed(result))
        told = mapping(held.get("data")) or held
        if {"content", "tool_call_id"} <= told.keys():
            result, id_, failed = told["content"], text(told["tool_call_id"]), failed or told.get("status") == "error"
    return span.of_call(tool, arguments_of(arguments), id_, result, failed or None, message, said.get("error.type"))
