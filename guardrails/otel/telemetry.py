"""
Spans and metrics, made of the records of a session: the record of a decision starts the span of its call, the record of its
end ends it.
"""

import os
import time

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson

from guardrails.core.decision import Decision
from guardrails.core.envelope import Envelope
from guardrails.core.erasing import Record
from guardrails.core.text.control import sanitise
from guardrails.core.text.redaction import redact
from guardrails.core.values.errors import needs
from guardrails.core.values.logs import warn_once
from guardrails.core.values.types import MICRO
from guardrails.core.values.version import __version__
from guardrails.session.session import Session
from guardrails.sinks.base import Entry, OnRecord, Sink, put_of


with needs("otel", "`guardrails.otel`"):
    from opentelemetry import metrics, trace
    from opentelemetry.context import attach, detach, get_current
    from opentelemetry.propagate import extract


Key = tuple[str, str, int]
"""The session, its life, and the number of a call in it."""
SCOPE: Final = "toolcall-guardrails"
"""The instrumentation scope."""
TOOL: Final = "gen_ai.tool.name"
OPERATION: Final = "gen_ai.operation.name"
CONVERSATION: Final = "gen_ai.conversation.id"
BEGIN: Final = ("id", "run", "n", "decision", "code", "observed", "nudges", "retry_source")
"""Keys of the record of a decision that its span shows."""
END: Final = ("error_type", "retryable", "wait_ms", "is_complete", "limit", "sandbox", "cost_usd", "tokens")
"""Keys of the record of an end that its span shows."""
CONTENT: Final = ("arguments", "result")
"""Keys that it shows, too, if it is asked for."""
NAMES: Final = {key: f"gen_ai.tool.call.{key}" for key in ("id", *CONTENT)} | {
    "error_type": "error.type",
    "wait_ms": "guardrails.retry_after_ms",
}
"""Their attributes; those of all others begin with `guardrails.`."""
ENDS: Final = {"park": "pending", "suspend": "suspended", "release": "released", "expire": "expired"}
"""Events that end the span of a call without an end of its tool, and their status."""
MAX_OPEN: Final = 10_000
"""Calls whose spans are held open; of the oldest of more, the span begins anew when it ends."""
MAX_CONTENT: Final = 4_096
"""Characters of arguments, and of a result."""
MAX_LABELS: Final = 200
"""Names of tools and codes that are labels of metrics; all others share one."""
OTHER: Final = "_OTHER"


