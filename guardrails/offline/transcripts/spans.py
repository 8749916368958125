"""
Spans of agents as calls: OTLP JSON (one export, or JSON lines of exports), or as the SDK writes them (`span.to_json`), a span a line.

With attributes of OpenTelemetry's GenAI convention or of OpenInference. Spans are written as they end: they are put into the order of
their start. The spans of models between calls tell the tokens of the response that made them, and with which ids and arguments. Where a
session has no spans of tools, the messages of its models, or of its agents (`gen_ai.output.messages`, and the results there or in later
`gen_ai.input.messages`) tell the calls. A session is the `gen_ai.conversation.id` or `session.id`, or else the trace. Spans of this library also tell the decision
(`guardrails.*`). A span whose call another span tells (`guardrails.status` is `claimed`) is left out.
"""

import re

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from guardrails.core.result.kinds import kind_of_name, kind_of_status

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import ERRORS, amount, arguments_of, count, is_one_of, listed, mapping, objects, text, text_of, time_ms
from .json_text import parsed
from .results import settle


_MODEL_CALLS: Final = frozenset({"chat", "generate_content", "text_completion"})
_SIGNALS: Final = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
_ENDED: Final = frozenset({"success", "error", "validation_error"})
_CALL: Final = re.compile(
    r"llm\.output_messages\.(\d{1,4})\.message\.tool_calls\.(\d{1,4})\.tool_call\.(?:function\.)?(id|name|arguments)"
)
_HIDDEN: Final = "__REDACTED__"
"""What stands for a text that was asked to be left out."""
_MAX_PARSED: Final = 1 << 20


@dataclass(slots=True)
class Span:
    """
    A call of a tool, or a response of a model.
    """

    start_ns: int
    end_ns: int
    """0: it has not ended."""
    session_id: str
    failed: bool = False
    message: str = ""
    """Of its status."""
    error: Any = None
    """The name of the failure: a status, or a class."""
    call: RecordedCall | None = None
    """None: a response."""
    model: str | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    asked: list[RecordedCall] = field(default_factory=list)
    """The calls that a response asks for."""
    messages: tuple[Any, Any] = (None, None)
    """Those that a response answers, and its own."""
    is_agent: bool = False
    """All responses of an agent's run in one: it tells nothing beside spans of their own."""

    def of_call(self, tool: str, arguments: Any, id_: str | None, result: Any, failed: bool | None) -> RecordedCall:
        """
        Returns the call of *tool* that the span is. Its *result* is None if its text was left out; then the message of the status
        tells of a failure. Whether it *failed* is None if it is known only that nothing was raised; then the text is asked.
        """
        self.call = call = RecordedCall("", tool, arguments_of(arguments), id=id_)
        if self.start_ns:
            call.ts_ms = self.start_ns // 1_000_000
            call.duration_ms = max(self.end_ns - self.start_ns, 0) // 1_000_000 if self.end_ns else None
        call.has_result = failed is not None or bool(self.end_ns) or result is not None
        if call.has_result:
            settle(call, self.message if result is None else result, failed=failed)
            call.result = None if result is None and not call.is_error else call.result
        if call.is_error and type(error := self.error) is str:
            status = kind_of_status(int(error)) if error.isdecimal() and len(error) == 3 else None
            call.error_type = status or ERRORS.get(error) or kind_of_name(error.rsplit(".", 1)[-1]) or call.error_type
        return call


class Spans:
    """
    Exports of spans.
    """

    name = "opentelemetry spans"

    def fits(self, value: Any) -> bool:
        return not _SIGNALS.isdisjoint(mapping(value)) or any(map(_is_sdk_span, _several(value)[:5]))

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        spans = ((said, span) for _, value in values for said, span in (*_written(value), *_exported(value)))
        yield from span_events(span for said, span in spans if _is_told(said, span))


