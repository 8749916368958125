"""
The span of one call, from the question whether it may run to its end.
"""

import time

from typing import TYPE_CHECKING, Any, Final, Self

from guardrails.core.decision import Completion, Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared
from guardrails.core.record import snapshot
from guardrails.core.values.errors import needs
from guardrails.core.values.logs import warn_once
from guardrails.core.values.types import MICRO

from . import names
from .sink import Ids
from .text import content, head, named


with needs("otel", "`guardrails.integrations.otel`"):
    from opentelemetry import trace
    from opentelemetry.context import Context, attach, create_key, detach, get_current, get_value, set_value
    from opentelemetry.trace import SpanKind, Status, StatusCode


if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Key = tuple[str, str, int | str]
"""The session, the life and the number of a call, or its id if its session has no number for it."""
_KEY: Final = create_key("guardrails-call")
_NOWHERE: Final = Context()


class CallSpan:
    """
    One call of *tool*: its span, which begins now or began at *start_ns*, and what is to be said of it. A context manager: its
    block is what runs in the span. An SDK that raises leaves it without one.
    """

    __slots__ = (
        "_arguments",
        "_before",
        "_estimate",
        "_recording",
        "_result",
        "_said",
        "_session",
        "_shows",
        "code",
        "context",
        "decision",
        "end_ns",
        "error_type",
        "key",
        "known",
        "ran",
        "scope",
        "source",
        "span",
        "start_ns",
        "tool",
        "used",
    )

    def __init__(
        self,
        tracer: "Tracer",
        session: str,
        tool: object,
        *,
        shows: bool = False,
        start_ns: int | None = None,
    ) -> None:
        self.tool = named(tool) if isinstance(tool, str) else "?"
        self.start_ns = time.time_ns() if start_ns is None else start_ns
        self.end_ns = 0
        self.key: Key | None = None
        """What tells the call from all others; None: nothing was decided of it."""
        self.decision: str | None = None
        """`allow`, `nudge`, `deny` or `pending`."""
        self.code: str | None = None
        """Of the denial that its caller is shown."""
        self.scope: str | None = None
        self.source: str | None = None
        """Who caused it, if the same call had failed before."""
        self.known = True
        """The tool is one of those that there are, as far as anybody knows."""
        self.ran = False
        self.error_type: str | None = None
        self.used = (0, 0)
        """Micro-dollars and tokens."""
        self._session = session
        self._shows = shows
        self._said: dict[str, Any] = {}
        self._estimate = (0, 0)
        self._arguments: bytes | None = None
        self._result: bytes | None = None
        self._before: Any = None
        span: Span = trace.INVALID_SPAN
        current = get_current()
        try:
            span = _started(tracer, self.tool, self.start_ns)
            current = trace.set_span_in_context(span)
            self._recording = span.is_recording()
        except Exception as error:  # noqa: BLE001  whatever an SDK raises: the call runs
            warn_once("otel span", "telemetry failed: %r", error)
            self._recording = False
        self.span = span
        self.context: Context = set_value(_KEY, self, current)

    # In its context

    def __enter__(self) -> Self:
        self._before = attach(self.context)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        # A coroutine that nobody awaits any more is closed by whoever finds it, in a context of theirs.
        if get_current() is self.context:
            detach(self._before)
        self._before = None
        if kind is not None and self.key is None:
            self.error_type = kind.__qualname__

    # What is known of it

    def decided(self, decision: Decision, *, known: bool) -> None:
        """
        Hear what was decided of it; the last word counts.
        """
        self.key, self.known = key_of(decision), known
        self.source, self._estimate = decision.retry_source, (decision.cost, decision.tokens)
        denial = decision.denial
        self.code, self.scope = (None, None) if denial is None else (denial.code, denial.scope)
        if decision.pending:
            self.decision = "pending"
        else:
            self.decision = "nudge" if decision.nudges else "allow"
            self.decision = self.decision if denial is None else "deny"
        if self._recording:
            self._said = {**_decided(decision), names.DECISION: self.decision}
            if decision.envelope is not None:
                self._said |= _refused(decision.envelope)
            if self._shows and self._arguments is None:
                # Now, as a tool may change what it is given.
                self._arguments = head(snapshot(decision.call))

    def settled(self, prepared: Prepared, completion: Completion, envelope: Envelope) -> None:
        """
        Hear how it ended. Only the shown part of a tool's result is kept.
        """
        outcome, (cost, tokens) = prepared.outcome, self._estimate
        self.ran, self.error_type = True, outcome.error_type
        cost = cost if outcome.cost is None else outcome.cost
        tokens = tokens if outcome.tokens is None else outcome.tokens
        self.used = (cost, tokens)
        if self._recording:
            self._said |= {names.STATUS: envelope.status, names.COST: cost / MICRO, names.TOKENS: tokens}
            self._said |= _completed(completion, None if prepared.own is None else prepared.own.sandbox)
            if self._shows and prepared.rendered is not None:
                self._result = head(prepared.rendered.payload)

    def told(self, status: str) -> None:
        """
        Hear what became of it that is no end of its tool: `suspended`, `released`, `claimed`, `expired` or `lost`.
        """
        if self._recording:
            self._said[names.STATUS] = status

    def over(self) -> "CallSpan":
        """
        Say that it ends now; `end` may come later, or never.
        """
        self.end_ns = time.time_ns()
        # It holds the span, which holds it.
        self.context = _NOWHERE
        return self

    def end(self) -> None:
        """
        End the span. May raise what the SDK raises, and wait for an exporter that exports in place.
        """
        if not self._recording:
            return
        session = named(self._session)
        said = {names.CONVERSATION: session, names.SESSION: session, **self._said}
        if self.error_type is not None:
            said[names.ERROR_TYPE] = self.error_type
            self.span.set_status(Status(StatusCode.ERROR))
        if self._arguments is not None:
            said[names.ARGUMENTS] = content(self._arguments)
        if self._result is not None:
            said[names.RESULT] = content(self._result)
        self.span.set_attributes(said)
        self.span.end(self.end_ns)


