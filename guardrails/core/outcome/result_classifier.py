"""
Declarations of the results of a tool that are failures: plain data that a policy file can hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from guardrails.core.text.linear_pattern import NotLinearError, finder
from guardrails.core.values.bounds import MaxLen, MinLen
from guardrails.core.values.types import ErrorType

from .result_views import (
    MISSING,
    Scalar,
    as_number,
    check_schema,
    fits_schema,
    is_found,
    is_other,
    is_same,
    says_something,
    value_at,
)


Field = Annotated[str, MinLen(1), MaxLen(200)]
Pattern = Annotated[str, MinLen(1), MaxLen(1000)]

FAILURE_WORDS: Final = frozenset({"error", "failed", "failure", "fail", "fatal", "denied", "unauthorized", "timeout"})
"""Words of a status field for a failure, in upper or lower case, if no `ok_values` are declared."""
MESSAGE_FIELDS: Final = ("error.message", "error_message", "error", "message", "detail", "errors", "reason", "msg")
"""Where the message of a failed result is looked for, unless it is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """
    One sign of a failure. Exactly one of *equals*, *at_least*, *present*, *matches*, *unfit* and *other_than* is set.

    Raises ValueError if that is not so, if *matches* is no regular expression, or if *unfit* is no JSON Schema.
    """

    field: Annotated[str, MaxLen(200)] = ""
    """Dotted path in the result, list items by number (`errors.0.code`); `""`: the result itself, or its text."""
    equals: Scalar | tuple[Scalar, ...] | None = None
    """The value, or one of the values; `true` is not 1."""
    at_least: float | None = None
    present: bool | None = None
    """True: the field is there and neither null, false, empty nor 0; False: it is not."""
    matches: Pattern | None = None
    """A regular expression, looked for in the first 8,192 characters in linear time: no lookaround, no backreferences.
    `(?i)` ignores case."""
    unfit: Mapping[str, Any] | None = None
    """A JSON Schema. The result is a failure if the value fits it in none of the forms in which the result can be read. A value
    that cannot be checked, such as a text that is too long to be read as JSON, is no failure."""
    other_than: Field | None = None
    """Dotted path of an argument of the call. An honest answer repeats its value. If both are there and differ, the answer is
    data of another entity. Case and outer white space do not count."""
    error_type: ErrorType | None = None
    """None: taken from the status, or from the text of the failure."""

    def __post_init__(self) -> None:
        conditions = (self.equals, self.at_least, self.present, self.matches, self.unfit, self.other_than)
        if sum(condition is not None for condition in conditions) != 1:
            raise ValueError(
                "a failure rule takes exactly one of `equals`, `at_least`, `present`, `matches`, `unfit` and `other_than`"
            )
        _check(self.matches)
        if self.unfit is not None:
            check_schema(self.unfit)

    @property
    def is_check(self) -> bool:
        """
        Whether the rule tells what an honest answer looks like. Other rules tell how the tool says that it failed.
        """
        return self.unfit is not None or self.other_than is not None

    def applies(self, views: tuple[object, ...], arguments: object = None) -> bool:
        """
        Returns whether the rule finds its sign in one of *views* of a result of a call with *arguments*.
        """
        found = [value for view in views if (value := value_at(view, self.field)) is not MISSING]
        if self.present is not None:
            return bool(views) and any(says_something(value) for value in found) is self.present
        if self.unfit is not None:
            return bool(found) and not any(fits_schema(value, self.unfit) for value in found)
        if self.other_than is not None:
            given = value_at(arguments, self.other_than)
            return bool(found) and all(is_other(value, given) for value in found)
        return any(self._fits(value) for value in found)

    def _fits(self, value: object) -> bool:
        if self.equals is not None:
            wanted = self.equals if isinstance(self.equals, tuple | list) else (self.equals,)
            return any(is_same(value, one) for one in wanted)
        if self.at_least is not None:
            number = as_number(value)
            return number is not None and number >= self.at_least
        return self.matches is not None and isinstance(value, str) and is_found(self.matches, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultClassifier:
    """
    The signs by which a result of a tool is a failure.

    `status_field` is judged first, then `error_when` in order, then `text_matches`; the first sign decides. Fields are
    looked for in the result, in JSON that its text holds (up to 64 KB), and in MCP's `structuredContent`. Raises
    ValueError if a pattern is no regular expression.

    If there are only rules with `unfit` and `other_than`, a failure that anyone would call one is a failure as well.
    """

    status_field: Field | None = None
    """Dotted path of an HTTP status, a word, or a boolean that is false for a failure."""
    ok_values: tuple[Scalar, ...] = ()
    """Values of *status_field* for a success; empty: no status from 400 up, no word of failure, not false."""
    error_when: tuple[FailureRule, ...] = ()
    text_matches: tuple[Pattern, ...] = ()
    """Regular expressions, any of which in the first 8,192 characters of a text result means failure."""
    message_field: Field | None = None
    """Dotted path of the message; None: the usual ones (`error.message`, `error`, `message`, `detail`, ...)."""
    retry_after_field: Field | None = None
    """Dotted path of the wait in seconds."""

    def __post_init__(self) -> None:
        for pattern in self.text_matches:
            _check(pattern)

    @property
    def only_checks(self) -> bool:
        """
        Whether it tells what an honest answer looks like, and not how the tool says that it failed.
        """
        told = bool(self.error_when) and all(rule.is_check for rule in self.error_when)
        return told and self.status_field is None and not self.text_matches


def _check(pattern: str | None) -> None:
    if pattern is None:
        return
    try:
        finder(pattern)
    except NotLinearError as problem:
        raise ValueError(f"not a regular expression: `{pattern[:100]}`: {problem}") from None
