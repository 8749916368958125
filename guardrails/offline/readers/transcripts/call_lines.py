"""
JSON lines of one call each, with its result: the form of the recorded data sets, and the plainest to write oneself.

A line has `session_id`, `tool` and `arguments`. If known it also has `source`, `model`, `call_index`, `result`,
`is_error`, `error_type`, `ts` (seconds since 1970) and `duration_ms`. The usage of the model response, on its first
call, is `tokens_in`, `tokens_out` and `cost_usd`. If the result is cut, `result_sha1` is of the full text, and
`result_norm_sha1` of the text without clocks, counters and ids. An `is_error` of null says that there is no result;
without that key the result's own text is asked.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from guardrails.core.values.types import ERROR_TYPES, ErrorType
from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import MAX_NUMBER, amount, count, mapping, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.mcp_text import unwrapped
from guardrails.offline.readers.text.parsing import beyond_64_bits, parse_exactly
from guardrails.offline.readers.text.result_text import as_failed, settle


HASH_DIGITS: Final = 15
"""Hexadecimal digits of a SHA-1 that are kept as evidence: 60 bits."""

_LATEST: Final = 1e11
"""Seconds: what is above is a time in milliseconds."""

_RENAMED: Final[dict[str | None, ErrorType | None]] = {
    None: None,
    **{kind: kind for kind in ERROR_TYPES},
    "server_5xx": "server_error",
    "stale_state": "precondition",
    "user_rejected": "cancelled",
}
_WRAPPED: Final = frozenset('[{"mC \n')
"""How a result of MCP that was written out begins: as JSON, or as Python prints it."""
_OPTIONAL_TEXT: Final = frozenset({str, type(None)})
_EXACT: Final = frozenset({str, int, bool, type(None)})


class CallLines:
    """
    One call a line.
    """

    name = "json lines of calls"
    whole = False

    def recognises(self, head: str) -> bool:
        return any(map(_is_call, leading_values(head)[:20]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        loads = orjson.loads
        latest = ""
        turn: int | None = None
        index = 0
        sessions: dict[str, tuple[int | None, int]] = {}
        for number, line in enumerate(lines, 1):
            try:
                call = _call(loads(line), line)
            except (ValueError, TypeError, KeyError):
                call = None
            if call is None:
                call = _lenient(line, source)
                if call is None:
                    if line.strip():
                        report.broke(file, number)
                    continue

            session_id = call.session_id
            if session_id != latest:
                sessions[latest] = turn, index
                turn, index = sessions.pop(session_id, (None, 0))
                latest = session_id
            if call.call_index < 0:
                call.call_index = index
            index = call.call_index + 1
            # A response tells its tokens on its first call; a session that does not begin with them has none.
            if call.tokens_in is not None or call.tokens_out is not None:
                if turn is not None:
                    turn += 1
                elif call.call_index == 0:
                    turn = 1
            call.turn = turn
            yield call


def _is_call(value: Any) -> bool:
    record = mapping(value)
    return {"session_id", "tool", "arguments"} <= record.keys() and "event" not in record


def _call(record: Any, line: bytes) -> RecordedCall | None:
    """
    Returns the call of a line in which all is as it should be, else None.
    """
    tool, session_id, arguments = record["tool"], record["session_id"], record["arguments"]
    result, is_error, at = record["result"], record["is_error"], record["ts"]
    tokens_in, tokens_out = record["tokens_in"], record["tokens_out"]
    duration_ms, cost_usd, source = record["duration_ms"], record["cost_usd"], record["source"]
    index, model = record["call_index"], record["model"]
    if not (
        type(tool) is str
        and tool
        and type(session_id) is str
        and type(index) is int
        and type(model) in _OPTIONAL_TEXT
        and type(source) is str
        and type(result) in _OPTIONAL_TEXT
        and (type(is_error) is bool or is_error is None)
        and (at is None or (type(at) is float and 0 <= at < _LATEST))
        and (tokens_in is None or (type(tokens_in) is int and 0 <= tokens_in <= MAX_NUMBER))
        and (tokens_out is None or (type(tokens_out) is int and 0 <= tokens_out <= MAX_NUMBER))
        and (duration_ms is None or (type(duration_ms) is int and 0 <= duration_ms <= MAX_NUMBER))
        and (cost_usd is None or (type(cost_usd) is float and 0 <= cost_usd <= MAX_NUMBER))
        and (_is_flat(arguments) or not beyond_64_bits(line[line.find(b'"arguments":') :]))
    ):
        return None

    whole, masked = record["result_sha1"], record["result_norm_sha1"]
    if result and result[0] in _WRAPPED:
        told, failed = unwrapped(result)
        result = as_failed(told) if failed and is_error is False else told
    return RecordedCall(
        source,
        session_id,
        index,
        tool,
        arguments,
        turn=None,
        id=text(record.get("id")),
        model=model,
        ts_ms=None if at is None else round(at * 1000),
        duration_ms=duration_ms,
        result=None if is_error is None else result,
        has_result=is_error is not None,
        is_error=is_error,
        error_type=_RENAMED[record["error_type"]],
        http_status=None,
        retry_after_ms=None,
        plain_hash=None if whole is None else int(whole[:HASH_DIGITS], 16),
        masked_hash=None if masked is None else int(masked[:HASH_DIGITS], 16),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=cost_usd,
    )


def _is_flat(arguments: Any) -> bool:
    """
    Whether orjson has certainly read *arguments* exactly: a mapping without numbers that may be too long for it.
    """
    return type(arguments) is dict and _EXACT.issuperset(map(type, arguments.values()))


def _lenient(line: bytes, source: str) -> RecordedCall | None:
    """
    The call of a line that lacks fields or has odd ones; `call_index` -1: to be counted.
    """
    try:
        record = parse_exactly(line)
    except ValueError:
        return None

    record = mapping(record)
    tool, session_id = text(record.get("tool")), text(record.get("session_id"))
    if tool is None or session_id is None or "arguments" not in record:
        return None

    is_error, result = record.get("is_error"), record.get("result")
    call = RecordedCall(
        text(record.get("source")) or source, session_id, -1, tool, record["arguments"], id=text(record.get("id"))
    )
    index = count(record.get("call_index"))
    call.call_index = -1 if index is None else index
    call.model = text(record.get("model"))
    call.ts_ms = time_ms(record.get("ts"))
    call.duration_ms = count(record.get("duration_ms"))
    call.is_error = is_error if type(is_error) is bool else None
    call.has_result = call.is_error is not None
    if result is not None and (call.has_result or "is_error" not in record):
        settle(call, result, failed=call.is_error)
    kind = record.get("error_type")
    if call.is_error and (type(kind) is str or call.error_type is None):
        call.error_type = _RENAMED.get(kind, "other") if type(kind) is str else "other"
    call.plain_hash = _hash(record.get("result_sha1"))
    call.masked_hash = _hash(record.get("result_norm_sha1"))
    call.tokens_in, call.tokens_out = count(record.get("tokens_in")), count(record.get("tokens_out"))
    call.cost_usd = amount(record.get("cost_usd"))
    return call


def _hash(digits: Any) -> int | None:
    try:
        return int(digits[:HASH_DIGITS], 16) if type(digits) is str else None
    except ValueError:
        return None