def span_events(spans: Iterable[Span]) -> Iterator[Event]:
    """
    Yields the calls among *spans*, in the order of their start in each session.
    """
    ordered = sorted(spans, key=lambda span: (span.start_ns, span.end_ns))
    traced = {span.session_id for span in ordered if span.call is not None}
    plain = {span.session_id for span in ordered if not span.is_agent}
    latest: dict[str, tuple[int, Span]] = {}
    for number, span in enumerate(ordered):
        if (call := span.call) is not None:
            call.session_id = span.session_id
            response, by = latest.get(span.session_id, (None, None))
            if by is not None:
                call.model = by.model
                _join(call, by.asked)
            yield Made(call, response=response, again=True)
        elif not (span.is_agent and span.session_id in plain):
            latest[span.session_id] = number, span
            yield Used(span.session_id, number, *span.tokens)
            if span.session_id not in traced:
                yield from _in_messages(span, number)


def _in_messages(span: Span, number: int) -> Iterator[Event]:
    """
    Yields the results that the messages of a response bring, and the calls that it makes.
    """
    before, own = ([*_parts(messages, "tool_call_response")] for messages in span.messages)
    results = (
        Came(span.session_id, text(part.get("id")), part.get("response", part.get("result")))
        for part in (*before, *own)
    )
    yield from islice(results, len(before))
    for call in span.asked if span.messages[1] is not None else ():
        call.session_id, call.model, call.ts_ms = span.session_id, span.model, span.end_ns // 1_000_000 or None
        yield Made(call, call.id, number, again=True)
    yield from results


def _join(call: RecordedCall, asked: list[RecordedCall]) -> None:
    """
    Give *call* the id and the arguments that the model's response has for it, among those that no other call has.
    """
    # Some programs write the bare value of a single argument.
    bare = type(call.arguments) is not dict
    fit = [each for each in asked if each.tool == call.tool and call.id in (None, each.id)]
    first = fit[0] if fit and bare else None
    if found := next((each for each in fit if call.id is not None or each.arguments == call.arguments), first):
        asked.remove(found)
        call.id, call.arguments = call.id or found.id, found.arguments if bare else call.arguments


def _decide(call: RecordedCall, said: Mapping[str, Any]) -> None:
    """
    Note the decision that a chain of this library made on *call*. A call that it refused, or that did not end, has no
    result.
    """
    call.decision, call.code = text(said.get("guardrails.decision")), text(said.get("guardrails.code"))
    call.nudges = tuple(filter(text, listed(said.get("guardrails.nudges"))))
    call.run, call.number = text(said.get("guardrails.run")) or "", count(said.get("guardrails.n"))
    if call.decision in ("deny", "pending") or not is_one_of(said.get("guardrails.status"), _ENDED):
        call.has_result, call.result, call.is_error, call.error_type, call.duration_ms = False, None, None, None, None
        return
    complete = said.get("guardrails.is_complete")
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = amount(said.get("guardrails.cost_usd"))
    call.retry_after_ms = count(said.get("guardrails.retry_after_ms")) if call.is_error else None


def _several(value: Any) -> list[Any]:
    return value if type(value) is list else [value]


def _is_sdk_span(value: Any) -> bool:
    span = mapping(value)
    return {"trace_id", "span_id"} <= mapping(span.get("context")).keys() and type(span.get("attributes")) is dict


def _written(value: Any) -> Iterator[tuple[Mapping[str, Any], Span]]:
    """
    The spans that the SDK wrote, with their attributes.
    """
    for span in filter(_is_sdk_span, _several(value)):
        status, trace = mapping(span.get("status")), text(span["context"]["trace_id"]) or ""
        start, end = ((time_ms(span.get(key)) or 0) * 1_000_000 for key in ("start_time", "end_time"))
        failed = status.get("status_code") == "ERROR"
        yield span["attributes"], Span(start, end, trace, failed, text_of(status.get("description")))


