"""
Finding the failures that hide in results.

A tool's data never sets a status by itself: `{"error": "..."}` is a value until its tool is declared otherwise. The
one exception is MCP's own `isError: true`, which is part of the protocol.
"""

from reprlib import Repr
from typing import Final, NamedTuple

from guardrails.core.values.types import ErrorType

from .error_names import error_type_of_status
from .error_text import error_type_from_text, status_in_text
from .result_classifier import FAILURE_WORDS, MESSAGE_FIELDS, ResultClassifier
from .result_views import (
    MISSING,
    Scalar,
    as_number,
    first_value_at,
    is_found,
    is_mcp_error,
    is_same,
    mcp_text,
    views_of,
)


_NOTHING_DECLARED: Final = ResultClassifier()


class Failure(NamedTuple):
    """
    A result that is a failure.
    """

    error_type: ErrorType
    message: str
    """What it says, unredacted."""
    whole: bool
    """The message is all there is in the result."""
    http_status: int | None = None
    retry_after_s: object = None


class _Sign(NamedTuple):
    error_type: ErrorType | None
    http_status: int | None
    words: str
    """The sign in words, for a result without a message."""


def failure_in(value: object, classifier: ResultClassifier | None) -> Failure | None:
    """
    The failure that *value* is, by MCP's `isError: true` or by what is declared; None where it is a result.
    """
    flagged = is_mcp_error(value)
    if classifier is None and not flagged:
        return None

    text = value if isinstance(value, str) else mcp_text(value)
    rules = classifier or _NOTHING_DECLARED
    views = views_of(value, text if classifier else None)
    sign = _sign(rules, views, text)
    if sign is None:
        if not flagged:
            return None
        sign = _Sign(None, None, "the tool reported an error and said nothing of it")

    message = (text if flagged else None) or _message(rules, views) or text or sign.words
    status = sign.http_status or status_in_text(message)
    by_status = error_type_of_status(status) if status is not None else None
    kind = sign.error_type or by_status or error_type_from_text(message) or "other"
    wait = first_value_at(views, rules.retry_after_field) if rules.retry_after_field else None
    return Failure(kind, message, message == text, status, wait)


def _sign(rules: ResultClassifier, views: tuple[object, ...], text: str | None) -> _Sign | None:
    if rules.status_field is not None:
        said = first_value_at(views, rules.status_field)
        if said is not MISSING and _is_bad(said, rules.ok_values):
            number = as_number(said)
            status = int(number) if number is not None and error_type_of_status(int(number)) else None
            return _Sign(None, status, f"{rules.status_field}: {_short(said)}")

    for rule in rules.error_when:
        if rule.applies(views if rule.field or text is None else (text, *views)):
            return _Sign(
                rule.error_type, None, f"{rule.field}: {_short(first_value_at(views, rule.field))}".lstrip(": ")
            )
    if text is not None and any(is_found(pattern, text) for pattern in rules.text_matches):
        return _Sign(None, None, text)
    return None


def _is_bad(said: object, ok_values: tuple[Scalar, ...]) -> bool:
    if ok_values:
        return not any(is_same(said, ok) for ok in ok_values)
    if isinstance(said, bool):
        return not said
    number = as_number(said)
    if number is not None:
        return number >= 400
    return isinstance(said, str) and said.strip().lower() in FAILURE_WORDS


def _message(rules: ResultClassifier, views: tuple[object, ...]) -> str:
    for path in (rules.message_field,) if rules.message_field else MESSAGE_FIELDS:
        said = first_value_at(views, path)
        if isinstance(said, str) and said.strip():
            return said
        if isinstance(said, list | dict) and said:
            return _short(said)
    return ""


def _short(value: object) -> str:
    """
    A bounded picture of a value.
    """
    if value is MISSING:
        return "missing"

    picture = Repr()
    picture.maxdict = picture.maxlist = picture.maxtuple = 8
    picture.maxstring = picture.maxother = 200
    return picture.repr(value)
