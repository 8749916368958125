"""
Finding the failures that hide in results.

If a tool has declared how it says that it failed, that alone decides. Results of other tools are failures if anyone
would call them so. MCP's own `isError: true`, which is part of the protocol, always is a failure.
"""

from collections.abc import Callable
from reprlib import Repr
from typing import Any, Final, NamedTuple

from guardrails.core.values.types import ERROR_TYPES, ErrorType, Found

from .error_names import error_type_of_json_rpc, error_type_of_name, error_type_of_status
from .error_text import error_type_from_text, status_in_text, unpaid
from .plain_failures import JSON_CHARS, Words, line_in, members_of, sign_in
from .result_classifier import FAILURE_WORDS, MESSAGE_FIELDS, FailureRule, ResultClassifier
from .result_views import (
    MISSING,
    Scalar,
    as_number,
    first_value_at,
    is_found,
    is_mcp_error,
    is_same,
    mcp_text,
    value_at,
    views_of,
)


_NOTHING_DECLARED: Final = ResultClassifier()
_KINDS: Final = ("error.code", "error_code", "code", "error.type", "error_type", "errorType", "type", "name", "error")
_WAITS: Final = {
    "retry_after": 1,
    "retryAfter": 1,
    "error.retry_after": 1,
    "retry_after_ms": 1000,
    "error.retry_after_ms": 1000,
}
"""Where a wait stands, and how many of its units are a second."""
_CODES: Final = ("error.code", "error.status", "code")
_NAME_CHARS: Final = 100
_UNFIT: Final = "the result does not have the form that is declared of it"


class Failure(NamedTuple):
    """
    A result that is a failure.
    """

    error_type: ErrorType
    message: str
    """The failure's words, unredacted."""
    whole: bool
    """The message is all there is in the result."""
    http_status: int | None = None
    retry_after_s: object = None
    found: Found = ""


class _Sign(NamedTuple):
    error_type: ErrorType | None
    http_status: int | None
    words: str
    """The sign in words, for a result without a message."""
    wait_s: object = None
    found: Found = ""
    speaks: bool = False
    """The sign says what is wrong, and the result does not."""


def failure_in(
    value: object,
    classifier: ResultClassifier | None,
    speaks: Callable[[Any], Words] | None = None,
    arguments: Any = None,
    *,
    whole: bool = True,
) -> Failure | None:
    """
    Returns the failure that *value* is, by MCP's `isError: true`, by what is declared, or by what is plain. Returns
    None if it is a result.

    *speaks* says, by the *arguments* of the call, whose words a text is; see `plain_failures`. A value that is not
    *whole*, since only a part of it was taken, is held against no schema.
    """
    flagged = is_mcp_error(value)
    text = value if isinstance(value, str) else mcp_text(value)
    rules = classifier or _NOTHING_DECLARED
    if classifier is not None:
        views = views_of(value, text)
        sign = _sign(rules, views, text, arguments, whole=whole)
        if sign is not None and sign.speaks:
            # A result that says itself that it failed is told from one that only looks wrong.
            sign = None if flagged else _plain_sign(views, text, "data", arguments) or sign
    elif flagged:
        views, sign = views_of(value, None), None
    if not flagged and (classifier is None or (sign is None and classifier.only_checks)):
        words = "data" if speaks is None else speaks(arguments)
        read = text if text is not None and words in {"own", "data"} and len(text) <= JSON_CHARS else None
        views = views_of(members_of(value), read)
        sign = _plain_sign(views, text, words, arguments)
    if sign is None:
        if not flagged:
            return None
        sign = _Sign(None, None, "the tool reported an error and said nothing of it")

    told = _message(rules, views)
    message = (text if flagged else None) or told or text or sign.words
    status = sign.http_status or status_in_text(message)
    by_status = error_type_of_status(status) if status is not None else None
    kind = sign.error_type or (None if unpaid(message) else by_status) or error_type_from_text(message) or "other"
    wait = first_value_at(views, rules.retry_after_field) if rules.retry_after_field else sign.wait_s
    if sign.speaks and not flagged:
        message = f"{sign.words}: {told}" if told else sign.words
    return Failure(kind, message, message == text, status, wait, sign.found)


def _plain_sign(views: tuple[object, ...], text: str | None, words: Words, arguments: Any) -> _Sign | None:
    for view in views:
        if (found := sign_in(view, arguments)) is not None:
            status, said, sure = found
            code = next((number for path in _CODES if (number := as_number(value_at(view, path))) is not None), None)
            if status is None and code is not None and error_type_of_status(int(code)):
                status = int(code)
            waits = ((as_number(value_at(view, path)), unit) for path, unit in _WAITS.items())
            wait = next((number / unit for number, unit in waits if number is not None), None)
            return _Sign(_named_type(view, code), status, said, wait, sure)
    return _Sign(None, None, text) if text is not None and line_in(text, words, arguments) else None


def _named_type(view: object, code: float | None) -> ErrorType | None:
    """
    Returns the kind that an object names, by a word of ours or of a service.
    """
    for path in _KINDS:
        said = value_at(view, path)
        if isinstance(said, str) and len(said) <= _NAME_CHARS and " " not in said:
            kind = said if said in ERROR_TYPES else error_type_of_name(said)
            if kind is not None:
                return kind
    return error_type_of_json_rpc(int(code)) if code is not None and code < 0 else None


def _sign(
    rules: ResultClassifier,
    views: tuple[object, ...],
    text: str | None,
    arguments: object,
    *,
    whole: bool,
) -> _Sign | None:
    if rules.status_field is not None:
        said = first_value_at(views, rules.status_field)
        if said is not MISSING and _is_bad(said, rules.ok_values):
            number = as_number(said)
            status = int(number) if number is not None and error_type_of_status(int(number)) else None
            return _Sign(None, status, f"{rules.status_field}: {_short(said)}")

    for rule in rules.error_when:
        seen = views if rule.field or text is None else (text, *views)
        if (whole or rule.unfit is None) and rule.applies(seen, arguments):
            return _rule_sign(rule, _short(first_value_at(views, rule.field)), arguments)
    if text is not None and any(is_found(pattern, text) for pattern in rules.text_matches):
        return _Sign(None, None, text)
    return None


def _rule_sign(rule: FailureRule, said: str, arguments: object) -> _Sign:
    if rule.unfit is not None:
        return _Sign(rule.error_type, None, _UNFIT, speaks=True)
    if rule.other_than is not None:
        asked = _short(value_at(arguments, rule.other_than))
        words = f"`{rule.field}` of the result is {said}, where {asked} was asked for"
        return _Sign(rule.error_type or "other", None, words, speaks=True)
    return _Sign(rule.error_type, None, f"{rule.field}: {said}".lstrip(": "))


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
    Returns a bounded picture of a value.
    """
    if value is MISSING:
        return "missing"

    picture = Repr()
    picture.maxdict = picture.maxlist = picture.maxtuple = 8
    picture.maxstring = picture.maxother = 200
    return picture.repr(value)