def _exported(value: Any) -> Iterator[tuple[Mapping[str, Any], Span]]:
    """
    The same of an export.
    """
    for resource in objects(mapping(value).get("resourceSpans")):
        for span in (span for scope in objects(resource.get("scopeSpans")) for span in objects(scope.get("spans"))):
            status, trace = mapping(span.get("status")), text(span.get("traceId")) or ""
            start, end = (_nanoseconds(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano"))
            failed = status.get("code") in (2, "STATUS_CODE_ERROR")
            yield _attributes(span.get("attributes")), Span(start, end, trace, failed, text_of(status.get("message")))


def _is_told(said: Mapping[str, Any], span: Span) -> bool:
    """
    Fill *span* with what its attributes say. Returns whether it is one of a call of a tool, or of a model.
    """
    span.session_id = text(said.get("gen_ai.conversation.id")) or text(said.get("session.id")) or span.session_id
    operation, own, span.error = (
        said.get(name) for name in ("gen_ai.operation.name", "gen_ai.output.messages", "error.type")
    )
    failed, kind = span.failed or span.error is not None, said.get("openinference.span.kind")
    span.is_agent = operation == "invoke_agent" and own is not None
    if span.is_agent or is_one_of(operation, _MODEL_CALLS):
        span.messages, span.asked = (said.get("gen_ai.input.messages"), own), asked_in(_parts(own, "tool_call"))
        span.model = text(said.get("gen_ai.response.model")) or text(said.get("gen_ai.request.model"))
        span.tokens = count(said.get("gen_ai.usage.input_tokens")), count(said.get("gen_ai.usage.output_tokens"))
    elif operation == "execute_tool" or (operation is None and "gen_ai.tool.name" in said):
        tool = text(said.get("gen_ai.tool.name"))
        if tool is None or said.get("guardrails.status") == "claimed":
            return False
        arguments, id_, result = (said.get(f"gen_ai.tool.call.{of}") for of in ("arguments", "id", "result"))
        call = span.of_call(tool, arguments, text(id_), result, failed)
        if text(said.get("guardrails.decision")):
            _decide(call, said)
    elif kind == "LLM":
        span.model = text(said.get("llm.model_name"))
        span.tokens = count(said.get("llm.token_count.prompt")), count(said.get("llm.token_count.completion"))
        found: defaultdict[tuple[int, int], dict[str, Any]] = defaultdict(dict)
        for place, value in ((_CALL.fullmatch(key), value) for key, value in said.items()):
            if place:
                found[int(place[1]), int(place[2])][place[3]] = value
        span.asked = asked_in(found[place] for place in sorted(found))
    elif kind == "TOOL" and (tool := text(said.get("tool.name"))) is not None:
        values = (said.get("input.value"), said.get("output.value"))
        arguments, result = (None if value == _HIDDEN else value for value in values)
        wrapped = text(result) or ""
        wrapped = wrapped if wrapped.startswith('{"type": "tool"') and len(wrapped) <= _MAX_PARSED else ""
        result, id_, raised = tool_message(parsed(wrapped), result)
        span.of_call(tool, arguments, id_, result, failed or raised or None)
    else:
        return False
    return True


def tool_message(value: Any, otherwise: Any) -> tuple[Any, str | None, bool]:
    """
    Returns the content of a message of LangChain that a result is wrapped in, the id of its call, and whether it failed; *otherwise* if *value* is none.
    """
    held = mapping(value)
    message = mapping(held.get("data")) or held
    if held.get("type") != "tool" or "content" not in message:
        return otherwise, None, False
    return message["content"], text(message.get("tool_call_id")), message.get("status") == "error"


def _parts(messages: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    """
    The parts of a *kind* in messages, which are written as JSON text or as they are.
    """
    for message in objects(parsed(messages) if type(messages) is str else messages):
        yield from (part for part in objects(message.get("parts")) if part.get("type") == kind)


def asked_in(calls: Iterable[Mapping[str, Any]], arguments: str = "arguments") -> list[RecordedCall]:
    """
    Returns what *calls* ask for, whose arguments have this name.
    """
    named = ((text(call.get("name")), call) for call in calls)
    return [
        RecordedCall("", tool, arguments_of(call.get(arguments)), id=text(call.get("id")))
        for tool, call in named
        if tool
    ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value")) for pair in objects(pairs) if type(pair.get("key")) is str}


def _value(wrapped: Any) -> Any:
    """
    The value of an attribute: OTLP names its type, and writes 64-bit integers as text.
    """
    kind, value = next(iter(mapping(wrapped).items()), ("", None))
    if kind == "arrayValue":
        return list(map(_value, listed(mapping(value).get("values"))))
    if kind == "kvlistValue":
        return _attributes(mapping(value).get("values"))
    return _integer(value) if kind == "intValue" else value


def _nanoseconds(value: Any) -> int:
    number = _integer(value)
    return number if type(number) is int and 0 < number < 2**63 else 0


def _integer(value: Any) -> Any:
    with suppress(ValueError):
        return int(value) if type(value) is str and len(value) <= 20 else value
    return value
