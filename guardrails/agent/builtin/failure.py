"""
A set of built-in tools, and how one of them fails: with a type of the closed list, as an envelope.
"""

import functools

from collections.abc import Callable
from typing import Any

from guardrails.core.envelope import Envelope
from guardrails.core.result import exceptions
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


def failure_of(error: Exception, what: str) -> ToolFailure:
    """
    Returns the failure that a model reads of *error*: *what* failed, and why, without a place or the words of a stranger.
    """
    kind = exceptions.failure_of(error).error_type or "other"
    hint = "List the folder to see what is there." if isinstance(error, FileNotFoundError) else None
    return ToolFailure(kind, f"{what}: {getattr(error, 'strerror', None) or type(error).__name__}", hint)


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

    return run
