"""
A session that tells of its calls: a span around each, in the context of its caller.
"""

import time

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, Unpack

from guardrails.core.chain import Plan
from guardrails.core.decision import Completion, Decision, Happened
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.amounts import Amounts
from guardrails.core.prepare import Prepared
from guardrails.core.state import Pending
from guardrails.core.values.logs import warn_once
from guardrails.session.calls import Calls
from guardrails.session.ledger import Ledger
from guardrails.session.session import Session
from guardrails.session.steps import Execute

from .sink import TracedSink
from .spans import CallSpan, Key, current_call, key_of, present_ids


if TYPE_CHECKING:
    from .metrics import Metrics

P = ParamSpec("P")


class Tells(Protocol):
    """
    The telemetry of a session.
    """

    metrics: "Metrics"

    def begin(self, session: str, tool: object, *, start_ns: int | None = None) -> CallSpan: ...
    def end(self, call: CallSpan) -> None: ...
    def charged(self, cost: int | None, tokens: int) -> None: ...
    def hold(self, call: CallSpan) -> None: ...
    def take(self, key: Key) -> CallSpan | None: ...
    def taken(self, session: str) -> list[CallSpan]: ...


class TracedLedger(Ledger):
    """
    An account that tells how open calls end elsewhere, and of charges.
    """

    telemetry: Tells

    def event(self, name: str, values: Mapping[str, Any], *, needed: bool = False, **hidden: Any) -> Happened | None:
        made = super().event(name, values, needed=needed, **hidden)
        if name == "charge" and made is not None and made.n:
            self.telemetry.charged(values["cost"], values["tokens"])
        return made

    def suspend(self, decision: Decision) -> None:
        super().suspend(decision)
        self.told(key_of(decision), "suspended")

    def release(self, decision: Decision) -> None:
        super().release(decision)
        self.told(key_of(decision), "released")

    def lose(self, *which: Pending) -> None:
        super().lose(*which)
        run = self.read(lambda state, _: state.run)
        for one in which:
            self.told((self.id, run, one.n), "lost")

    def forget(self) -> None:
        super().forget()
        for one in self.telemetry.taken(self.id):
            one.told("lost")
            self.telemetry.end(one)

    def told(self, key: Key, status: str) -> None:
        """
        End the span of the call *key*, which was held open, or say the *status* of the one that runs here.
        """
        one = self.telemetry.take(key)
        if one is not None:
            one.told(status)
            self.telemetry.end(one)
        elif status != "claimed" and (one := current_call()) is not None and one.key == key:
            one.told(status)


class TracedCalls(Calls):
    """
    Calls whose decisions and ends are told to their spans.
    """

    ledger: TracedLedger

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on_end = _end

    def decide(self, tool: str, arguments: Any, call_id: str | None, execute: Execute) -> tuple[Decision, Plan]:
        decision, plan = super().decide(tool, arguments, call_id, execute)
        one = current_call()
        if one is not None:
            if decision.claim_n:
                # Another question has held it open; this one runs it.
                self.ledger.told(key_of(decision), "claimed")
            _quietly(one.decided, decision, known=plan.known is not False)
        for _, given_up in decision.expired:
            self.ledger.told((self.ledger.id, decision.run, given_up.n), "expired")
        return decision, plan


class TracedSession(Session):
    """
    A session whose calls have spans; made by `Policy.session(..., telemetry=...)`.
    """

    _kinds = TracedLedger, TracedCalls

    def __init__(self, *policy: Any, telemetry: Tells, **options: Any) -> None:
        sink = options.get("sink")
        if sink is not None and not isinstance(sink, TracedSink):
            options["sink"] = TracedSink(sink, present_ids)
        super().__init__(*policy, **options)
        self.ledger.telemetry = self._telemetry = telemetry  # type: ignore[attr-defined]
        self._left: Any = telemetry.metrics.opened()

    def child(self, name: str, *, share: float = 1, again: bool = False, **amounts: Unpack[Amounts]) -> Self:
        child = super().child(name, share=share, again=again, **amounts)
        # What a child has left is a share, which grows.
        child._left = None  # noqa: SLF001  of this class
        return child

    # Calls that run here

    def call(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        one = self._begin(tool)
        try:
            with one:
                return super().call(tool, arguments, execute, id=id)
        finally:
            self._telemetry.end(one)

    async def acall(self, tool: str, arguments: Any, execute: Execute, *, id: str | None = None) -> Envelope:
        one = self._begin(tool)
        try:
            with one:
                return await super().acall(tool, arguments, execute, id=id)
        finally:
            self._telemetry.end(one)

    # Calls that run elsewhere

    def decide(self, tool: str, arguments: Any, *, id: str | None = None, claim: bool = False) -> Decision:
        one = self._begin(tool)
        try:
            with one:
                decision = super().decide(tool, arguments, id=id, claim=claim)
        except BaseException:
            self._telemetry.end(one)
            raise
        if decision.repeated and not decision.claim_n:
            # It was told of when it was asked first.
            one.over()
        elif decision.allowed:
            self._telemetry.hold(one)
        else:
            self._telemetry.end(one)
        return decision

    def complete(self, which: Decision | str, outcome: object, *, arguments: Any = None) -> Envelope:
        decision = self.calls.open_call(which, arguments, ends=True)
        if decision.envelope is not None:
            return super().complete(decision, outcome)
        one = self._telemetry.take(key_of(decision))
        heard = one is not None
        if one is None:
            # It was decided by another process, or the call is over.
            one = self._telemetry.begin(self.id, decision.call.tool, start_ns=self._start_of(decision))
            _quietly(one.decided, decision, known=True)
        try:
            with one:
                return super().complete(decision, outcome)
        finally:
            if heard or one.ran:
                self._telemetry.end(one)
            else:
                one.over()

    def _begin(self, tool: object) -> CallSpan:
        left = self._left
        if left is not None and left.read is None:
            # Of the ledger, or the session would keep itself alive.
            left.read = partial(getattr, self.ledger, "progress")
        return self._telemetry.begin(self.id, tool)

    def _start_of(self, decision: Decision) -> int:
        """
        When the call of *decision* was admitted, in nanoseconds by the clock of spans.
        """
        return time.time_ns() - max(0, self.ledger.time() - decision.at_ms) * 1_000_000


def _end(decision: Decision, reading: Prepared, completion: Completion, envelope: Envelope) -> None:
    one = current_call()
    # The span of a late end is over.
    if one is not None and not completion.late and one.key == key_of(decision):
        _quietly(one.settled, reading, completion, envelope)


def _quietly(hear: Callable[P, object], *said: P.args, **more: P.kwargs) -> None:
    """
    Let a span *hear*: what it cannot read fails no call.
    """
    try:
        hear(*said, **more)
    except Exception as error:  # noqa: BLE001
        warn_once("otel call", "telemetry failed: %r", error)
