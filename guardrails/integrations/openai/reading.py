"""
The parts of a server's reply, read as the API has them: a reply of another shape is one clear error, never obeyed in part.

Honest servers differ in what they leave out, so that an absent field, or null, says nothing. A value of another type is not
guessed at.
"""

import json

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guardrails.core.text.control import cleaned, repaired
from guardrails.core.text.redaction import redact
from guardrails.core.values.errors import ResponseFailed


Message = dict[str, Any]
"""A message of chat.completions, an item of Responses."""

_REASON_CHARS: Final = 300
_CODE_CHARS: Final = 60
_CUT: Final = ("length", "content_filter")
_KINDS: Final = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", type(None): "null"}


class Cut(ResponseFailed):
    """
    A stream that ended before its response was complete.
    """

    def __init__(self) -> None:
        super().__init__("the stream ended before its response was complete")


@dataclass(slots=True)
class RequestedCall:
    """
    A tool call as the model wrote it: *arguments* is its text, read by nobody yet.
    """

    id: str
    tool: str
    arguments: Any
    written: Message = field(default_factory=dict, compare=False)
    """What else the server wrote of it: its item, or the fields beyond the wire's own."""


@dataclass(slots=True)
class Turn:
    """
    One model response, whatever its wire.
    """

    text: str
    """Its text blocks, joined."""
    calls: Sequence[RequestedCall]
    messages: Sequence[Message]
    """The conversation keeps them, with the ids of *calls*. They are empty if nothing is worth keeping."""
    usage: Any = None
    finish_reason: str | None = None
    """In the words of chat.completions."""

    def __post_init__(self) -> None:
        if self.finish_reason in _CUT and self.calls and not self.calls[-1].arguments.strip():
            # Cut before its first character, where no text would mean no arguments.
            self.calls = [*self.calls[:-1], replace(self.calls[-1], arguments="{")]


def part(of: Any, name: str) -> Any:
    """
    The field *name* of what came from a client or was written by hand.
    """
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def plain(value: Any, name: str) -> dict[str, Any]:
    """
    Returns the fields of *value*, an object of the client or a mapping that the error calls *name*.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if not hasattr(value, "to_dict"):
        raise ResponseFailed(f"{name} is {_kind_of(value)}, not an object")
    made: dict[str, Any] = value.to_dict(warnings=False)
    return made


def rows(of: Mapping[str, Any], name: str, each: str) -> list[dict[str, Any]]:
    """
    Returns the objects in the list *name*, none if it is absent. The error calls an item of it *each*.
    """
    value = of.get(name)
    if value is not None and not isinstance(value, list):
        raise ResponseFailed(f"`{name}` is {_kind_of(value)}, not a list")
    return [plain(one, each) for one in value or ()]


def text_in(of: Mapping[str, Any], name: str) -> str:
    """
    The text in the field *name*; empty if it is absent.
    """
    value = of.get(name)
    if value is not None and not isinstance(value, str):
        raise ResponseFailed(f"`{name}` is {_kind_of(value)}, not text")
    return value or ""


def written_in(of: Mapping[str, Any], name: str) -> str:
    """
    Returns the text that the model wrote for a tool. Some servers send the object that the text is of.
    """
    value = of.get(name)
    return json.dumps(value) if isinstance(value, (dict, list)) else text_in(of, name)


def calls_of_turn(written: Iterable[RequestedCall], n: int) -> list[RequestedCall]:
    """
    Returns the calls of one turn that were *written*, each once: a call that came twice, with its id, runs once. A call
    whose id is empty or taken gets one made of *n*, which is to be unique. No request could say otherwise which result
    is whose.
    """
    seen, made = set(), dict[str, RequestedCall]()
    for position, call in enumerate(written):
        if not call.tool:
            raise ResponseFailed("a tool call has no `name`")
        # A stream may cut a surrogate pair in two.
        call.arguments = cleaned(repaired(call.arguments))
        key = call.id or position, call.tool, call.arguments
        if key not in seen:
            seen.add(key)
            while call.id in made or not call.id:
                call.id = f"{call.id or 'call'}_{n}_{position}"
            made[call.id] = call
    return list(made.values())


def check_error(of: Mapping[str, Any]) -> None:
    """
    Raise the error that *of* holds in place of a response. Some servers always send an error, empty.
    """
    error = of.get("error") or (of if of.get("object") == "error" else None)
    if (isinstance(error, Mapping) and any(error.values())) or isinstance(error, str):
        raise ResponseFailed(*reason_of(error))


def reason_of(error: Any) -> tuple[str, str | None]:
    """
    Returns a server's reason for an *error*, in one line, and its code.
    """
    code = part(error, "code")
    said = error if isinstance(error, str) else part(error, "message") or json.dumps(error, default=str)
    return line_of(redact(str(said), _REASON_CHARS)), line_of(str(code or ""))[:_CODE_CHARS] or None


def line_of(said: str) -> str:
    """
    *said* in one line, without control characters: it must not steer a terminal.
    """
    return "".join(char for char in " ".join(said.split()) if char.isprintable())


def check_sendable(messages: Sequence[Message]) -> None:
    """
    Raise ResponseFailed if a request could not carry *messages*: once kept, no request of their conversation could be sent.
    """
    try:
        # A request holds them a few levels down.
        json.dumps([[[[messages]]]], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ResponseFailed(f"the response cannot be sent again: {error}") from None


def _kind_of(value: object) -> str:
    return _KINDS.get(type(value), "an object")