class Telemetry:
    """
    Spans and metrics of the sessions that are given it: `policy.session("run-1", telemetry=Telemetry())`. One serves all
    sessions of a process.

    It uses the providers that the program has set, those of the SDK, or *tracer_provider* and *meter_provider*; without
    an SDK nothing is kept. With *content* spans have arguments and results, without secrets as far as their shapes and
    names tell; None: as `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says. An SDK that raises costs telemetry and no
    call. One that hangs holds up the call, unless it exports on a thread of its own (`BatchSpanProcessor`).
    """

    def __init__(
        self,
        *,
        content: bool | None = None,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        if content is None:
            content = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() in ("true", "1")
        self._content = CONTENT if content else ()
        self._tracer = trace.get_tracer(SCOPE, __version__, tracer_provider)
        self._open: dict[Key, trace.Span] = {}
        self._labels: set[str] = set()
        meter = metrics.get_meter(SCOPE, __version__, meter_provider)
        self._calls = meter.create_counter("guardrails.calls", "{call}", "Tool calls that were asked for.")
        self._tokens = meter.create_counter("guardrails.tokens", "{token}", "Tokens that were charged.")
        self._cost = meter.create_counter("guardrails.cost", "USD", "Money that was charged.")
        self._duration = meter.create_histogram("gen_ai.execute_tool.duration", "s", "Duration of calls that ran.")

    def session(self, *policy: Any, sink: Sink | None = None, on_decision: Any = None, **options: Any) -> Session:
        """
        A session that tells of its calls; for `Policy.session`, which says what it is made of.
        """

        def decided(decision: Decision) -> None:
            key = decision.session, decision.run, decision.n
            attach(trace.set_span_in_context(self._open.get(key, trace.get_current_span())))
            if on_decision is not None:
                on_decision(decision)

        taker = OnRecord(lambda record: None, redact_secrets=False) if sink is None else sink
        return TracedSession(*policy, sink=TracedSink(self, taker), on_decision=decided, **options)

    # Between processes

    @contextmanager
    def within(self, carrier: object) -> Iterator[None]:
        """
        A block whose spans are children of the one that the *carrier* names by its W3C `traceparent`. A carrier is the
        `_meta` of an MCP request, headers, or variables in lower case. One that names none leaves the context as it is.
        """
        given = carrier if isinstance(carrier, Mapping) else {}
        names = {key: value for key, value in given.items() if isinstance(key, str) and isinstance(value, str)}
        with _restored():
            attach(extract(names, get_current()))
            yield

    @contextmanager
    def running(self, session: str, carrier: object = None) -> Iterator[None]:
        """
        A block that is a run of an agent, the one of *session*: the parent of its calls. *carrier* is as for `within`.
        """
        about = {OPERATION: "invoke_agent", CONVERSATION: sanitise(session)}
        quiet: dict[str, Any] = {"record_exception": False, "set_status_on_exception": False}
        with self.within(carrier), self._tracer.start_as_current_span("invoke_agent", attributes=about, **quiet):
            yield

    # Of calls

    def span_of(self, record: Record) -> trace.Span:
        """
        Start or end the span of the call that *record* is about, and count it. Returns that span, or the present one.
        """
        event, number = record["event"], record["call_n"] if "call_n" in record else record["n"]
        key: Key = (record["session_id"], record["run"], number)
        if event == "call":
            return self._begun(key, record)
        if event == "settle" and not record["late"]:
            return self._settled(key, record)
        if event == "charge":
            self._charge(record, {"guardrails.used_by": "model"})
        span = self._open.pop(key, None) if event in ENDS else None
        if span is None:
            return trace.get_current_span()
        span.set_attribute("guardrails.status", ENDS[event])
        span.end()
        return span

    def _begun(self, key: Key, record: Record) -> trace.Span:
        tool = self._label(record["tool"]) if record["known"] is not False else OTHER
        code = {} if record["code"] is None else {"guardrails.code": self._label(record["code"])}
        self._calls.add(1, {TOOL: tool, "guardrails.decision": record["decision"], **code})
        span = self._start(record, time.time_ns())
        if record["decision"] == "deny":
            span.end()
        else:
            self._open[key] = span
        if len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
        return span

    def _settled(self, key: Key, record: Record) -> trace.Span:
        started = time.time_ns() - record["duration_ms"] * 1_000_000
        # One that is not open was parked, or another process has decided it.
        span = self._open.pop(key, None) or self._start({**record, "n": key[2], "decision": "allow"}, started)
        tool, kind = {TOOL: self._label(record["tool"])}, record["error_type"]
        failed = {} if kind is None else {"error.type": kind}
        span.set_status(trace.StatusCode.ERROR if failed else trace.StatusCode.UNSET)
        span.set_attributes({"guardrails.status": "error" if failed else "success", **self._attributes(record, END)})
        for code, text in record.get("warnings", ()):
            span.add_event("guardrails.warning", {"guardrails.code": code, "message": text})
        span.end()
        self._duration.record(record["duration_ms"] / 1000, {OPERATION: "execute_tool", **tool, **failed})
        self._charge(record, {"guardrails.used_by": "tool", **tool})
        return span

    def _start(self, record: Record, start_ns: int) -> trace.Span:
        tool, session = sanitise(record["tool"]), sanitise(record["session_id"])
        names = {OPERATION: "execute_tool", TOOL: tool, "gen_ai.tool.type": "function"}
        own = {CONVERSATION: session, "guardrails.session": session, **self._attributes(record, BEGIN)}
        return self._tracer.start_span(f"execute_tool {tool}", attributes=names | own, start_time=start_ns)

    def _attributes(self, record: Record, keys: tuple[str, ...]) -> dict[str, Any]:
        made = {key: record[key] for key in (*keys, *self._content) if record.get(key) not in (None, [])}
        for key in made.keys() & CONTENT:
            made[key] = redact(orjson.dumps(made[key]).decode(), MAX_CONTENT, keep_traceback=True)
        plain = {key: sanitise(value) if isinstance(value, str) else value for key, value in made.items()}
        return {NAMES.get(key, f"guardrails.{key}"): value for key, value in plain.items()}

    def _charge(self, record: Record, labels: dict[str, str]) -> None:
        self._cost.add((record["cost"] or 0) / MICRO, labels)
        self._tokens.add(record["tokens"] or 0, labels)

    def _label(self, name: str) -> str:
        if len(self._labels) < MAX_LABELS:
            self._labels.add(name)
        return name if name in self._labels else OTHER


class TracedSink:
    """
    Puts records into *sink*, each with a field `trace`: the ids of the span of its call, or of the present one. All its
    other attributes are those of the sink.
    """

    redact_secrets = False
    """Spans show what they may; the sink behind redacts as ever."""

    def __init__(self, telemetry: Telemetry, sink: Sink) -> None:
        self._telemetry, self._sink, self._put = telemetry, sink, put_of(sink)

    def put(self, record: Entry, size_hint: int = 0) -> None:
        made = record() if callable(record) else record
        try:
            context = self._telemetry.span_of(made).get_span_context()
            if context.is_valid:
                made = {**made, "trace": {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}}
        except Exception as error:  # whatever an SDK raises
            warn_once("otel", "telemetry failed: %r", error)
        self._put(made, size_hint)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


@contextmanager
def _restored() -> Iterator[None]:
    """
    A block after which the present context is what it was before.
    """
    token = attach(get_current())
    try:
        yield
    finally:
        detach(token)


class TracedSession(Session):
    """
    A session whose calls have spans, each the present one while its tool runs; made by `Policy.session(..., telemetry=...)`.
    """

    call = _restored()(Session.call)
    decide = _restored()(Session.decide)

    async def acall(self, *called: Any, **id: Any) -> Envelope:
        with _restored():
            return await super().acall(*called, **id)
