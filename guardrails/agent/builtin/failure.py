"""
A set of built-in tools, and how one of them fails: with a type of the closed list, as an envelope.
"""

import functools
import inspect

from collections.abc import Callable
from typing import Any, TypeVar

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.text.path_text import BadPathError
from guardrails.core.values.types import ErrorType


F = TypeVar("F", bound=Callable[..., Any])


class ToolFailure(Exception):
    """
    The failure of a tool: *error_type*, a message, *fields* of the envelope, and the *value* that there is in spite of
    it.
    """

    def __init__(self, error_type: ErrorType, message: str, *, value: Any = None, **fields: Any) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.value = value
        self.fields = fields

    def envelope(self) -> Envelope:
        """
        Returns the envelope that the model reads.
        """
        fields = {"error_message": str(self), **self.fields}
        return Envelope("error", self.value, error_type=self.error_type, **fields)


def told(function: F) -> F:
    """
    *function* with its failures told as envelopes; any other exception is the library's to judge.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ToolFailure as failure:
            return failure.envelope()
        except BadPathError as error:
            return no_path(str(error)).envelope()

    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


class ToolSet:
    """
    Tools that are the methods *names* of an object.
    """

    names: tuple[str, ...]

    @property
    def tools(self) -> dict[str, Any]:
        """
        The functions by name.
        """
        return {name: told(getattr(self, name)) for name in self.names}


def no_path(reason: str, *, hint: str = "Use a path inside the workspace.") -> ToolFailure:
    """
    The failure of a path that cannot be used.
    """
    return ToolFailure(
        "invalid_path",
        f"the path cannot be used: {reason}",
        retryable=False,
        retryable_after_correction=True,
        next_action="fix_arguments",
        next_action_hint=hint,
    )
