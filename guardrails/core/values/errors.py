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

The two that carry an envelope are in `core/envelope/envelope.py`.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from .types import ErrorType, NextAction


_KINDS: Final = """
auth          ask_user          never
permission    ask_user          never
rate_limit    -                 transient passing
validation    fix_arguments     lasting wrong correctable never
not_found     fix_arguments     lasting correctable never
conflict      fix_precondition  passing repairable
precondition  fix_precondition  passing repairable
server_error  -                 transient passing
unavailable   -                 transient passing
timeout       -                 transient passing ambiguous
connection    -                 transient passing ambiguous
cancelled     ask_user          passing ambiguous
tool_missing  give_up           lasting wrong never without_effect
invalid_path  fix_arguments     lasting wrong correctable never
too_large     fix_arguments     lasting correctable never
exec_nonzero  fix_precondition  repairable
code_error    fix_arguments     lasting correctable repairable
other         -                 correctable
"""
"""The kinds of failure: what follows if repeating the call does not pay (`-`: nobody knows), and what is true of each."""
_ROWS: Final = {words[0]: words[1:] for words in map(str.split, _KINDS.strip().split("\n"))}


def _kinds(word: str) -> "frozenset[ErrorType | None]":
    return frozenset(kind for kind, words in _ROWS.items() if word in words)  # type: ignore[misc]


TRANSIENT: Final = _kinds("transient")
"""Failures that may pass by themselves: nothing is there to be repaired or corrected."""
PASSING: Final = _kinds("passing")
"""Failures that may pass by themselves, or by what somebody else does."""
LASTING: Final = _kinds("lasting")
"""Failures whose cause lies in the call: the same call meets it again unless something is done in between."""
NEVER_AGAIN: Final = _kinds("never")
"""Failures that the same arguments always meet again, for any declaration, until records show otherwise."""
WRONG: Final = _kinds("wrong")
"""Failures that say that a call is wrong, and nothing of the world."""
REPAIRABLE: Final = _kinds("repairable")
"""Failures after which the same call works once something else is done."""
AMBIGUOUS: Final = _kinds("ambiguous")
"""Failures after which the call may have taken effect all the same."""
WITHOUT_EFFECT: Final = _kinds("without_effect")
"""Failures before which nothing was done. A call that failed otherwise may have done half of its work: `mkdir a && cp b a`."""
CORRECTABLE: Final[frozenset[str | None]] = _kinds("correctable") | {"validation_error"}
"""
Failures that other arguments mend. The next call of the tool is then nearly always the same one corrected: 22 of 26 that
were looked at in public agents' sessions, 3 of 10 after a command that failed or was cancelled.
"""
INSTEAD: "Final[dict[ErrorType, NextAction]]" = {kind: words[0] for kind, words in _ROWS.items() if words[0] != "-"}  # type: ignore[misc]
"""The next step if repeating the call does not pay; transient kinds, and what is not known: give up."""
EXTRAS: Final = frozenset(
    (
        *("mcp", "notebook", "openai", "otel", "postgres", "prices", "redis", "shell", "spark", "train", "zstd"),
        *("agent-framework", "claude-agent-sdk", "crewai", "fastmcp", "google-adk"),
        *("langchain", "openai-agents", "pydantic-ai", "strands"),
    )
)
"""Those of this library that a user may lack; any other name is that of a distribution."""


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


class needs:  # noqa: N801  read as a statement
    """
    A block that imports packages of *extra*, one of this library's or a distribution (`openai-agents`).

        with needs("mcp"):
            from mcp import Client

    Raises MissingExtra if one of them cannot be imported; its message begins with *who*.
    """

    def __init__(self, extra: str, who: str = "this") -> None:
        self._extra = extra
        self._who = who

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not isinstance(error, ImportError) or isinstance(error, MissingExtra):
            return
        absent = isinstance(error, ModuleNotFoundError) and error.name is not None
        lacks = f"`{error.name}`" if absent else f"`{self._extra}`, which cannot be imported ({error})"
        told = MissingExtra(f"{self._who} needs {lacks}: {install(self._extra)}", name=error.name)
        raise told from (None if absent else error)


def install(extra: str) -> str:
    """
    Returns the command that installs *extra*, one of this library's or a distribution.
    """
    return f'pip install "toolcall-guardrails[{extra}]"' if extra in EXTRAS else f"pip install {extra}"


class ResponseFailed(GuardrailsError):
    """
    A model response that failed, was cut off, or is none at all; nothing of it was run or kept.

    *code* is the server's. *url* is who answered, *status* its HTTP status, *body* the first 200 bytes of what came,
    without control characters and secrets. Each is None if it is not known.
    """

    def __init__(
        self,
        message: str,
        code: str | None = None,
        *,
        url: str | None = None,
        status: int | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message if code is None else f"{code}: {message}")
        self.code = code
        self.url = url
        self.status = status
        self.body = body


def said_of(error: OSError) -> str:
    """
    Returns the words for a file, a pipe or a disk that fails.
    """
    if error.filename:
        return f"cannot use `{error.filename}`: {error.strerror}"
    return f"cannot go on: {error.strerror}" if error.strerror else str(error)
