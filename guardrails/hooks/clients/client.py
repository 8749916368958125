"""
The form of all clients: the events that they tell their hooks, and the answers to them. Claude Code has it; the others differ in part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Failed
from guardrails.hooks.results import beside, read_response
from guardrails.hooks.transcripts import Line


Answer = dict[str, Any]
Kind = Literal[
    "before", "after", "failed", "denied", "choice", "model", "prompt", "agent_stopped", "stopped", "started"
]
"""
A call is to be made; it was made, with a result or without one; a person, or the client, refused it. The model is to be asked,
and may have tools; a response of it came; the user has written; a sub-agent, and the model, has answered; the program has started.
"""


@dataclass(slots=True, kw_only=True)
class Event:
    """
    One event. A field that it does not say is None, or empty.
    """

    kind: Kind
    name: str
    """Its own name."""
    session: str
    agent: str | None
    """The sub-agent whose event it is; None: the session's own, or nobody says."""
    tool: str
    arguments: Any
    call_id: str | None
    response: Any
    """What the tool gave back, in the client's form."""
    answer: str
    """What the model said last."""
    cwd: str
    transcript: str
    """Path of the file of who tells it."""
    said: Mapping[str, Any]
    """All that it says."""


class Used(NamedTuple):
    """
    The usage of one response of a model.
    """

    key: str
    """What tells it from all others of its session."""
    model: str
    usage: Mapping[str, Any]
    at_ms: int | None = None


class Client:
    """
    A coding CLI: its events, and the answers to it as it reads them; `{}`: no opinion.
    """

    kinds: ClassVar[Mapping[str, Kind]]
    """The events that are answered."""
    tools: ClassVar[Mapping[str, Tool]]
    """The tools that it brings along."""
    marks: ClassVar[tuple[bytes, ...]] = ()
    """Of the lines of its transcript that tell what responses used."""
    stops: ClassVar[bool] = False
    """A run may be ended before a call; its person reads the digest."""
    hiding: ClassVar[frozenset[str]] = frozenset()
    """Tools that run a sub-agent whose events do not say that they are its."""

    def read(self, said: Mapping[str, Any]) -> Event | None:
        """
        Returns the event that is *said*; None if it is none that is answered. Raises ValueError if it names no tool.
        """

        def text(name: str) -> str:
            value = said.get(name)
            return value if isinstance(value, str) else ""

        kind = self.kinds.get(text("hook_event_name"))
        if kind is None:
            return None
        if kind in ("before", "after") and not text("tool_name"):
            raise ValueError("a call names no tool")
        return Event(
            kind=kind,
            name=text("hook_event_name"),
            session=text("session_id"),
            agent=text("agent_id") or None,
            tool=text("tool_name"),
            arguments=said.get("tool_input") or {},
            call_id=text("tool_use_id") or None,
            response=said.get("tool_response"),
            answer=text("last_assistant_message") or text("prompt_response"),
            cwd=text("cwd"),
            transcript=text("agent_transcript_path") or text("transcript_path"),
            said=said,
        )

    def tool_of(self, name: str) -> Tool | None:
        """
        Returns the declaration of one of its tools; None if nothing is known of it.
        """
        return self.tools.get(name)

    def outcome(self, event: Event) -> Any:
        """
        Returns the outcome of a call that was made: a value, or `Failed`.
        """
        if event.kind != "failed":
            return read_response(event.response)
        interrupted = bool(event.said.get("is_interrupt"))
        return Failed(str(event.said.get("error") or "it failed"), error_type="cancelled" if interrupted else None)

    def refuse(self, reason: str) -> Answer:
        """
        Returns the answer before a call that refuses it.
        """
        return specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=reason)

    def ask(self, reason: str) -> Answer:
        """
        Returns the answer before a call that a person may let run. A client that cannot ask refuses it.
        """
        return self.refuse(reason)

    def result(self, event: Event, envelope: Envelope, *, envelopes: bool = False) -> Answer:
        """
        Returns the answer after a call: what the model reads beside its result, or in place of one that was cut. With *envelopes* the texts
        of a server's result read as an envelope.
        """
        note = beside(envelope)
        return specific(event.name, additionalContext=note) if note else {}

    def used(self, lines: Iterable[Line], event: Event) -> list[Used]:
        """
        Returns the responses of the model that *event*, or the *lines* of its transcript, tell, oldest first: those that are whole.
        """
        return []


def specific(event: str, **said: Any) -> Answer:
    """
    Returns the answer to the *event* of that name.
    """
    return {"hookSpecificOutput": {"hookEventName": event, **said}}
