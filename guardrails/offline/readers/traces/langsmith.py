"""
Runs of LangSmith as JSON: the output of `Client.list_runs`, a run a line or in a list, or an answer of its API
(`runs`).

Runs come the latest first, and those of agents below before the tool that calls them. They are therefore held until
their trace is read, as far as `MAX_HELD` characters reach. A session is the thread that the metadata name, or else the
trace; runs below a tool are a session of their own. A run's error is a failure, and so is a message of LangChain with
status `error`.
"""

import re

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.blocks import text_of
from guardrails.offline.readers.text.fields import arguments_of, listed, mapping, objects, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values

from .spans import Made, Span, SpanSession


MAX_HELD: Final = 1 << 28
"""Characters of arguments and results that are held; then the sessions that came first are given out."""
MAX_RUNS: Final = 500_000
"""The same of runs."""
_THREADS: Final = ("thread_id", "session_id", "conversation_id")
_RUN_ID: Final = re.compile(r"\d{8}T\d{1,12}Z([0-9a-fA-F-]{36})(?:\.|\Z)")


class LangSmith:
    """
    Traces of LangSmith.
    """

    name = "langsmith runs"
    whole = True

    def recognises(self, head: str) -> bool:
        values = leading_values(head)
        first = values[0] if values else None
        return any(map(_is_run, (_runs(first) if len(values) == 1 else values)[:5]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        held: dict[str, list[tuple[Span, str, list[str]]]] = {}
        size = runs = 0
        for number, value in parsed_values(lines, report, file):
            if type(value) not in (dict, list):
                report.broke(file, number)
            for run in objects(_runs(value)):
                span = _span(run) if _is_run(run) else None
                if span is None:
                    continue
                held.setdefault(span.session_id, []).append((span, str(run.get("id")), _above(run)))
                runs += 1
                size += _size(span)
                while size > MAX_HELD or runs > MAX_RUNS:
                    first = held.pop(next(iter(held)))
                    runs -= len(first)
                    size -= sum(_size(span) for span, _, _ in first)
                    yield from _calls(first, source)
        for session in held.values():
            yield from _calls(session, source)


def _runs(value: Any) -> list[Any]:
    return value if type(value) is list else listed(mapping(value).get("runs")) or [value]


def _is_run(value: Any) -> bool:
    run = mapping(value)
    return type(run.get("run_type")) is str and "start_time" in run and ("dotted_order" in run or "trace_id" in run)


def _size(span: Span) -> int:
    known = span.attributes
    return 1000 + sum(len(str(known.get(f"gen_ai.tool.call.{key}") or "")) for key in ("arguments", "result"))


def _calls(session: list[tuple[Span, str, list[str]]], source: str) -> Iterator[RecordedCall]:
    """
    The calls of a session, those below each tool apart.
    """
    tools = {run_id for span, run_id, _ in session if span.is_call}
    apart: dict[str, SpanSession] = {}
    for span, run_id, above in session:
        below = next((each for each in reversed(above) if each in tools and each != run_id), None)
        named = span.session_id if below is None else f"{span.session_id}/{below}"
        if named not in apart:
            apart[named] = SpanSession(source, named, held=len(session))
        # None is given out before all are there.
        list(apart[named].add(span))
    for each in apart.values():
        yield from each.rest()


def _above(run: Mapping[str, Any]) -> list[str]:
    """
    The runs that *run* is below of, and itself, by their ids.
    """
    return _RUN_ID.findall(text(run.get("dotted_order")) or "")


def _span(run: Mapping[str, Any]) -> Span | None:
    kind = run["run_type"]
    extra = mapping(run.get("extra"))
    metadata = mapping(extra.get("metadata"))
    thread = next((str(metadata[key]) for key in _THREADS if type(metadata.get(key)) in (str, int)), None)
    start, end = ((time_ms(run.get(key)) or 0) * 1_000_000 for key in ("start_time", "end_time"))
    session_id = thread or text(run.get("trace_id")) or text(run.get("id")) or ""
    known: dict[str, Any]
    if kind == "llm":
        known, made = _response(run, metadata)
        return Span(start, end, 0, session_id, is_call=False, attributes=known, status={}, made=made)

    name = text(run.get("name"))
    if kind != "tool" or name is None:
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
    return Span(start, end, 0, session_id, is_call=True, attributes=known, status={}, by_text=True, failed=failed)


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


def _response(run: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Made, ...]]:
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
    made = tuple(
        Made(text(call.get("id")), name, arguments_of(call.get("args")))
        for call in objects(message.get("tool_calls"))
        if (name := text(call.get("name")))
    )
    return known, made
