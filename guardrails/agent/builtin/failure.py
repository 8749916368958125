"""
A set of built-in tools, and how one of them fails: with a type of the closed list, as an envelope.
"""

import functools
import inspect

from collections.abc import Callable
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.text.path_text import BadPathError
from guardrails.core.values.types import ErrorType


class ToolFailure(Exception):
    """
    The failure of a tool, and the *envelope* that the model reads of it: *error_type*, a message, other *fields*, and the
    *value* that there is in spite of it.
    """

    def __init__(self, error_type: ErrorType, message: str, *, value: Any = None, **fields: Any) -> None:
        super().__init__(message)
        self.envelope = Envelope("error", value, error_type=error_type, error_message=message, **fields)


class ToolSet:
    """
    Tools that are the methods *names* of an object.
    """

    names: tuple[str, ...]

    @property
    def tools(self) -> dict[str, Any]:
        """
        The functions by name. Their failures are envelopes; any other exception is the library's to judge.
        """
        return {name: _telling(getattr(self, name)) for name in self.names}


def correctable(error_type: ErrorType, message: str, hint: str | None = None) -> ToolFailure:
    """
    Returns the failure of arguments that the model can correct.
    """
    known = {"retryable": False, "retryable_after_correction": True, "next_action": "fix_arguments"}
    return ToolFailure(error_type, message, **known, next_action_hint=hint)


def no_path(reason: str) -> ToolFailure:
    """
    Returns the failure of a path that cannot be used.
    """
    return correctable("invalid_path", f"the path cannot be used: {reason}", "Use a path inside the workspace.")


def encoded(text: str, limit: int) -> bytes:
    """
    Returns *text* in UTF-8. Raises ToolFailure if it is not valid Unicode, or has more than *limit* bytes.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolFailure("validation", "the text is not valid Unicode", retryable=False) from None
    if len(data) > limit:
        raise ToolFailure("too_large", f"the text has {len(data):,} bytes (limit {limit:,})", retryable=False)
    return data


def _telling(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ToolFailure as failure:
            return failure.envelope
        except BadPathError as error:
            return no_path(str(error)).envelope

    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return run
