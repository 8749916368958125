"""
The library's own records: a `call` line joined with its `settle` line, the tokens of a `charge` with the call after it.

These are the calls as any transcript would tell them, for judging another policy; `guardrails.core.records.replay` decides the same
records again exactly. Each life of a session's name (`run`) is a session of its own, in both.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from guardrails.core.records.record import newer_told, newer_version
from guardrails.core.values.types import ERROR_TYPES, MICRO, ErrorType
from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.blocks import text_of
from guardrails.offline.readers.text.fields import count, mapping, text
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import beyond_64_bits, parse, parse_exactly
from guardrails.offline.readers.waiting import Session, Waiting


MAX_AHEAD: Final = 1_000
"""Events of one session that wait for an earlier one; then it counts as lost."""
MAX_FIRST: Final = 32
"""The same at a session's beginning, which may be in another file."""

_ERROR_TYPES: Final[dict[Any, ErrorType]] = {kind: kind for kind in ERROR_TYPES}

Line = dict[str, Any]


class OwnRecords:
    """
    Records of this library.
    """

    name = "guardrails records"
    whole = False

    def recognises(self, head: str) -> bool:
        return any(
            {"schema_version", "event", "session_id", "n"} <= mapping(value).keys()
            for value in leading_values(head)[:20]
        )

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:  # noqa: C901  a case for each kind of line
        loads = orjson.loads
        sessions: dict[tuple[str, str], _Session] = {}
        waiting = Waiting()
        lost, newer = 0, _Newer()
        for at, line in enumerate(lines, 1):
            try:
                record = loads(line)
                session_id, number, event = record["session_id"], record["n"], record["event"]
            except (ValueError, TypeError, KeyError):
                session_id, record = None, _lenient(line)
                if record is not None:
                    session_id, number, event = record.get("session_id"), record.get("n"), record.get("event")
            if type(session_id) is not str or type(number) is not int or type(event) is not str:
                if line.strip():
                    report.broke(file, at)
                continue

            if newer.holds(record):
                continue

            if event == "call" and beyond_64_bits(line[line.find(b'"arguments":') :]):
                record = parse_exactly(line)
            run = record.get("run")
            if type(run) is not str:
                run = ""
            session = sessions.get((session_id, run))
            if session is None:
                session = sessions[session_id, run] = _Session(source, run)
            elif number == 1 and session.begun:
                # Numbers that count from 1 again are another life, whatever it is called.
                lives = session.lives + 1
                session = sessions[session_id, run] = _Session(source, f"{run}#{lives}", lives)
            if number > session.next:
                session.ahead[number] = record
                if len(session.ahead) <= (MAX_FIRST if session.next == 1 else MAX_AHEAD):
                    continue
                lost += 1
                session.next = min(session.ahead)
            else:
                if number == session.next:
                    session.next = number + 1
                session.begun = session.begun or number == 1
                yield from session.apply(event, record, waiting)
            while session.next in session.ahead:
                record = session.ahead.pop(session.next)
                session.next += 1
                yield from session.apply(record["event"], record, waiting)

        for session in sessions.values():
            lost += bool(session.ahead)
            for number in sorted(session.ahead):
                record = session.ahead[number]
                yield from session.apply(record["event"], record, waiting)
        yield from waiting.rest()
        newer.tell(report, file)
        if lost:
            report.note(file, f"records are missing in {lost} places: the numbers of events have gaps")


class _Newer:
    """
    Records of a file that are newer than this library.
    """

    def __init__(self) -> None:
        self._count = self._latest = 0

    def holds(self, record: Line) -> bool:
        """
        Returns whether *record* is one, which is counted.
        """
        version = newer_version(record)
        if version is None:
            return False
        self._count += 1
        self._latest = max(self._latest, version)
        return True

    def tell(self, report: Report, file: str) -> None:
        """
        Say in *report* that there are some.
        """
        if self._count:
            told = f"records of {newer_told(self._latest)}"
            report.note(file, f"{self._count:,} line{' is' if self._count == 1 else 's are'} left out: {told}")
            report.gave_none(file, told)


