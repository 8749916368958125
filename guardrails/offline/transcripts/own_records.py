"""
JSON lines of this library: its records, and calls that are written a line each.

* In the records a `call` line is joined with its `settle` line, the tokens of a `charge` with the call after it. These are the calls as any
  transcript would tell them, for judging another policy; `guardrails.offline.replay.exact` decides the same records again exactly. Each life
  of a session's name (`run`) is a session of its own, in both.
* A line of one call, with its result, is the form of the recorded data sets, and the plainest to write oneself. It has `session_id`, `tool`
  and `arguments`. If known it also has `source`, `model`, `id`, `result`, `is_error`, `error_type`, `ts` (seconds since 1970) and
  `duration_ms`. The usage of the model response, on its first call, is `tokens_in`, `tokens_out` and `cost_usd`. If the result is cut,
  `result_sha1` is of the full text, and `result_norm_sha1` of the text without clocks, counters and ids. An `is_error` of null says that
  there is no result; without that key the result's own text is asked.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guardrails.core.record import SCHEMA_VERSION
from guardrails.core.values.types import MICRO

from .calls import Came, Event, Format, Made, RecordedCall, Values
from .fields import ERRORS, amount, count, listed, mapping, text, text_of


HASH_DIGITS: Final = 15
"""Hexadecimal digits of a SHA-1 that are kept as evidence: 60 bits."""
_RENAMED: Final = {"server_5xx": "server_error", "stale_state": "precondition", "user_rejected": "cancelled"}


def newer_version(record: Mapping[str, Any]) -> int | None:
    """
    Returns the schema version of *record* if this library is too old for it, else None.
    """
    version = record.get("schema_version")
    return version if type(version) is int and version > SCHEMA_VERSION else None


def newer_records(version: int) -> str:
    """
    Returns the text that a person reads of records of a *version* that is newer.
    """
    return f"schema version {version}, this library reads {SCHEMA_VERSION}: upgrade toolcall-guardrails"


def is_record(value: Any) -> bool:
    """
    Returns whether a JSON *value* is a record of this library, of this version or an earlier one.
    """
    line = mapping(value)
    current = "schema_version" in line and newer_version(line) is None
    return current and [type(line.get(name)) for name in ("session_id", "n", "event")] == [str, int, str]


def _events(values: Values, file: str) -> Iterator[Event]:
    lives: defaultdict[tuple[str, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for _, line in values:
        # An event that stands there twice happened once.
        lives[line["session_id"], text(line.get("run")) or ""].setdefault(line["n"], line)
    for (session_id, run), events in lives.items():
        # Threads may write events in another order than that of their numbers.
        lines = [events[number] for number in sorted(events)]
        # What is late changes nothing, and may be of another life with the same numbers. The first end of a call counts.
        settled = [line for line in reversed(lines) if line["event"] == "settle" and line.get("late") is not True]
        ends = {of: line for line in settled if type(of := line.get("call_n")) is int}
        charged: Mapping[str, Any] = {}
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


def _call(session_id: str, run: str, line: Mapping[str, Any], charged: Mapping[str, Any]) -> RecordedCall:
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


def _settle(call: RecordedCall, line: Mapping[str, Any]) -> None:
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


# Calls, a line each


def _is_call(value: Any) -> bool:
    line = mapping(value)
    return "arguments" in line and "event" not in line and bool(text(line.get("session_id")) and text(line.get("tool")))


def _call_events(values: Values, file: str) -> Iterator[Event]:
    responses = Counter[str]()
    for number, line in values:
        session, failed, kind = line["session_id"], line.get("is_error"), text(line.get("error_type"))
        call = RecordedCall(session, line["tool"], line["arguments"], id=line.get("id"), model=line.get("model"))
        call.source, call.cost_usd = text(line.get("source")) or "", amount(line.get("cost_usd"))
        call.tokens_in, call.tokens_out = count(line.get("tokens_in")), count(line.get("tokens_out"))
        call.plain_hash, call.masked_hash = _hash(line.get("result_sha1")), _hash(line.get("result_norm_sha1"))
        call.error_type = ERRORS.get(_RENAMED.get(kind, kind), "other") if kind else None
        # A response tells its tokens on its first call.
        responses[session] += call.tokens_in is not None or call.tokens_out is not None
        yield Made(call, number, responses[session] or None, line.get("ts"))
        if type(failed) is bool or ("is_error" not in line and line.get("result") is not None):
            yield Came(session, number, line.get("result"), failed, ms=line.get("duration_ms"))


def _hash(digits: Any) -> int | None:
    try:
        return None if digits is None else int(digits[:HASH_DIGITS], 16)
    except (TypeError, ValueError, KeyError):
        return None


OWN_RECORDS: Final = Format("guardrails records", is_record, _events)
CALL_LINES: Final = Format("json lines of calls", _is_call, _call_events)
