"""
Runs of LangSmith as JSON: the output of `Client.list_runs`, a run a line or in a list, or an answer of its API (`runs`).

Runs come the latest first, and those of agents below before the tool that calls them. They are read as spans. A session is the thread that
the metadata name, or else the trace; runs below a tool are a session of their own. A run's error is a failure, and so is a
message of LangChain with status `error`.
"""

import re

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .calls import Event, Format, Values
from .fields import at, listed, mapping, objects, text, time_ms
from .spans import Span, span_events


_THREADS: Final = ("thread_id", "session_id", "conversation_id")
_OPERATIONS: Final = {"llm": "chat", "tool": "execute_tool"}
_RUN_ID: Final = re.compile(r"\d{8}T\d{1,12}Z([0-9a-fA-F-]{36})(?:\.|\Z)")


def _runs_in(value: Any) -> list[dict[str, Any]]:
    runs = objects(value if type(value) is list else listed(at(value, "runs")) or [value])
    return [run for run in runs if text(run.get("run_type")) and "start_time" in run and "trace_id" in run]


def _events(values: Values, file: str) -> Iterator[Event]:
    runs = {str(run.get("id")): run for _, value in values for run in _runs_in(value)}
    tools = {own for own, run in runs.items() if run["run_type"] == "tool"}
    spans = []
    for own, run in runs.items():
        above = _RUN_ID.findall(text(run.get("dotted_order")) or "")
        below = next((f"/{each}" for each in reversed(above) if each in tools and each != own), "")
        spans.append(_span(run, below))
    yield from span_events(spans)


def _span(run: Mapping[str, Any], below: str) -> Span:
    """
    A run of a tool or a model as a span with the attributes of the GenAI convention.
    """
    extra, inputs, outputs = (mapping(run.get(name)) for name in ("extra", "inputs", "outputs"))
    threads = (at(extra, "metadata", name) for name in _THREADS)
    session = next((str(thread) for thread in threads if type(thread) in (str, int)), text(run["trace_id"]) or "")
    start, end = ((time_ms(run.get(name)) or 0) * 1_000_000 for name in ("start_time", "end_time"))
    said: dict[str, Any] = {"operation.name": _OPERATIONS.get(run["run_type"], "")}
    if run["run_type"] == "llm":
        first: Any = listed(outputs.get("generations"))
        while type(first) is list:
            first = first[0] if first else None
        wires, usage = (at(first, "message", "kwargs", name) for name in ("tool_calls", "usage_metadata"))
        parts = [{**wire, "type": "tool_call", "arguments": wire.get("args")} for wire in objects(wires)]
        said |= {"response.model": at(extra, "metadata", "ls_model_name"), "output.messages": [{"parts": parts}]}
        said["usage.input_tokens"] = run.get("prompt_tokens") or at(usage, "input_tokens")
        said["usage.output_tokens"] = run.get("completion_tokens") or at(usage, "output_tokens")
    else:
        bare, result = inputs.get("input"), outputs["output"] if outputs.keys() == {"output"} else outputs or None
        arguments = bare if inputs.keys() == {"input"} and type(bare) is str else run.get("inputs")
        said |= {"tool.name": run.get("name"), "tool.call.id": extra.get("tool_call_id")}
        said |= {"tool.call.arguments": arguments, "tool.call.result": text(run.get("error")) or result}
    return Span(start, end, session + below, bool(text(run.get("error"))) or run.get("status") == "error", "", said)


LANGSMITH: Final = Format("langsmith runs", lambda value: bool(_runs_in(value)), _events)