class _Session:
    """
    One session. Its events are applied in the order of their numbers, which are dense; threads may write them in another.
    """

    __slots__ = ("ahead", "begun", "charged", "lives", "next", "run", "source")

    def __init__(self, source: str, run: str, lives: int = 1) -> None:
        self.source = source
        self.run = run
        self.lives = lives
        self.begun = False
        """Its first event was there."""
        self.next = 1
        self.ahead: dict[int, Line] = {}
        self.charged: Line | None = None
        """The model response that makes the calls to come."""

    def apply(self, event: str, record: Line, waiting: Waiting) -> Iterable[RecordedCall]:
        """
        Returns one event; the calls that can be given out after it.
        """
        session_id: str = record["session_id"]
        if event == "call":
            call = self._begun(session_id, record)
            if call is None:
                return ()

            if record.get("decision") != "deny":
                waiting.add(call, record["n"])
                return ()

            waiting.add(call, None)
        elif (
            event in {"settle", "expire"}
            or (event == "unpark" and record.get("approved") is False)
            or _released(event, record)
        ):
            number = record.get("call_n")
            # What is late changes nothing, and may be of another life with the same numbers.
            late = record.get("late") is True
            call = waiting.settle(self._of(session_id), number) if type(number) is int and not late else None
            if call is not None and event == "settle":
                _settle(call, record)
        else:
            if event == "charge":
                self.charged = record
            return ()

        return waiting.ready(self._of(session_id))

    def _of(self, session_id: str) -> Session:
        return (session_id, self.run) if self.run else session_id

    def _begun(self, session_id: str, record: Line) -> RecordedCall | None:
        tool = text(record.get("tool"))
        if tool is None:
            return None

        call = RecordedCall(self.source, session_id, 0, tool, record.get("arguments"), count(record.get("turn")))
        call.run, call.id, call.ts_ms = self.run, text(record.get("id")), count(record.get("ts_ms"))
        changes, sig = record.get("mutates"), record.get("sig")
        # A call that may change something is no declared change unless its tool was declared one.
        declared = record.get("read_only", False)
        if type(changes) is bool:
            call.read_only = True if not changes else declared if type(declared) is bool else None
        call.number, call.polling = record["n"], record.get("polling") is True
        call.sig = sig if type(sig) is int else None
        call.decision, call.code = text(record.get("decision")), text(record.get("code"))
        nudges = record.get("nudges")
        if type(nudges) is list and nudges:
            call.nudges = tuple(code for code in nudges if type(code) is str)
        charged = self.charged
        if charged is not None:
            self.charged = None
            call.model = text(charged.get("model"))
            if not charged.get("untold"):
                call.tokens_in, call.tokens_out = (
                    count(charged.get("input_tokens")),
                    count(charged.get("output_tokens")),
                )
            cost = count(charged.get("cost"))
            call.cost_usd = None if cost is None else cost / MICRO
        return call


def _settle(call: RecordedCall, record: Line) -> None:
    call.has_result = True
    call.is_error = record.get("status") == "error"
    call.duration_ms = count(record.get("duration_ms"))
    plain, masked = record.get("result_hash"), record.get("result_hash_masked")
    call.plain_hash = plain if type(plain) is int else None
    call.masked_hash = masked if type(masked) is int else None
    complete, cost = record.get("is_complete"), count(record.get("cost"))
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = None if cost is None else cost / MICRO
    call.steady, call.empty = count(record.get("steady")) or 0, count(record.get("empty")) or 0
    if call.is_error:
        kind = record.get("error_type")
        call.error_type = _ERROR_TYPES.get(kind, "other") if type(kind) is str else "other"
        call.http_status = count(record.get("http_status"))
        call.retry_after_ms = count(record.get("retry_after_ms"))
        call.result = text(record.get("error_message"))
    if "result" in record:
        call.result = text_of(record["result"])


def _lenient(line: bytes) -> Line | None:
    try:
        value = parse(line)
    except ValueError:
        return None

    return value if type(value) is dict else None


def _released(event: str, record: Line) -> bool:
    """
    Whether *record* says that a call never ran; a child, or a model request, is released too.
    """
    return event == "release" and "call_n" in record
