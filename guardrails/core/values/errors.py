"""
The exceptions of the library.

    GuardrailsError
    ├── CallDenied           a refused call, only if the caller asked for an exception
    ├── CallFailed           a call that ran and whose result says it failed, only if the caller asked for an exception
    ├── PolicyError          a policy file or object that is not valid; lists every mistake
    ├── SessionError         a session id, budget or use that is not allowed
    ├── StoreError           a store that cannot be reached, read or written now
    │   └── StateUnreadable  a state in it that is damaged, or of a version that this one cannot read; a SessionError too
    ├── ModelError           a model file that is not valid
    ├── TrainingError        records or cells that nothing can be learned from
    │   └── NothingFoundError  no failed calls among them, or no records at all
    ├── MissingExtra         an optional package that is not installed, with its install command; a ModuleNotFoundError too
    ├── SandboxUnavailable   a program cannot be confined here, so it is not started
    ├── LoopLimitExceeded    an agent loop that was asked to raise at its iteration limit
    └── ResponseFailed       a model response that its server calls failed, that was cut off, or that is no response at all

The two that carry an envelope are in `core/envelope.py`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from .types import NextAction


# What is true of the kinds of failure

TRANSIENT: Final = frozenset(("rate_limit", "server_error", "unavailable", "timeout", "connection"))
"""Failures that may pass by themselves: nothing is there to be repaired or corrected."""
PASSING: Final = TRANSIENT | {"conflict", "precondition", "cancelled"}
"""Failures that may pass by themselves, or by what somebody else does."""
WRONG: Final = frozenset(("validation", "tool_missing", "invalid_path"))
"""Failures that say that a call is wrong, and nothing of the world."""
LASTING: Final = WRONG | {"not_found", "too_large", "code_error"}
"""Failures whose cause lies in the call: the same call meets it again unless something is done in between."""
NEVER_AGAIN: Final = WRONG | {"auth", "permission", "not_found", "too_large"}
"""Failures that the same arguments always meet again, for any declaration, until records show otherwise."""
REPAIRABLE: Final = frozenset(("conflict", "precondition", "exec_nonzero", "code_error"))
"""Failures after which the same call works once something else is done."""
AMBIGUOUS: Final = frozenset(("timeout", "connection", "cancelled"))
"""Failures after which the call may have taken effect all the same."""
WITHOUT_EFFECT: Final = frozenset(("tool_missing",))
"""Failures before which nothing was done. A call that failed otherwise may have done half of its work: `mkdir a && cp b a`."""
CORRECTABLE: Final = (LASTING - {"tool_missing"}) | {"other", "validation_error"}
"""
Failures that other arguments mend. The next call of the tool is then nearly always the same one corrected: 22 of 26 that
were looked at in public agents' sessions, 3 of 10 after a command that failed or was cancelled.
"""
INSTEAD: "Final[Mapping[str, NextAction]]" = {
    **dict.fromkeys(("auth", "permission", "cancelled"), "ask_user"),
    **dict.fromkeys(("validation", "not_found", "invalid_path", "too_large", "code_error"), "fix_arguments"),
    **dict.fromkeys(("conflict", "precondition", "exec_nonzero"), "fix_precondition"),
    "tool_missing": "give_up",
}
"""The next step if repeating the call does not pay; transient kinds, and what is not known: give up."""


class GuardrailsError(Exception):
    """
    Root of everything this library raises on purpose.
    """


class PolicyError(GuardrailsError):
    """
    A policy is not valid. *mistakes* lists all of them; one of a file is `file:line:column: message`, its line and a caret.
    """

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class SessionError(GuardrailsError):
    """
    A session was named, split or used in a way that cannot work.
    """


class StoreError(GuardrailsError):
    """
    A store cannot be reached, read or written; nothing was changed, unless the message says that this is not known. It says
    what to do next.
    """


class StateUnreadable(StoreError, SessionError):
    """
    A kept state is damaged, or of a version that this library cannot read. The *reason* says which, and what to do.
    *whose* is the session or the scope, None if only the *store* knows.
    """

    def __init__(self, reason: str, whose: str | None = None, store: str = "") -> None:
        place = "session state" if whose is None else f"the state of {whose} in the store `{store}` cannot be used: it"
        super().__init__(f"{place} {reason}")
        self.reason = reason
        self.whose = whose


class SandboxUnavailable(GuardrailsError):
    """
    A program cannot be confined as it was asked, so it is not started; the message says what blocked it.
    """

    code = "sandbox.unavailable"


class LoopLimitExceeded(GuardrailsError):
    """
    An agent loop reached its iteration limit and was asked to raise.
    """


class ModelError(GuardrailsError):
    """
    A model file is corrupt, foreign, too large or of another format; what was loaded before stays.
    """


class TrainingError(GuardrailsError):
    """
    Records or cells cannot be read, or nothing can be learned from them.
    """


class NothingFoundError(TrainingError):
    """
    There are no failed calls to learn from, or no records at all.
    """


class MissingExtra(GuardrailsError, ModuleNotFoundError):
    """
    A package that not every installation has cannot be imported; the message names it and says what installs it.
    """


@contextmanager
def needs(extra: str, who: str = "this") -> Iterator[None]:
    """
    A block that imports packages of *extra*, one of this library's.

        with needs("mcp"):
            from mcp import Client

    Raises MissingExtra if one of them cannot be imported; its message begins with *who*.
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, MissingExtra):
            raise
        absent = isinstance(error, ModuleNotFoundError)
        lacks = f"`{error.name}`" if absent else f"`{extra}`, which cannot be imported ({error})"
        raise MissingExtra(f"{who} needs {lacks}: {install(extra)}", name=error.name) from error


def install(extra: str) -> str:
    """
    Returns the command that installs *extra*.
    """
    return f'pip install "toolcall-guardrails[{extra}]"'


class ResponseFailed(GuardrailsError):
    """
    A model response that failed, was cut off, or is none at all; nothing of it was run or kept.

    *code* is the server's. *url* is who answered, *status* its HTTP status, *body* the first 200 bytes of what came,
    without control characters and secrets. Each is None if it is not known.
    """

    url: str | None = None
    status: int | None = None
    body: str | None = None

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message if code is None else f"{code}: {message}")
        self.code = code


def os_message(error: OSError) -> str:
    """
    Returns the words for a file, a pipe or a disk that fails.
    """
    place = f"use `{error.filename}`" if error.filename else "go on"
    return f"cannot {place}: {error.strerror or error}"
