"""
The reading of a result with all that costs time already done, outside of any lock.
"""

from collections.abc import Set
from typing import Any, Final

from orjson import OPT_SORT_KEYS, dumps
from xxhash import xxh3_64_intdigest

from guardrails.core.envelope import Envelope
from guardrails.core.result import Reading, evidence_of
from guardrails.core.result.content import LINE, is_given
from guardrails.core.result.names import Form, form_of
from guardrails.core.values.caches import pattern
from guardrails.core.values.types import ERROR_TYPES, STATUSES, Outcome, ToolCall


STEADY: Final = 8_192
"""Bytes of a result of which the news is taken; longer ones are compared as they are."""
_WORD: Final = pattern(r"(\w+)")
_GIVEN: Final = pattern(r"(?:~\W*)+")
_DIGITS: Final = pattern(r"[0-9]")


def news_hash(reading: Reading) -> int:
    """
    Returns 32 bits of the news in a result: of an object neither what repeats an argument, nor times, durations, ids of the request and
    counts of progress. Of a failure its kind and first words, without digits and arguments.
    """
    if reading.error_type is not None:
        return xxh3_64_intdigest(_failure(reading).encode(errors="replace")) & 0xFFFFFFFF or 1
    shown, content, digest = reading.rendered or reading.render(), reading.content, reading.hash
    if shown is not None and len(shown.payload) <= STEADY and type(content) is dict:
        try:
            news = news_of(content, reading.given, form=reading.form)
            digest = xxh3_64_intdigest(dumps(news, None, OPT_SORT_KEYS)) if news and news != content else digest
        except TypeError:
            # What JSON has no form for is compared as it is.
            pass
    return digest & 0xFFFFFFFF or 1


def _failure(reading: Reading) -> str:
    message = reading.error_message or evidence_of(reading, reading.render()).decode(errors="replace")
    given = set(_WORD.findall(" ".join(reading.given)))
    if "\n" in message or "Traceback" in message:
        from guardrails.core.text.redaction import untraced

        message = untraced(message[:4096])
    text = message[:400]
    if any(map(text.__contains__, given)):
        text = _GIVEN.sub("~", "".join("~" if part in given else part for part in _WORD.split(text)))
    return f"{reading.error_type}: {_DIGITS.sub('', text)[:120]}"


def news_of(content: Any, given: Set[str], depth: int = 4, form: Form | None = None) -> Any:
    """
    Returns what is news in *content*: of an object what neither repeats an argument nor speaks of itself. If it holds rows by a usual name
    they are all of it, but for its states. Raises TypeError for what JSON has no form for.
    """
    if type(content) is not dict or not depth:
        return content
    form = form or form_of(content)
    names = form.stated if content.get(form.rows) else form.facts
    news = {key: content[key] for key in names if not is_given(content[key], given)}
    for key, _ in form.lists:
        news[key] = content[key]
    for key, its in form.objects:
        if not its.aside and (inside := news_of(content[key], given, depth - 1)) != {}:
            news[key] = inside
    return news


CLOSE: Final = 400
"""Bytes of a result of which it is asked whether it brought anything."""


def prepare(outcome: Outcome, max_bytes: int, call: ToolCall | None = None, *, look: bool = False) -> Reading:
    """
    Render and hash an outcome; the work is bounded by *max_bytes* and 64 KB. Of a *look* the news is hashed too.
    """
    reading = outcome if isinstance(outcome, Reading) else Reading(outcome.value, arguments=call and call.arguments)
    if reading is not outcome:
        reading.__dict__.update(vars(outcome))
    if isinstance(reading.value, Envelope):
        reading = _spoken(reading, reading.value.copy())
    shown, failed = reading.render(max_bytes), reading.error_type is not None
    if failed or look:
        reading.steady = news_hash(reading)
    if shown is not None and len(shown.payload) <= CLOSE and not failed:
        reading.came = says(reading, look=look)
    return reading


def says(reading: Reading, *, look: bool) -> int:
    """
    Returns 3 if the work goes on, 2 if nothing was found, 1 if a result only acknowledges, as an empty text or object of what may be work does;
    4 if it answers in one short line or value, 0 if it brings more.
    """
    news, content = reading.news, reading.content
    if news != 2:
        return 3 if news == 3 else 1 if news == 0 or (not look and content in ("", {})) else 2
    rows = type(content) is list or (reading.form is not None and reading.form.lists)
    return 0 if rows or len(str(content)) > LINE else 4


def _spoken(reading: Reading, own: Envelope) -> Reading:
    """
    Returns the reading of a tool's *own* envelope, which loses what does not have the form of its field: state and records rely on it.
    """
    own.error_type = own.error_type if own.error_type in (None, *ERROR_TYPES) else "other"
    if own.status not in STATUSES:
        own.status = "success" if own.error_type is None else "error"
    for name in ("retry_after_ms", "max_retries_remaining"):
        claim = getattr(own, name)
        setattr(own, name, claim if type(claim) is int and claim >= 0 else None)
    failure = own.error_type or (None if own.ok else "validation" if own.status == "validation_error" else "other")
    made = Reading(own.value, reading.source, reading.arguments)
    made.own = own
    made.error_type, made.error_message = failure, own.error_message or own.message or ""
    made.http_status, made.retry_after_ms = own.http_status, own.retry_after_ms
    made.cost, made.tokens = reading.cost, reading.tokens
    return made
