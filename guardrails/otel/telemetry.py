"""
Spans and metrics, made of the records of a session: the record of a decision starts the span of its call, the record of its
end ends it.
"""

import os
import time

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

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
from guardrails.session.steps import Execute
from guardrails.sinks.base import Entry, OnRecord, Sink, put_of


with needs("otel", "`guardrails.otel`"):
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context, attach, detach, get_current
    from opentelemetry.propagate import extract


if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

Key = tuple[str, str, int]
"""The session, its life, and the number of a call in it."""
SCOPE: Final = "toolcall-guardrails"
"""The instrumentation scope."""
TOOL: Final = "gen_ai.tool.name"
OPERATION: Final = "gen_ai.operation.name"
CONVERSATION: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"
BEGIN: Final = ("id", "run", "n", "decision", "code", "observed", "nudges", "retry_source", "arguments")
"""Keys of the record of a decision that its span shows."""
END: Final = ("error_type", "retryable", "wait_ms", "is_complete", "limit", "sandbox", "cost_usd", "tokens", "result")
"""Keys of the record of an end that its span shows."""
NAMES: Final = {
    "id": "gen_ai.tool.call.id",
    "error_type": ERROR_TYPE,
    "wait_ms": "guardrails.retry_after_ms",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
}
"""Their attributes; those of all others begin with `guardrails.`."""
CONTENT: Final = frozenset({"arguments", "result"})
ENDS: Final = {"park": "pending", "suspend": "suspended", "release": "released", "expire": "expired"}
"""Events that end the span of a call without an end of its tool, and their status."""
CARRIED: Final = ("traceparent", "tracestate", "baggage")
"""The keys of a carrier, of the W3C's trace context and baggage."""
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
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
    ) -> None:
        if content is None:
            content = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() in ("true", "1")
        self._content = content
        self._tracer = trace.get_tracer(SCOPE, __version__, tracer_provider)
        self._open: OrderedDict[Key, Span] = OrderedDict()
        self._labels: set[str] = set()
        meter = metrics.get_meter(SCOPE, __version__, meter_provider)
        self._calls = meter.create_counter("guardrails.calls", "{call}", "Tool calls that were asked for.")
        self._tokens = meter.create_counter("guardrails.tokens", "{token}", "Tokens that were charged.")
        self._cost = meter.create_counter("guardrails.cost", "USD", "Money that was charged.")
        self._duration = meter.create_histogram("gen_ai.execute_tool.duration", "s", "Duration of calls that ran.")

    def session(self, *policy: Any, sink: Sink | None = None, **options: Any) -> "TracedSession":
        """
        A session that tells of its calls; for `Policy.session`, which says what it is made of.
        """
        return TracedSession(*policy, telemetry=self, sink=TracedSink(self, sink), **options)

    # Between processes

    @contextmanager
    def within(self, carrier: object) -> Iterator[None]:
        """
        A block whose spans are children of the one that the *carrier* names by its W3C `traceparent`. A carrier is the
        `_meta` of an MCP request, headers, or variables in lower case. One that names none leaves the context as it is.
        """
        given = carrier if isinstance(carrier, Mapping) else {}
        names = {key: value for key in CARRIED if isinstance(value := given.get(key), str)}
        with _present(extract(names, get_current())):
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

    def enter(self, decision: Decision) -> None:
        """
        Make the span of the open call of *decision* the present one, for its tool.
        """
        span = self._open.get(_key_of(decision))
        if span is not None:
            attach(trace.set_span_in_context(span))

    def span_of(self, record: Record) -> "Span":
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

    def _begun(self, key: Key, record: Record) -> "Span":
        tool = self._label(record["tool"]) if record["known"] is not False else OTHER
        code = {} if record["code"] is None else {"guardrails.code": self._label(record["code"])}
        self._calls.add(1, {TOOL: tool, "guardrails.decision": record["decision"], **code})
        span = self._start(record, time.time_ns())
        if record["decision"] == "deny":
            span.end()
        else:
            self._open[key] = span
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return span

    def _settled(self, key: Key, record: Record) -> "Span":
        span = self._open.pop(key, None)
        if span is None:
            # It was parked, or another process has decided it.
            start_ns = time.time_ns() - record["duration_ms"] * 1_000_000
            span = self._start({**record, "n": key[2], "decision": "allow"}, start_ns)
        status, tool = "success", {TOOL: self._label(record["tool"])}
        kinds = {OPERATION: "execute_tool", **tool}
        if record["error_type"] is not None:
            status, kinds[ERROR_TYPE] = "error", record["error_type"]
            span.set_status(trace.StatusCode.ERROR)
        span.set_attributes({"guardrails.status": status, **self._attributes(record, END)})
        for code, text in record.get("warnings", ()):
            span.add_event("guardrails.warning", {"guardrails.code": code, "message": text})
        span.end()
        self._duration.record(record["duration_ms"] / 1000, kinds)
        self._charge(record, {"guardrails.used_by": "tool", **tool})
        return span

    def _start(self, record: Record, start_ns: int) -> "Span":
        tool, session = sanitise(record["tool"]), sanitise(record["session_id"])
        names = {OPERATION: "execute_tool", TOOL: tool, "gen_ai.tool.type": "function"}
        own = {CONVERSATION: session, "guardrails.session": session, **self._attributes(record, BEGIN)}
        return self._tracer.start_span(f"execute_tool {tool}", attributes=names | own, start_time=start_ns)

    def _attributes(self, record: Record, keys: tuple[str, ...]) -> dict[str, Any]:
        made = {key: record[key] for key in keys if record.get(key) not in (None, [])}
        for key in CONTENT & made.keys():
            text = orjson.dumps(made.pop(key)).decode()
            if self._content:
                made[key] = redact(text, MAX_CONTENT, keep_traceback=True)
        if "id" in made:
            made["id"] = sanitise(made["id"])
        return {NAMES.get(key, f"guardrails.{key}"): value for key, value in made.items()}

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

    def __init__(self, telemetry: Telemetry, sink: Sink | None) -> None:
        self._telemetry = telemetry
        self._sink = OnRecord(lambda record: None, redact_secrets=False) if sink is None else sink
        self._put = put_of(self._sink)

    def put(self, record: Entry, size_hint: int = 0) -> None:
        made = record() if callable(record) else record
        try:
            context = self._telemetry.span_of(made).get_span_context()
            if context.is_valid:
                ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
                made = {**made, "trace": ids}
        except Exception as error:  # whatever an SDK raises
            warn_once("otel", "telemetry failed: %r", error)
        self._put(made, size_hint)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


class TracedSession(Session):
    """
    A session whose calls have spans, each the present one while its tool runs; made by `Policy.session(..., telemetry=...)`.
    """

    def __init__(self, *policy: Any, telemetry: Telemetry, **options: Any) -> None:
        super().__init__(*policy, **options)
        listener = self.calls.on_decision

        def decided(decision: Decision) -> None:
            telemetry.enter(decision)
            if listener is not None:
                listener(decision)

        self.calls.on_decision = decided

    def call(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        with _present(get_current()):
            return super().call(tool, arguments, execute, id=id)

    async def acall(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        with _present(get_current()):
            return await super().acall(tool, arguments, execute, id=id)

    def decide(self, tool: str, arguments: Any, *, id: str | None = None, claim: bool = False) -> Decision:
        with _present(get_current()):
            return super().decide(tool, arguments, id=id, claim=claim)


@contextmanager
def _present(context: Context) -> Iterator[None]:
    """
    A block in *context*, after which the present one is what it was before.
    """
    token = attach(context)
    try:
        yield
    finally:
        detach(token)


def _key_of(decision: Decision) -> Key:
    return decision.session, decision.run, decision.n
