"""
JSON lines of one call each, with its result: the form of the recorded data sets, and the plainest to write oneself.

A line has `session_id`, `tool` and `arguments`. If known it also has `source`, `model`, `id`, `result`, `is_error`,
`error_type`, `ts` (seconds since 1970) and `duration_ms`. The usage of the model response, on its first
call, is `tokens_in`, `tokens_out` and `cost_usd`. If the result is cut, `result_sha1` is of the full text, and
`result_norm_sha1` of the text without clocks, counters and ids. An `is_error` of null says that there is no result;
without that key the result's own text is asked.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from guardrails.core.values.types import ErrorType

from .calls import Came, Event, Format, Made, RecordedCall, Values
from .fields import ERRORS, amount, count, mapping, text


HASH_DIGITS: Final = 15
"""Hexadecimal digits of a SHA-1 that are kept as evidence: 60 bits."""
_RENAMED: Final[dict[str, ErrorType]] = {
    **ERRORS,
    "server_5xx": "server_error",
    "stale_state": "precondition",
    "user_rejected": "cancelled",
}


def _fits(value: Any) -> bool:
    line = mapping(value)
    return "arguments" in line and "event" not in line and bool(text(line.get("session_id")) and text(line.get("tool")))


def _events(values: Values, file: str) -> Iterator[Event]:
    responses = Counter[str]()
    for number, line in values:
        session, failed, kind = line["session_id"], line.get("is_error"), text(line.get("error_type"))
        call = RecordedCall(session, line["tool"], line["arguments"], id=line.get("id"), model=line.get("model"))
        call.source, call.cost_usd = text(line.get("source")) or "", amount(line.get("cost_usd"))
        call.tokens_in, call.tokens_out = count(line.get("tokens_in")), count(line.get("tokens_out"))
        call.plain_hash, call.masked_hash = _hash(line.get("result_sha1")), _hash(line.get("result_norm_sha1"))
        call.error_type = _RENAMED.get(kind, "other") if kind else None
        # A response tells its tokens on its first call.
        responses[session] += call.tokens_in is not None or call.tokens_out is not None
        yield Made(call, number, responses[session] or None, line.get("ts"))
        if type(failed) is bool or ("is_error" not in line and line.get("result") is not None):
            yield Came(session, number, line.get("result"), failed, ms=line.get("duration_ms"))


def _hash(digits: Any) -> int | None:
    with suppress(ValueError):
        return int(digits[:HASH_DIGITS], 16) if type(digits) is str else None
    return None


CALL_LINES: Final = Format("json lines of calls", _fits, _events)
