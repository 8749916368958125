"""
The library's own records: a `call` line joined with its `settle` line, the tokens of a `charge` with the call after it.

These are the calls as any transcript would tell them, for judging another policy; `guardrails.offline.replay.exact` decides the same
records again exactly. Each life of a session's name (`run`) is a session of its own, in both.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from guardrails.core.records.record import newer_told, newer_version
from guardrails.core.values.types import ERROR_TYPES, MICRO

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Values
from .fields import count, listed, mapping, text, text_of


Line = Mapping[str, Any]


class OwnRecords:
    """
    Records of this library.
    """

    name = "guardrails records"

    def fits(self, value: Any) -> bool:
        line = mapping(value)
        kinds = (type(line.get(name)) for name in ("session_id", "n", "event"))
        return "schema_version" in line and tuple(kinds) == (str, int, str)

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        lives: dict[tuple[str, str], list[Line]] = {}
        again: dict[tuple[str, str], int] = {}
        newer = latest = 0
        for _, line in values:
            if (version := newer_version(line)) is not None:
                newer, latest = newer + 1, max(latest, version)
                continue
            named = line["session_id"], text(line.get("run")) or ""
            life = named[0], f"{named[1]}#{again[named]}" if named in again else named[1]
            if line["n"] == 1 and any(each["n"] == 1 for each in lives.get(life, ())[:32]):
                # Numbers that count from 1 again are another life, whatever it is called.
                again[named] = again.get(named, 1) + 1
                life = named[0], f"{named[1]}#{again[named]}"
            lives.setdefault(life, []).append(line)
        gaps = 0
        for (session_id, run), lines in lives.items():
            # Threads may write events in another order than that of their numbers, which are dense.
            lines.sort(key=lambda line: line["n"])
            numbers = [line["n"] for line in lines]
            gaps += sum(after > before + 1 for before, after in pairwise(numbers))
            yield from _life(session_id, run, lines)
        if newer:
            told = f"records of {newer_told(latest)}"
            report.note(file, f"{newer:,} line{' is' if newer == 1 else 's are'} left out: {told}")
            report.gave_none(file, told)
        if gaps:
            report.note(file, f"records are missing in {gaps} places: the numbers of events have gaps")


def _life(session_id: str, run: str, lines: list[Line]) -> Iterator[Event]:
    session = (session_id, run) if run else session_id
    charged: Line | None = None
    for line in lines:
        event, of = line["event"], line.get("call_n")
        if event == "call" and text(line.get("tool")):
            call = _call(session_id, run, line)
            if charged is not None:
                _charge(call, charged)
                charged = None
            call.has_result = False
            # A call that was refused has no result.
            yield Made(call, None if call.decision == "deny" else line["n"], again=True)
        elif event == "settle" and type(of) is int and line.get("late") is not True:
            # What is late changes nothing, and may be of another life with the same numbers.
            yield Came(session, of, then=partial(_settle, line))
        elif event == "charge":
            charged = line


def _call(session_id: str, run: str, line: Line) -> RecordedCall:
    call = RecordedCall("", session_id, 0, line["tool"], line.get("arguments"), count(line.get("turn")))
    call.run, call.id, call.ts_ms = run, text(line.get("id")), count(line.get("ts_ms"))
    changes, sig = line.get("mutates"), line.get("sig")
    # A call that may change something is no declared change unless its tool was declared one.
    declared = line.get("read_only", False)
    if type(changes) is bool:
        call.read_only = True if not changes else declared if type(declared) is bool else None
    call.number, call.polling = line["n"], line.get("polling") is True
    call.sig = sig if type(sig) is int else None
    call.decision, call.code = text(line.get("decision")), text(line.get("code"))
    call.nudges = tuple(code for code in listed(line.get("nudges")) if type(code) is str)
    call.observed = tuple(code for code in listed(line.get("observed")) if type(code) is str)
    return call


def _charge(call: RecordedCall, charged: Line) -> None:
    call.model, cost = text(charged.get("model")), count(charged.get("cost"))
    if not charged.get("untold"):
        call.tokens_in, call.tokens_out = count(charged.get("input_tokens")), count(charged.get("output_tokens"))
    call.cost_usd = None if cost is None else cost / MICRO


def _settle(line: Line, call: RecordedCall) -> None:
    call.has_result = True
    call.is_error = line.get("status") == "error"
    call.duration_ms = count(line.get("duration_ms"))
    plain, masked = line.get("result_hash"), line.get("result_hash_masked")
    call.plain_hash = plain if type(plain) is int else None
    call.masked_hash = masked if type(masked) is int else None
    complete, cost = line.get("is_complete"), count(line.get("cost"))
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = None if cost is None else cost / MICRO
    call.steady, call.empty = count(line.get("steady")) or 0, count(line.get("empty")) or 0
    if call.is_error:
        kind = line.get("error_type")
        call.error_type = next((each for each in ERROR_TYPES if each == kind), "other")
        call.http_status = count(line.get("http_status"))
        call.retry_after_ms = count(line.get("retry_after_ms"))
        call.result = text(line.get("error_message"))
    if "result" in line:
        call.result = text_of(line["result"])
