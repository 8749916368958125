"""
JSON lines of one call each, with its result: the form of the recorded data sets, and the plainest to write oneself.

A line has `session_id`, `tool` and `arguments`. If known it also has `source`, `model`, `call_index`, `result`,
`is_error`, `error_type`, `ts` (seconds since 1970) and `duration_ms`. The usage of the model response, on its first
call, is `tokens_in`, `tokens_out` and `cost_usd`. If the result is cut, `result_sha1` is of the full text, and
`result_norm_sha1` of the text without clocks, counters and ids. An `is_error` of null says that there is no result;
without that key the result's own text is asked.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from guardrails.core.values.types import ErrorType

from .calls import RecordedCall, Report
from .events import Event, Made, Values
from .fields import ERRORS, amount, count, text, time_ms
from .results import settle


HASH_DIGITS: Final = 15
"""Hexadecimal digits of a SHA-1 that are kept as evidence: 60 bits."""
_RENAMED: Final[dict[str, ErrorType]] = {
    **ERRORS,
    "server_5xx": "server_error",
    "stale_state": "precondition",
    "user_rejected": "cancelled",
}


class CallLines:
    """
    One call a line.
    """

    name = "json lines of calls"

    def fits(self, value: Any) -> bool:
        if type(value) is not dict or "arguments" not in value or "event" in value:
            return False
        return bool(text(value.get("session_id")) and text(value.get("tool")))

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        responses: dict[str, int | None] = {}
        for _, record in values:
            session_id, model, id_ = record["session_id"], text(record.get("model")), text(record.get("id"))
            call = RecordedCall(session_id, record["tool"], record["arguments"], id=id_, model=model)
            call.source, call.cost_usd = text(record.get("source")) or "", amount(record.get("cost_usd"))
            call.ts_ms, call.duration_ms = time_ms(record.get("ts")), count(record.get("duration_ms"))
            call.tokens_in, call.tokens_out = count(record.get("tokens_in")), count(record.get("tokens_out"))
            _settle(call, record)
            # A response tells its tokens on its first call; a session that does not begin with them has no turns.
            response = responses.get(session_id, 0)
            if response is not None and (call.tokens_in is not None or call.tokens_out is not None):
                response += 1
            responses[session_id] = response = response or None
            yield Made(call, response=response, again=True, at=count(record.get("call_index")))


def _settle(call: RecordedCall, record: Any) -> None:
    failed, result, said = record.get("is_error"), record.get("result"), record.get("error_type")
    kind = _RENAMED.get(said, "other") if type(said) is str else None
    call.is_error = failed if type(failed) is bool else None
    call.has_result = call.is_error is not None
    if result is not None and (call.has_result or "is_error" not in record):
        settle(call, result, failed=call.is_error, kind=kind)
    if call.is_error and (kind or call.error_type is None):
        call.error_type, call.http_status = kind or "other", None
    call.plain_hash, call.masked_hash = _hash(record.get("result_sha1")), _hash(record.get("result_norm_sha1"))


def _hash(digits: Any) -> int | None:
    if type(digits) is str:
        with suppress(ValueError):
            return int(digits[:HASH_DIGITS], 16)
    return None
