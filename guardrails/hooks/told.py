"""
The words of all clients: the events that they tell their hooks, and the answers to them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import ErrorType, Failed


Event = Mapping[str, Any]
Answer = dict[str, Any]
Kind = Literal[
    "before",
    "after",
    "failed",
    "denied",
    "choice",
    "model",
    "turn",
    "prompt",
    "agent_started",
    "agent_stopped",
    "stopped",
    "started",
]
"""
A call is to be made; it was made, with a result or without one; a person, or the client, refused it. The model is to be asked,
and may have tools; a response of it came; all calls of a response are over; the user has written; a sub-agent begins, and ends; the model has answered; the
program has started.
"""
ENDS: Final = frozenset({"turn", "prompt", "stopped", "started", "agent_stopped"})
"""What comes only after all calls of who tells it are over, whether their end was told or not."""


@dataclass(slots=True, kw_only=True)
class Told:
    """
    One event. A field that it does not say is None, or empty.
    """

    kind: Kind
    event: str
    """Its own name."""
    session: str
    agent: str | None = None
    """The sub-agent whose event it is; None: the session's own, or nobody says."""
    tool: str = ""
    arguments: Any = None
    call_id: str | None = None
    response: Any = None
    """What the tool gave back, in the client's form."""
    outcome: Any = None
    """The same as the guards are to read it: a value, or `Failed`."""
    answer: str | None = None
    """What the model said last."""
    background: bool = False
    """Sub-agents run on though the model has answered."""
    cwd: str = ""
    transcript: str = ""
    """Path of the file of who tells it."""
    model: str = ""
    used: "Used | None" = None
    """What the response of the model used."""


class Used(NamedTuple):
    """
    The usage of one response of a model.
    """

    key: str
    """What tells it from all others of its session."""
    model: str
    usage: Mapping[str, Any]
    at_ms: int | None = None


@dataclass(slots=True)
class Said:
    """
    The answer to an event: for a call, the *envelope* of its refusal or of its result.
    """

    envelope: Envelope | None = None
    asks: bool = False
    """Before a call: a person may let it run."""
    digest: str | None = None
    """Before a call: the run is to be stopped, and this is its answer."""
    envelopes: bool = False
    """After a call: the result of a server's tool reads as an envelope, though there is nothing else to say."""
    final: bool = False
    """The model is to answer, and call nothing."""
    notice: str | None = None
    """What a person is to read."""


class Client(Protocol):
    """
    The events of one client, and the answers to it: a module of `clients`.
    """

    NAME: str
    EVENTS: tuple[str, ...]
    """Those that are answered."""
    BEFORE: str
    """The one before a call."""
    STOPS: bool
    """A run may be ended before a call, if the model was told that no more calls run and goes on; its person reads a digest."""
    HIDING: frozenset[str]
    """Tools that run a sub-agent whose events do not say that they are its."""

    @staticmethod
    def read(event: Event) -> Told | None:
        """
        Returns None if the event is none that is answered. Raises KeyError or TypeError if something is lacking.
        """
        ...

    @staticmethod
    def tool_of(name: str) -> Tool | None:
        """
        Returns the declaration of one of its tools. Returns None if that is nothing.
        """
        ...

    @staticmethod
    def write(told: Told, said: Said) -> Answer:
        """
        The answer as the client reads it; `{}`: no opinion.
        """
        ...

    @staticmethod
    def deny(reason: str) -> Answer:
        """
        The answer before a call that refuses it.
        """
        ...

    @staticmethod
    def used(lines: Iterable[bytes], told: Told) -> list[Used]:
        """
        The responses that *lines* of its transcript tell, oldest first: those that are whole.
        """
        ...

    @staticmethod
    def project(lines: Iterable[bytes]) -> str | None:
        """
        The folder in which the session began, as the first *lines* of its transcript tell it. Returns None if they do not.
        """
        ...

    @staticmethod
    def ended(line: bytes, call_id: str) -> bool:
        """
        Returns whether a *line* of its transcript says how the call ended.
        """
        ...


def text_of(event: Event, name: str) -> str:
    """
    The text that *event* has for *name*, which it must have. Raises KeyError or TypeError.
    """
    value = event[name]
    if not isinstance(value, str) or not value:
        raise TypeError(f"`{name}` is text that is not empty, not `{value!r:.40}`")
    return value


def optional(event: Event, name: str) -> str:
    """
    The same, empty if there is none.
    """
    value = event.get(name)
    return value if isinstance(value, str) else ""


def failed(error: object, *, interrupted: bool = False) -> Failed:
    """
    The outcome of a call that gave back an *error*.
    """
    kind: ErrorType | None = "cancelled" if interrupted else None
    return Failed(str(error or "it failed"), error_type=kind)
