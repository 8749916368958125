"""
The library's own records: a `call` line joined with its `settle` line, the tokens of a `charge` with the call after it.

These are the calls as any transcript would tell them, for judging another policy; `guardrails.offline.replay.exact` decides the same
records again exactly. Each life of a session's name (`run`) is a session of its own, in both.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from guardrails.core.record import newer_told, newer_version
from guardrails.core.values.types import MICRO

from .calls import RecordedCall, Report
from .events import Event, Made, Values
from .fields import ERRORS, count, listed, mapping, text, text_of


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
        lives: defaultdict[tuple[str, str], dict[int, Line]] = defaultdict(dict)
        newer: list[int] = []
        for _, line in values:
            if (version := newer_version(line)) is not None:
                newer.append(version)
            else:
                # An event that stands there twice happened once.
                lives[line["session_id"], text(line.get("run")) or ""].setdefault(line["n"], line)
        gaps = 0
        for (session_id, run), events in lives.items():
            # Threads may write events in another order than that of their numbers, which are dense.
            numbers = sorted(events)
            gaps += sum(after > before + 1 for before, after in pairwise(numbers))
            yield from _events(session_id, run, [events[number] for number in numbers])
        if newer:
            report.without[file] = f"records of {newer_told(max(newer))}"
            report.note(
                file, f"{len(newer):,} line{' is' if len(newer) == 1 else 's are'} left out: {report.without[file]}"
            )
        if gaps:
            report.note(file, f"records are missing in {gaps} places: the numbers of events have gaps")


def _events(session_id: str, run: str, lines: list[Line]) -> Iterator[Event]:
    # What is late changes nothing, and may be of another life with the same numbers. The first end of a call counts.
    ends = {
        of: line
        for line in reversed(lines)
        if line["event"] == "settle" and type(of := line.get("call_n")) is int and line.get("late") is not True
    }
    charged: Line | None = None
    for line in lines:
        if line["event"] == "charge":
            charged = line
        elif line["event"] == "call" and text(line.get("tool")):
            call = _call(session_id, run, line)
            if charged is not None:
                _charge(call, charged)
                charged = None
            # A call that was refused has no result.
            end = None if call.decision == "deny" else ends.get(line["n"])
            call.has_result = end is not None
            if end is not None:
                _settle(call, end)
            yield Made(call, again=True)


def _call(session_id: str, run: str, line: Line) -> RecordedCall:
    call = RecordedCall(session_id, line["tool"], line.get("arguments"), turn=count(line.get("turn")), run=run)
    call.id, call.ts_ms = text(line.get("id")), count(line.get("ts_ms"))
    changes, sig = line.get("mutates"), line.get("sig")
    # A call that may change something is no declared change unless its tool was declared one.
    declared = line.get("read_only", False)
    if type(changes) is bool:
        call.read_only = True if not changes else declared if type(declared) is bool else None
    call.number, call.polling = line["n"], line.get("polling") is True
    call.sig = sig if type(sig) is int else None
    call.decision, call.code = text(line.get("decision")), text(line.get("code"))
    call.nudges, call.observed = (tuple(filter(text, listed(line.get(name)))) for name in ("nudges", "observed"))
    return call


def _charge(call: RecordedCall, charged: Line) -> None:
    call.model, call.cost_usd = text(charged.get("model")), _dollars(charged.get("cost"))
    if not charged.get("untold"):
        call.tokens_in, call.tokens_out = count(charged.get("input_tokens")), count(charged.get("output_tokens"))


def _dollars(micro: Any) -> float | None:
    cost = count(micro)
    return None if cost is None else cost / MICRO


def _settle(call: RecordedCall, line: Line) -> None:
    call.is_error = line.get("status") == "error"
    call.duration_ms = count(line.get("duration_ms"))
    plain, masked = line.get("result_hash"), line.get("result_hash_masked")
    call.plain_hash, call.masked_hash = (each if type(each) is int else None for each in (plain, masked))
    complete = line.get("is_complete")
    call.is_complete = complete if type(complete) is bool else None
    call.tool_cost_usd = _dollars(line.get("cost"))
    call.steady, call.empty = count(line.get("steady")) or 0, count(line.get("empty")) or 0
    if call.is_error:
        call.error_type = ERRORS.get(text(line.get("error_type")) or "", "other")
        call.http_status = count(line.get("http_status"))
        call.retry_after_ms = count(line.get("retry_after_ms"))
        call.result = text(line.get("error_message"))
    if "result" in line:
        call.result = text_of(line["result"])
