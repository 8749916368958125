"""
Runs of LangSmith as JSON: the output of `Client.list_runs`, a run a line or in a list, or an answer of its API (`runs`).

Runs come the latest first, and those of agents below before the tool that calls them. A session is the thread that the
metadata name, or else the trace; runs below a tool are a session of their own. A run's error is a failure, and so is a
message of LangChain with status `error`.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .calls import Report
from .events import Event, Values
from .fields import arguments_of, listed, mapping, objects, text, text_of, time_ms
from .spans import Asked, Span, span_events


_THREADS: Final = ("thread_id", "session_id", "conversation_id")
_RUN_ID: Final = re.compile(r"\d{8}T\d{1,12}Z([0-9a-fA-F-]{36})(?:\.|\Z)")


class LangSmith:
    """
    Traces of LangSmith.
    """

    name = "langsmith runs"

    def fits(self, value: Any) -> bool:
        return any(map(_is_run, _runs(value)[:5]))

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        spans: list[tuple[Span, list[str]]] = []
        tools: set[str] = set()
        for number, value in values:
            if type(value) not in (dict, list):
                report.broke(file, number)
            for run in filter(_is_run, objects(_runs(value))):
                span = _span(run)
                if span is None:
                    continue
                own = str(run.get("id"))
                # The runs above, and the run itself, by their ids.
                above = _RUN_ID.findall(text(run.get("dotted_order")) or "")
                spans.append((span, [each for each in above if each != own]))
                if span.is_call:
                    tools.add(own)
        yield from span_events(_apart(span, above, tools) for span, above in spans)


def _apart(span: Span, above: list[str], tools: set[str]) -> Span:
    below = next((each for each in reversed(above) if each in tools), None)
    return span if below is None else span._replace(session_id=f"{span.session_id}/{below}")


def _runs(value: Any) -> list[Any]:
    return value if type(value) is list else listed(mapping(value).get("runs")) or [value]


def _is_run(value: Any) -> bool:
    run = mapping(value)
    return type(run.get("run_type")) is str and "start_time" in run and ("dotted_order" in run or "trace_id" in run)


def _span(run: Mapping[str, Any]) -> Span | None:
    extra = mapping(run.get("extra"))
    metadata = mapping(extra.get("metadata"))
    thread = next((str(metadata[key]) for key in _THREADS if type(metadata.get(key)) in (str, int)), None)
    start, end = ((time_ms(run.get(key)) or 0) * 1_000_000 for key in ("start_time", "end_time"))
    session_id = thread or text(run.get("trace_id")) or text(run.get("id")) or ""
    if run["run_type"] == "llm":
        known, asked = _response(run, metadata)
        return Span(start, end, session_id, is_call=False, attributes=known, status={}, asked=asked)
    name = text(run.get("name"))
    if run["run_type"] != "tool" or name is None:
        return None
    inputs = run.get("inputs")
    bare = mapping(inputs)
    if bare.keys() == {"input"} and type(bare["input"]) is str:
        inputs = arguments_of(bare["input"])
    result, message = _result(run.get("outputs"))
    error = run.get("error")
    known = {
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": inputs,
        "gen_ai.tool.call.id": text(extra.get("tool_call_id")) or text(message.get("tool_call_id")),
        "gen_ai.tool.call.result": error if text(error) else result,
    }
    failed = True if text(error) or run.get("status") == "error" or message.get("status") == "error" else None
    return Span(start, end, session_id, is_call=True, attributes=known, status={}, by_text=True, failed=failed)


def _result(outputs: Any) -> tuple[Any, Mapping[str, Any]]:
    """
    Returns the result of a tool, and the message around it; an empty one if there is none.
    """
    found = mapping(outputs)
    if not found:
        return None, {}
    value = found["output"] if found.keys() == {"output"} else outputs
    message = mapping(value)
    if message.get("type") == "tool" and "content" in message:
        return message["content"], message
    return text_of(value), {}


def _response(run: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Asked, ...]]:
    """
    Model and tokens of a response, and what it calls.
    """
    outputs = mapping(run.get("outputs"))
    generations = listed(outputs.get("generations"))
    first = generations[0][:1] if generations and type(generations[0]) is list else generations[:1]
    message = mapping(mapping(mapping(first[0] if first else None).get("message")).get("kwargs"))
    usage = mapping(message.get("usage_metadata")) or mapping(outputs.get("usage_metadata"))
    known = {
        "gen_ai.response.model": text(metadata.get("ls_model_name")),
        "gen_ai.usage.input_tokens": run.get("prompt_tokens") or usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": run.get("completion_tokens") or usage.get("output_tokens"),
    }
    asked = tuple(
        Asked(text(call.get("id")), name, arguments_of(call.get("args")))
        for call in objects(message.get("tool_calls"))
        if (name := text(call.get("name")))
    )
    return known, asked
