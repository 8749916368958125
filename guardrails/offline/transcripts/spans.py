"""
Spans of agents as calls: OTLP JSON (one export, or JSON lines of exports), spans as the SDK writes them, one a line (`span.to_json(indent=None)`), or
runs of LangSmith (the output of `Client.list_runs`, a run a line or in a list, or an answer of its API).

Attributes are those of OpenTelemetry's GenAI convention, here without `gen_ai.`; those of OpenInference and of LangSmith are renamed to them.
Spans are written as they end: they are put into the order of their start. The spans of models between calls tell the tokens of the response
that made them, and with which ids and arguments. Calls that have no span of their own are told by the messages of the session's models or,
where it has no spans of models, of its agents; and so are their results.

A session is the `gen_ai.conversation.id` or `session.id`, or the thread of LangSmith's metadata, or else the trace. Of spans of this library the decision is read too (`guardrails.decision`); one whose call another span tells
(`guardrails.status` is `claimed`) is left out.
"""

import re

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from guardrails.core.result.kinds import kind_of

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import arguments_of, at, json_in, listed, mapping, objects, text, text_of, time_ms


_MODEL_CALLS: Final = ("chat", "generate_content", "text_completion")
_SIGNALS: Final = frozenset({"resourceSpans", "resourceLogs", "resourceMetrics"})
_OPENINFERENCE: Final = {
    "input.value": "tool.call.arguments",
    "output.value": "tool.call.result",
    "llm.model_name": "response.model",
    "llm.token_count.prompt": "usage.input_tokens",
    "llm.token_count.completion": "usage.output_tokens",
}
_OPERATIONS: Final = {"llm": "chat", "tool": "execute_tool"}
"""Of the kinds of OpenInference and LangSmith."""
_CALL: Final = re.compile(r"llm\.output_messages\.(\d{1,4})\.\D*(\d{1,4})\.tool_call\.\D*(id|name|arguments)")
_MS: Final = 1_000_000
"""Nanoseconds of a millisecond."""
_HIDDEN: Final = "__REDACTED__"
"""What stands for a text that was asked to be left out."""
_ENDED: Final = ("success", "error", "validation_error", None)
"""Of `guardrails.status`."""


class Span(NamedTuple):
    """
    A call of a tool, a response of a model, or an agent with all responses of its run in one.
    """

    start_ns: int
    """0: unknown; so of the end: it has not ended."""
    end_ns: int
    session: str
    failed: bool
    message: str
    """Of its status."""
    attributes: Mapping[str, Any]
    """The attributes."""


def _span_events(spans: list[Span]) -> Iterator[Event]:
    """
    Yields the calls among *spans*, in the order of their start in each session. One that stands there twice is one.
    """
    sessions: defaultdict[str, list[Span]] = defaultdict(list)
    once = {repr(span): span for span in spans if _has_calls(span)}
    for span in sorted(once.values(), key=lambda span: (span.start_ns, span.end_ns)):
        sessions[span.session].append(span)
    for own in sessions.values():
        yield from _session(own)


def _has_calls(span: Span) -> bool:
    """
    Returns whether *span* is one of a call of a tool, or of messages.
    """
    operation = span.attributes.get("operation.name")
    if operation == "execute_tool":
        return bool(text(span.attributes.get("tool.name"))) and span.attributes.get("guardrails.status") != "claimed"
    return operation in _MODEL_CALLS or (operation == "invoke_agent" and "output.messages" in span.attributes)


def _session(spans: list[Span]) -> Iterator[Event]:
    """
    Yields the calls of a session. A span of a tool tells more of the call of its id or, where one of both has none, of its tool that a
    response asked for; or of one that none did. If no span tells of such a call, they go by other names, and the spans alone are read.
    """
    operations = {span.attributes["operation.name"] for span in spans}
    models = ("invoke_agent",) if operations.isdisjoint(_MODEL_CALLS) else _MODEL_CALLS
    events, asked, alone = list[Event](), set[Hashable](), list[Made]()
    response, model = None, None
    for number, span in enumerate(spans):
        attributes, operation = span.attributes, span.attributes["operation.name"]
        if operation == "execute_tool":
            made = next((one for one in alone if _is_of(span, one.call)), None)
            if made is None:
                made = Made(RecordedCall(span.session, attributes["tool.name"], None, model=model), (number,), response)
                events.append(made)
            else:
                alone.remove(made)
            events += _tool_events(span, made)
        elif operation in models:
            response, model = number, text(attributes.get("response.model")) or text(attributes.get("request.model"))
            own = list(_responded(span, number, model, sum(type(key) is int for key in asked)))
            new = [event for event in own if isinstance(event, Made) and event.key not in asked]
            # The latest first.
            events, alone = [*events, *own], [*new, *alone]
            asked |= {made.key for made in new}
    gone = asked if "execute_tool" in operations and len(alone) == len(asked) else ()
    return (event for event in events if not isinstance(event, Made) or event.key not in gone)


