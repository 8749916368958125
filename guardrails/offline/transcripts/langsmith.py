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
from .fields import count, listed, mapping, objects, text, text_of, time_ms
from .spans import Span, asked_in, span_events, tool_message


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
        spans: dict[str, tuple[Span, list[str]]] = {}
        for run in (run for _, value in values for run in filter(_is_run, objects(_runs(value)))):
            if (span := _span(run)) is not None:
                # The runs above, and the run itself, by their ids.
                spans[str(run.get("id"))] = span, _RUN_ID.findall(text(run.get("dotted_order")) or "")
        tools = {own for own, (span, _) in spans.items() if span.call is not None}
        for own, (span, order) in spans.items():
            if below := next((each for each in reversed(order) if each in tools and each != own), None):
                span.session_id = f"{span.session_id}/{below}"
        yield from span_events(span for span, _ in spans.values())


def _runs(value: Any) -> list[Any]:
    return value if type(value) is list else listed(mapping(value).get("runs")) or [value]


def _is_run(value: Any) -> bool:
    run = mapping(value)
    return type(run.get("run_type")) is str and "start_time" in run and ("dotted_order" in run or "trace_id" in run)


def _span(run: Mapping[str, Any]) -> Span | None:
    extra, outputs, error = mapping(run.get("extra")), mapping(run.get("outputs")), text(run.get("error"))
    metadata, tool = mapping(extra.get("metadata")), text(run.get("name"))
    thread = next((str(metadata[key]) for key in _THREADS if type(metadata.get(key)) in (str, int)), None)
    start, end = ((time_ms(run.get(key)) or 0) * 1_000_000 for key in ("start_time", "end_time"))
    span = Span(start, end, thread or text(run.get("trace_id")) or text(run.get("id")) or "")
    if run["run_type"] == "llm":
        first: Any = listed(outputs.get("generations"))
        while type(first) is list:
            first = first[0] if first else None
        message = mapping(mapping(mapping(first).get("message")).get("kwargs"))
        usage = mapping(message.get("usage_metadata")) or mapping(outputs.get("usage_metadata"))
        span.model = text(metadata.get("ls_model_name"))
        span.tokens = (
            count(run.get("prompt_tokens") or usage.get("input_tokens")),
            count(run.get("completion_tokens") or usage.get("output_tokens")),
        )
        span.asked = asked_in(objects(message.get("tool_calls")), "args")
        return span
    if run["run_type"] != "tool" or tool is None:
        return None
    inputs, value = (
        mapping(run.get("inputs")),
        outputs["output"] if outputs.keys() == {"output"} else run.get("outputs"),
    )
    bare = inputs["input"] if inputs.keys() == {"input"} and type(inputs["input"]) is str else run.get("inputs")
    content, id_, raised = tool_message(value, text_of(value) if outputs else None)
    failed = bool(error or run.get("status") == "error" or raised) or None
    span.of_call(tool, bare, text(extra.get("tool_call_id")) or id_, error or content, failed)
    return span
