"""
Declarations of the results of a tool that are failures: plain data that a policy file can hold.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

from guardrails.core.result.content import at, http_error, number_of, short
from guardrails.core.result.failures import FAILED, Sign
from guardrails.core.values.dataclass import dataclass
from guardrails.core.values.schema import MaxLen, MinLen
from guardrails.core.values.types import ErrorType


Field = Annotated[str, MinLen(1), MaxLen(200)]
Pattern = Annotated[str, MinLen(1), MaxLen(1000)]
Scalar = str | int | float | bool

SCAN_CHARS: Final = 8192
"""A regular expression sees this much of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """
    One sign of a failure. Exactly one of *equals*, *at_least*, *present* and *matches* is set.

    Raises ValueError if that is not so, or if *matches* is no regular expression.
    """

    field: Annotated[str, MaxLen(200)] = ""
    """Dotted path in the result, list items by number (`errors.0.code`); `""`: the result itself, or its text."""
    equals: Scalar | tuple[Scalar, ...] | None = None
    """The value, or one of the values; `true` is not 1."""
    at_least: float | None = None
    present: bool | None = None
    """True: the field is there and neither null, false, empty nor 0; False: it is not."""
    matches: Pattern | None = None
    """A regular expression of Rust, looked for in the first 8,192 characters in linear time: no lookaround, no
    backreferences, `$` at the very end only. `(?i)` ignores case."""
    error_type: ErrorType | None = None
    """None: taken from the status, or from the text of the failure."""

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.equals, self.at_least, self.present, self.matches)) != 1:
            raise ValueError("a failure rule takes exactly one of `equals`, `at_least`, `present` and `matches`")
        if self.matches is not None:
            finder(self.matches)

    def applies(self, views: Sequence[Any]) -> bool:
        """
        Returns whether the rule finds its sign in one of *views* of a result.
        """
        values = [value for view in views if (value := at(view, self.field)) is not None]
        if self.present is not None:
            return bool(views) and any(values) is self.present
        return any(map(self._fits, values))

    def _fits(self, value: Any) -> bool:
        if self.matches is not None:
            return isinstance(value, str) and finder(self.matches)(value)
        if self.at_least is not None:
            return (number := number_of(value)) is not None and number >= self.at_least
        return _is_any(value, self.equals if isinstance(self.equals, tuple | list) else (self.equals,))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultClassifier:
    """
    The signs by which a result of a tool is a failure; nothing else makes one, but MCP's `isError: true`.

    `status_field` is judged first, then `error_when` in order; the first sign decides. Fields are looked for in the
    result without its carriers: JSON text, MCP's blocks and `structuredContent`. Raises ValueError if a pattern is no regular expression.
    """

    status_field: Field | None = None
    """Dotted path of an HTTP status, a word, or a boolean that is false for a failure."""
    ok_values: tuple[Scalar, ...] = ()
    """Values of *status_field* for a success; empty: no status from 400 up, no word of failure, not false."""
    error_when: tuple[FailureRule, ...] = ()
    message_field: Field | None = None
    """Dotted path of the message; None: the usual ones (`error.message`, `error`, `message`, `detail`, ...)."""
    retry_after_field: Field | None = None
    """Dotted path of the wait in seconds."""

    def sign(self, views: tuple[Any, ...], text: str | None) -> Sign | None:
        """
        Returns the first declared sign of a failure in the *views* of a result, and its *text*; None if there is none.
        """
        status = None if self.status_field is None else _first(views, self.status_field)
        if status is not None and self._is_bad(status):
            return Sign(None, http_error(status), f"{self.status_field}: {short(status)}")
        for rule in self.error_when:
            seen: tuple[Any, ...] = views if rule.field or text is None else (text, *views)
            if rule.applies(seen):
                message = f"{rule.field}: {short(_first(seen, rule.field))}" if rule.field or text is None else text
                return Sign(rule.error_type, None, message)
        return None

    def _is_bad(self, status: Any) -> bool:
        if self.ok_values:
            return not _is_any(status, self.ok_values)
        word = status.strip().lower() if isinstance(status, str) else ""
        return status is False or (number_of(status) or 0) >= 400 or word in FAILED


def _first(views: Sequence[Any], path: str) -> Any:
    return next((value for view in views if (value := at(view, path)) is not None), None)


def _is_any(value: object, wanted: Sequence[Any]) -> bool:
    """
    Returns whether *value* is one of *wanted*; `true` is not 1.
    """
    return any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in wanted)


@lru_cache(maxsize=512)
def finder(pattern: str) -> Callable[[str], bool]:
    """
    Returns a function that tells whether *pattern* occurs in the first 8,192 characters of a text, in a time that is linear in
    the text for any of both. Raises ValueError.

    Its author is of a policy, and the text of strangers: Python's own engine goes back and tries again, for minutes on 30 characters.
    """
    from pydantic_core import SchemaError, SchemaValidator

    try:
        fits = SchemaValidator({"type": "str", "pattern": pattern}).isinstance_python
    except SchemaError as error:
        reason = str(error).rpartition("rror: ")[2].strip().rstrip(".")
        raise ValueError(f"not a regular expression: `{pattern[:100]}`: {reason}") from None
    return lambda text: fits(text[:SCAN_CHARS].encode(errors="replace").decode())
