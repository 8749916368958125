"""
Hands records from a session to its sink, each as soon as its event has happened.
"""

import os

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.chain import Plan
from guardrails.core.decision import Completion, Decision, Happened
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.prepare import Prepared
from guardrails.core.records.record import (
    call_record,
    event_record,
    expire_record,
    park_record,
    settle_record,
    snapshot,
)
from guardrails.core.text.plain_json import exact
from guardrails.core.values.logs import log, warn_once


if TYPE_CHECKING:
    from guardrails.sinks import Sink


CALL_BYTES: Final = 1_900
"""Bytes that the record of a decision takes beside its texts, as tracemalloc counts them."""
SETTLE_BYTES: Final = 1_900


class Recorder:
    """
    The records of the session *session_id*, handed to *sink*. Exceptions of a sink are counted and logged once.

    A record waits with its arguments and its result as JSON: as Python objects they may take many times as much, and change.
    """

    __slots__ = ("_put", "_session_id", "lost", "sink")

    def __init__(self, session_id: str, sink: "Sink") -> None:
        self._session_id = session_id
        self.sink = sink
        # Without records, none of it is imported.
        from guardrails.sinks.base import put_of

        self._put = put_of(sink)
        self.lost = 0
        """Records that the sink would not take."""

    def decided(self, decision: Decision, plan: Plan) -> None:
        """
        Hand over the event of a decision.
        """
        if decision.expired or decision.claim_n:
            self._before(decision)
        if decision.repeated or not decision.n:
            return
        call = decision.call
        arguments = exact(snapshot(call)) if call.canonical is None else call.canonical
        record = call_record(self._session_id, decision, plan, arguments)
        if decision.marks is not None:
            record |= decision.marks
        try:
            self._put(record, CALL_BYTES + len(arguments))
        except Exception as error:  # noqa: BLE001  a record never fails the call it is about
            self._lose(error)
        if decision.park_n:
            self._hand(park_record(self._session_id, decision), 600)

    def _before(self, decision: Decision) -> None:
        """
        Hand over the events that happened before a decision: admissions that were given up, and a claim.
        """
        session_id, run, last = self._session_id, decision.run, len(decision.expired) - 1
        for place, (n, pending) in enumerate(decision.expired):
            # Where nothing else happened, the last of them is the event that has a place in the family.
            alone = decision.repeated and not decision.claim_n and place == last
            record = expire_record(session_id, run, n, decision.at_ms, pending)
            self._hand(record, 600, decision.marks if alone else None)
        if decision.claim_n:
            claimed: dict[str, Any] = {"call_n": decision.n}
            if decision.park_n:
                # An approval is used by whoever asks first, who may only ask.
                claimed |= {"id": decision.call.id, "claimed": decision.claimed}
            record = event_record("claim", session_id, run, decision.claim_n, decision.at_ms, claimed)
            self._hand(record, 600, decision.marks)

    def settled(self, decision: Decision, prepared: Prepared, completion: Completion) -> None:
        """
        Hand over how a call ended, if the session's state knows of it.
        """
        if not completion.n:
            return
        record, rendered = settle_record(self._session_id, decision, prepared, completion), prepared.rendered
        if completion.marks is not None:
            record |= completion.marks
        try:
            self._put(record, SETTLE_BYTES if rendered is None else SETTLE_BYTES + rendered.size)
        except Exception as error:  # noqa: BLE001  a record never fails the call it is about
            self._lose(error)

    def event(self, name: str, happened: Happened, values: Mapping[str, Any]) -> None:
        """
        Hand over any other event.
        """
        n, at_ms, run = happened[:3]
        self._hand(event_record(name, self._session_id, run, n, at_ms, values), 1_200)

    def flush(self, timeout: float) -> None:
        """
        Wait up to *timeout* seconds until all is written.
        """
        try:
            self.sink.flush(timeout)
        except Exception as error:  # noqa: BLE001
            warn_once(f"flush {type(self.sink).__qualname__}", "the sink's `flush` raised: %r", error)

    def _hand(self, record: dict[str, Any], size: int, marks: dict[str, Any] | None = None) -> None:
        try:
            self._put(record if marks is None else record | marks, size)
        except Exception as error:  # noqa: BLE001  a record never fails the event it is about
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self.lost += 1
        warn_once(f"put {type(self.sink).__qualname__}", "the sink's `put` raised: %r; its records are lost", error)


def new_id() -> str:
    """
    Returns an id that no other process draws: of a call that comes without one, or of a life of a session, whose name may
    live again and counts from 1 then.
    """
    return os.urandom(8).hex()


def log_refused(session: str, envelope: Envelope, tool: str) -> None:
    """
    Log a call that failed before it ran: its arguments do not fit, there is no such tool, or it may not be used.
    """
    from guardrails.core.text.redaction import redact

    faults = [f"{one['field']}: {one['message']}" for one in envelope.errors or ()]
    error = redact(" ".join([envelope.message or envelope.status, *faults]))
    fields = {"session": session, "tool": tool, "error": error, "error_type": envelope.error_type or "validation"}
    log.info("tool execution failed", extra=fields)
