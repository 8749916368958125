"""
The library's own records: a `call` line joined with its `settle` line, the tokens of a `charge` with the call after it.

These are the calls as any transcript would tell them, for judging another policy; `guardrails.offline.replay.exact` decides the same
records again exactly. Each life of a session's name (`run`) is a session of its own, in both.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.record import newer_version
from guardrails.core.values.types import MICRO

from .calls import Event, Format, Made, RecordedCall, Values
from .fields import ERRORS, count, listed, mapping, text, text_of


Line = Mapping[str, Any]


def is_record(value: Any) -> bool:
    """
    Returns whether a JSON *value* is a record of this library, of this version or an earlier one.
    """
    line = mapping(value)
    current = "schema_version" in line and newer_version(line) is None
    return current and [type(line.get(name)) for name in ("session_id", "n", "event")] == [str, int, str]


def _events(values: Values, file: str) -> Iterator[Event]:
    lives: defaultdict[tuple[str, str], dict[int, Line]] = defaultdict(dict)
    for _, line in values:
        # An event that stands there twice happened once.
        lives[line["session_id"], text(line.get("run")) or ""].setdefault(line["n"], line)
    for (session_id, run), events in lives.items():
        # Threads may write events in another order than that of their numbers.
        lines = [events[number] for number in sorted(events)]
        # What is late changes nothing, and may be of another life with the same numbers. The first end of a call counts.
        settled = [line for line in reversed(lines) if line["event"] == "settle" and line.get("late") is not True]
        ends = {of: line for line in settled if type(of := line.get("call_n")) is int}
        charged: Line = {}
        for line in lines:
            if line["event"] == "charge":
                charged = line
            elif line["event"] == "call" and text(line.get("tool")):
                call = _call(session_id, run, line, charged)
                charged = {}
                # A call that was refused has no result.
                call.has_result = call.decision != "deny" and line["n"] in ends
                if call.has_result:
                    _settle(call, ends[line["n"]])
                yield Made(call)


def _call(session_id: str, run: str, line: Line, charged: Line) -> RecordedCall:
    call = RecordedCall(session_id, line["tool"], line.get("arguments"), turn=count(line.get("turn")), run=run)
    call.id, call.model, call.cost_usd = line.get("id"), charged.get("model"), _dollars(charged.get("cost"))
    if not charged.get("untold"):
        call.tokens_in, call.tokens_out = count(charged.get("input_tokens")), count(charged.get("output_tokens"))
    # A call that may change something is no declared change unless its tool was declared one.
    if (changes := _of(bool, line.get("mutates"))) is not None:
        call.read_only = not changes or _of(bool, line.get("read_only", False))
    call.ts_ms, call.number = count(line.get("ts_ms")), line["n"]
    call.polling = line.get("polling") is True or line.get("repeats") == "allow"
    call.sig = _of(int, line.get("sig"))
    call.decision, call.code = text(line.get("decision")), text(line.get("code"))
    call.observed = tuple(filter(text, listed(line.get("would_refuse", line.get("observed")))))
    return call


def _settle(call: RecordedCall, line: Line) -> None:
    call.is_error, call.is_complete = line.get("status") == "error", _of(bool, line.get("is_complete"))
    call.duration_ms, call.tool_cost_usd = count(line.get("duration_ms")), _dollars(line.get("cost"))
    call.plain_hash, call.masked_hash = _of(int, line.get("result_hash")), _of(int, line.get("result_hash_masked"))
    call.steady, call.empty = count(line.get("steady")) or 0, count(line.get("empty")) or 0
    call.result = text(line.get("error_message")) if call.is_error else None
    if call.is_error:
        call.error_type = ERRORS.get(text(line.get("error_type")) or "", "other")
        call.http_status, call.retry_after_ms = count(line.get("http_status")), count(line.get("retry_after_ms"))
    if "result" in line:
        call.result = text_of(line["result"])


def _of(kind: type, value: Any) -> Any:
    return value if type(value) is kind else None


def _dollars(micro: Any) -> float | None:
    return None if count(micro) is None else micro / MICRO


OWN_RECORDS: Final = Format("guardrails records", is_record, _events)