def _responded(span: Span, number: int, model: str | None, bare: int) -> Iterator[Event]:
    """
    Yields the usage of a response, the calls that it asks for, and the results that its messages hold. Calls of the session without an id
    were *bare* so far: the first result without an id in a history is that of the first such call.
    """
    attributes = span.attributes
    yield Used(span.session, number, {of: attributes.get(f"usage.{of}") for of in ("input_tokens", "output_tokens")})
    for key, part in _parts(attributes.get("output.messages"), "tool_call", bare):
        call = RecordedCall(span.session, part.get("name") or "", part.get("arguments"), id=part.get("id"), model=model)
        yield Made(call, key, number, span.end_ns // _MS or None)
    for side, start in (("input", 0), ("output", bare)):
        for key, part in _parts(attributes.get(f"{side}.messages"), "tool_call_response", start):
            yield Came(span.session, key, part.get("response", part.get("result")))


def _parts(messages: Any, kind: str, start: int) -> Iterator[tuple[Hashable, Mapping[str, Any]]]:
    """
    Yields the parts of a *kind* in messages, which are written as JSON text or as they are, with their ids. Those without one are
    numbered from *start*.
    """
    for message in objects(json_in(messages) if type(messages) is str else messages):
        for part in objects(message.get("parts")):
            if part.get("type") == kind:
                id_ = text(part.get("id"))
                yield id_ or start, part
                start += id_ is None


def _is_of(span: Span, call: RecordedCall) -> bool:
    """
    Returns whether a *span* of a tool is that of a *call*.
    """
    id_ = text(span.attributes.get("tool.call.id")) or _content(span.attributes.get("tool.call.result"))[1]
    return call.id == id_ if call.id and id_ else call.tool == span.attributes["tool.name"]


def _tool_events(span: Span, made: Made) -> Iterator[Event]:
    """
    Put what a *span* of a tool tells into the call that was *made*, and yield its result if it has one. If its text was left out, the message
    of the status tells of a failure.
    """
    attributes, call = span.attributes, made.call
    given, id_, result = (attributes.get(f"tool.call.{of}") for of in ("arguments", "id", "result"))
    content, answered, raised = _content(result)
    # Some programs write the bare value of a single argument.
    given, asked = arguments_of(given), call.arguments
    call.arguments = given if asked is None or (type(given) is dict and given) else asked
    call.id, call.ts_ms = call.id or text(id_) or answered, span.start_ns // _MS or call.ts_ms
    status, error = attributes.get("guardrails.status"), attributes.get("error.type")
    call.decision, call.code = text(attributes.get("guardrails.decision")), text(attributes.get("guardrails.code"))
    failed = span.failed or error is not None or raised or (None if status is None else False)
    if type(error) is str:
        call.error_type = kind_of(_integer(error)) or kind_of(error.rsplit(".", 1)[-1])
    if (failed or span.end_ns or content is not None) and call.decision != "deny" and status in _ENDED:
        ms = (span.end_ns - span.start_ns) // _MS if span.end_ns and span.start_ns else None
        yield Came(span.session, made.key, span.message if content is None and failed else content, failed, ms=ms)


def _content(result: Any) -> tuple[Any, str | None, bool]:
    """
    Returns the content of a message of LangChain that a result is wrapped in, the id of its call, and whether it failed; or *result* itself.
    """
    held = mapping(json_in(result) if type(result) is str and result.startswith('{"type": "tool"') else result)
    message = mapping(held.get("data")) or held
    if held.get("type") != "tool" or "content" not in message:
        return result, None, False
    return message["content"], text(message.get("tool_call_id")), message.get("status") == "error"


# Spans of OpenTelemetry


def _spans_in(value: Any) -> list[dict[str, Any]]:
    scopes = [each for resource in objects(at(value, "resourceSpans")) for each in objects(resource.get("scopeSpans"))]
    own = objects(value if type(value) is list else [value])
    sdk = [span for span in own if text(at(span, "context", "trace_id")) and type(span.get("attributes")) is dict]
    return [*sdk, *(span for scope in scopes for span in objects(scope.get("spans")))]


def _span(span: Mapping[str, Any]) -> Span:
    """
    A span of either form.
    """
    status = mapping(span.get("status"))
    failed = status.get("status_code", status.get("code")) in ("ERROR", "STATUS_CODE_ERROR", 2)
    attributes = _renamed(mapping(span.get("attributes")) or _attributes(span.get("attributes")))
    own = map(attributes.get, ("conversation.id", "session.id"))
    name = next(filter(None, map(text, (*own, span.get("traceId"), at(span, "context", "trace_id")))), "")
    message = text_of(status.get("description", status.get("message")))
    return Span(*_times(span), name, failed, message, attributes)


def _times(span: Mapping[str, Any]) -> tuple[int, int]:
    """
    Start and end of a span or a run in nanoseconds, 0 where it has none.
    """
    times = ((_integer(span.get(f"{of}TimeUnixNano")), time_ms(span.get(f"{of}_time"))) for of in ("start", "end"))
    start, end = (max(ns, (ms or 0) * _MS) for ns, ms in times)
    return start, end


def _renamed(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    The attributes by the names of the GenAI convention.
    """
    shown = {name: value for name, value in attributes.items() if value != _HIDDEN}
    renamed = {_OPENINFERENCE.get(name, name.removeprefix("gen_ai.")): value for name, value in shown.items()}
    kind = text(attributes.get("openinference.span.kind"))
    if kind is None or "operation.name" in renamed:
        return {"operation.name": "execute_tool", **renamed}
    calls: defaultdict[tuple[int, int], dict[str, Any]] = defaultdict(lambda: {"type": "tool_call"})
    for name, value in attributes.items():
        if place := _CALL.fullmatch(name):
            calls[int(place[1]), int(place[2])][place[3]] = value
    messages = [{"parts": [calls[place] for place in sorted(calls)]}]
    return renamed | {"operation.name": _OPERATIONS.get(kind.lower(), ""), "output.messages": messages}


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value")) for pair in objects(pairs) if type(pair.get("key")) is str}


def _value(wrapped: Any) -> Any:
    """
    The value of an attribute: OTLP names its type, and writes 64-bit integers as text.
    """
    kind, value = next(iter(mapping(wrapped).items()), ("", None))
    if kind == "arrayValue":
        return list(map(_value, listed(at(value, "values"))))
    if kind == "kvlistValue":
        return _attributes(at(value, "values"))
    return _integer(value) if kind == "intValue" else value


def _integer(value: Any) -> int:
    digits = str(value)
    return int(digits) if digits.removeprefix("-").isdecimal() and len(digits) <= 20 else 0


# Runs of LangSmith


def _runs_in(value: Any) -> list[dict[str, Any]]:
    runs = objects(value if type(value) is list else listed(at(value, "runs")) or [value])
    return [run for run in runs if text(run.get("run_type")) and "start_time" in run and "trace_id" in run]


def _run_events(values: Values, file: str) -> Iterator[Event]:
    yield from _span_events([_run(run) for _, value in values for run in _runs_in(value)])


def _run(run: Mapping[str, Any]) -> Span:
    """
    A run of a tool or a model as a span with the attributes of the GenAI convention.
    """
    extra, inputs, outputs = (mapping(run.get(name)) for name in ("extra", "inputs", "outputs"))
    threads = (at(extra, "metadata", name) for name in ("thread_id", "session_id", "conversation_id"))
    session = next((str(thread) for thread in threads if type(thread) in (str, int)), text(run["trace_id"]) or "")
    attributes: dict[str, Any] = {"operation.name": _OPERATIONS.get(run["run_type"], "")}
    if run["run_type"] == "llm":
        first = next((each for several in listed(outputs.get("generations")) for each in objects(several)), None)
        usage = at(first, "message", "kwargs", "usage_metadata")
        attributes["usage.input_tokens"] = run.get("prompt_tokens") or at(usage, "input_tokens")
        attributes["usage.output_tokens"] = run.get("completion_tokens") or at(usage, "output_tokens")
        attributes["response.model"] = at(extra, "metadata", "ls_model_name")
    else:
        bare, result = inputs.get("input"), outputs["output"] if outputs.keys() == {"output"} else outputs or None
        arguments = bare if inputs.keys() == {"input"} and type(bare) is str else run.get("inputs")
        attributes |= {"tool.name": run.get("name"), "tool.call.id": extra.get("tool_call_id")}
        attributes |= {"tool.call.arguments": arguments, "tool.call.result": text(run.get("error")) or result}
    failed = bool(text(run.get("error"))) or run.get("status") == "error"
    return Span(*_times(run), session, failed, "", attributes)


def _fits(value: Any) -> bool:
    return not _SIGNALS.isdisjoint(mapping(value)) or bool(_spans_in(value))


def _events(values: Values, file: str) -> Iterator[Event]:
    yield from _span_events([_span(span) for _, value in values for span in _spans_in(value)])


SPANS: Final = Format("opentelemetry spans", _fits, _events)
LANGSMITH: Final = Format("langsmith runs", lambda value: bool(_runs_in(value)), _run_events)