def _started(tracer: "Tracer", tool: str, at_ns: int) -> "Span":
    said = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: tool, names.TOOL_TYPE: "function"}
    return tracer.start_span(f"{names.EXECUTE_TOOL} {tool}", kind=SpanKind.INTERNAL, attributes=said, start_time=at_ns)


def current_call() -> CallSpan | None:
    """
    The call in whose context this runs.
    """
    found: Any = get_value(_KEY)
    return found if isinstance(found, CallSpan) else None


def present_ids() -> Ids | None:
    """
    The ids of the present span. Returns None if there is none.
    """
    context = trace.get_current_span().get_span_context()
    return Ids(context.trace_id, context.span_id) if context.is_valid else None


def key_of(decision: Decision) -> Key:
    """
    Returns the key that tells the call of *decision* from all others.
    """
    return decision.session, decision.run, decision.n or decision.call.id


def _decided(decision: Decision) -> dict[str, Any]:
    said: dict[str, Any] = {names.CALL_ID: named(decision.call.id), names.N: decision.n}
    if decision.run:
        said[names.RUN] = decision.run
    if decision.denials:
        said[names.CODE] = decision.denials[0].code
        said[names.CODES] = list(dict.fromkeys(denial.code for denial in decision.denials))
        if (scope := decision.denials[0].scope) is not None:
            said[names.WHOSE] = scope
    if decision.observed:
        said[names.OBSERVED] = [code for one in decision.observed if (code := one.code)]
    if decision.nudges:
        said[names.NUDGES] = [code for code, _ in decision.nudges]
    if decision.errors:
        said[names.GUARD_ERRORS] = [guard for guard, _ in decision.errors]
    if decision.retry_source is not None:
        said[names.RETRY_SOURCE] = decision.retry_source
    return said


def _refused(envelope: Envelope) -> dict[str, Any]:
    told = {
        names.STATUS: envelope.status,
        names.RETRYABLE: envelope.retryable,
        names.RETRY_AFTER: envelope.retry_after_ms,
    }
    return {name: value for name, value in told.items() if value is not None}


def _completed(completion: Completion, sandbox: str | None) -> dict[str, Any]:
    told = {
        names.RETRYABLE: completion.retryable,
        names.RETRY_AFTER: completion.wait_ms,
        names.COMPLETE: completion.is_complete,
        names.LIMIT: completion.limit,
        names.SANDBOX: sandbox,
    }
    return {name: value for name, value in told.items() if value is not None}
