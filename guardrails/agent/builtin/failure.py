"""
A set of built-in tools, and how one of them fails: with a type of the closed list, as an envelope.
"""

import functools

from collections.abc import Callable
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.text.path_text import BadPathError
from guardrails.core.values.types import ErrorType


class ToolFailure(Exception):
    """
    The failure of a tool, and the *envelope* that the model reads of it: *error_type*, a message, a *hint*, other *fields*.
    """

    def __init__(self, error_type: ErrorType, message: str, hint: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.envelope = Envelope.error(error_type, message, next_action_hint=hint, **fields)


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


def no_path(reason: str) -> ToolFailure:
    """
    Returns the failure of a path that cannot be used.
    """
    return ToolFailure("invalid_path", f"the path cannot be used: {reason}", "Use a path inside the workspace.")


def encoded(text: str, limit: int) -> bytes:
    """
    Returns *text* in UTF-8. Raises ToolFailure if it is not valid Unicode, or has more than *limit* bytes.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolFailure("validation", "the text is not valid Unicode") from None
    if len(data) > limit:
        raise ToolFailure("too_large", f"the text has {len(data):,} bytes (limit {limit:,})")
    return data


def page(value: Any, more: str | None, **fields: Any) -> Envelope:
    """
    Returns the envelope of a *value* that is whole, or a part; *more* says how to have the rest.
    """
    return Envelope.success(value, is_complete=more is None, next_action_hint=more, **fields)


def _telling(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ToolFailure as failure:
            return failure.envelope
        except BadPathError as error:
            return no_path(str(error)).envelope

    return run
