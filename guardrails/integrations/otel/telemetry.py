"""
OpenTelemetry for sessions: spans, metrics, and the ids of traces on records.
"""

import os
import threading
import weakref

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.decision import Decision
from guardrails.core.values.errors import needs
from guardrails.core.values.logs import warn_once
from guardrails.core.values.version import __version__

from . import names
from .metrics import Metrics
from .session import TracedSession
from .spans import CallSpan, Key, key_of
from .text import named


with needs("otel", "`guardrails.integrations.otel`"):
    from opentelemetry import metrics, trace
    from opentelemetry.context import attach, detach, get_current
    from opentelemetry.propagate import extract, inject


if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

MAX_OPEN: Final = 10_000
"""Calls that run elsewhere whose spans are held open; of the oldest of more, the span begins anew when it is completed."""
_SHOWING: Final = frozenset({"true", "1", "span_only", "span_and_event"})


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
            content = os.environ.get(names.CONTENT_VARIABLE, "").lower() in _SHOWING
        self._content = content
        self._tracer = trace.get_tracer(names.SCOPE, __version__, tracer_provider)
        provider = metrics.get_meter_provider() if meter_provider is None else meter_provider
        with _lock:
            known = _metrics.get(provider)
            if known is None:
                known = _metrics[provider] = Metrics(metrics.get_meter(names.SCOPE, __version__, provider))
        self.metrics = known
        self._open: OrderedDict[Key, CallSpan] = OrderedDict()
        self._opening = threading.Lock()

    def session(self, *policy: Any, **options: Any) -> TracedSession:
        """
        A session that tells of its calls; for `Policy.session`, which says what it is made of.
        """
        return TracedSession(*policy, telemetry=self, **options)

    # Between processes

    @contextmanager
    def within(self, carrier: object) -> Iterator[None]:
        """
        A block whose spans are children of the one that the *carrier* names by its W3C `traceparent`. A carrier is the
        `_meta` of an MCP request, headers, or variables in lower case. One that names none leaves the context as it is.
        """
        said = carrier if isinstance(carrier, Mapping) else {}
        found = {key: value for key in CARRIED if isinstance(value := said.get(key), str)}
        context = get_current()
        try:
            named_by = extract(found, context) if "traceparent" in found else context
            if trace.get_current_span(named_by).get_span_context().is_valid:
                context = named_by
        except Exception as error:  # noqa: BLE001  whatever a propagator raises
            warn_once("otel propagator", "telemetry failed: %r", error)
        token = attach(context)
        try:
            yield
        finally:
            detach(token)

    def carrier(self, decision: Decision | None = None) -> dict[str, str]:
        """
        Returns the names of the span of the open call of *decision*, or of the present one: `traceparent` and its
        companions.
        """
        with self._opening:
            call = None if decision is None else self._open.get(key_of(decision))
        said: dict[str, str] = {}
        try:
            inject(said, None if call is None else call.context)
        except Exception as error:  # noqa: BLE001  whatever a propagator raises
            warn_once("otel propagator", "telemetry failed: %r", error)
        return said

    @contextmanager
    def running(self, session: str, carrier: object = None) -> Iterator[None]:
        """
        A block that is a run of an agent, the one of *session*: the parent of its calls. *carrier* is as for `within`.
        """
        with self.within(carrier):
            said = {names.OPERATION: names.INVOKE_AGENT, names.CONVERSATION: named(session)}
            try:
                span = self._tracer.start_span(names.INVOKE_AGENT, attributes=said)
            except Exception as error:  # noqa: BLE001  whatever an SDK raises
                warn_once("otel span", "telemetry failed: %r", error)
                span = trace.INVALID_SPAN
            token = attach(trace.set_span_in_context(span))
            try:
                yield
            finally:
                detach(token)
                _tried("span", span.end)

    # Of sessions

    def begin(self, session: str, tool: object, *, start_ns: int | None = None) -> CallSpan:
        """
        The span of a call, which begins: see `CallSpan`.
        """
        return CallSpan(self._tracer, session, tool, shows=self._content, start_ns=start_ns)

    def end(self, call: CallSpan) -> None:
        """
        End the span of *call*, and count it.
        """
        call.over()
        _tried("span", call.end)
        _tried("count", lambda: self.metrics.count(call))

    def charged(self, cost: int | None, tokens: int) -> None:
        """
        Count a model response.
        """
        _tried("count", lambda: self.metrics.charged(cost, tokens))

    def hold(self, call: CallSpan) -> None:
        """
        Keep *call* open, which runs elsewhere.
        """
        if call.key is None:
            return
        with self._opening:
            self._open[call.key] = call
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)[1].over()

    def take(self, key: Key) -> CallSpan | None:
        """
        The call that was held open, which is not held any more.
        """
        if not self._open:
            return None
        with self._opening:
            return self._open.pop(key, None)

    def taken(self, session: str) -> list[CallSpan]:
        """
        All of *session*.
        """
        with self._opening:
            return [self._open.pop(key) for key in list(self._open) if key[0] == session]


def _tried(what: str, work: Callable[[], object]) -> None:
    """
    Do *work* of an SDK, which fails no call.
    """
    try:
        work()
    except Exception as error:  # noqa: BLE001  whatever an SDK raises
        warn_once(f"otel {what}", "telemetry failed: %r", error)


CARRIED: Final = ("traceparent", "tracestate", "baggage")
"""What a carrier may hold, of the W3C's trace context and baggage."""
_metrics: "weakref.WeakKeyDictionary[Any, Metrics]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()
