"""
The parts of a server's reply, read as the API has them: a reply of another shape is one clear error, never obeyed in part.

Honest servers differ in what they leave out, so that an absent field, or null, says nothing. A value of another type is not
guessed at.
"""

import json

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from guardrails.core.text.control import sanitise
from guardrails.core.text.redaction import redact
from guardrails.core.values.errors import ResponseFailed


C = TypeVar("C")
Message = dict[str, Any]
"""A message of chat.completions, an item of Responses."""

_REASON_CHARS: Final = 300
_CODE_CHARS: Final = 60
_NO_REASON: Final = frozenset({"code", "type", "param", "object", "id", "event_id"})
"""Fields of an error that do not tell a person what went wrong."""
_KINDS: Final = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", type(None): "null"}


class Unreadable(ResponseFailed):
    """
    A reply that is no response of its API.
    """


class Cut(ResponseFailed):
    """
    A stream that ended before its response was complete.
    """

    def __init__(self) -> None:
        super().__init__("the stream ended before its response was complete")


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """
    A tool call as the model wrote it: *arguments* is its text, read by nobody yet.
    """

    id: str
    tool: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Turn:
    """
    One model response, whatever its wire.
    """

    text: str
    """Its text blocks, joined."""
    calls: tuple[RequestedCall, ...]
    messages: tuple[Message, ...]
    """The conversation keeps them, with the ids of *calls*. They are empty if nothing is worth keeping."""
    usage: Any = None
    finish_reason: str | None = None
    """In the words of chat.completions."""


class Reply(Protocol):
    """
    A model's response as it comes in, from one object or from the events of a stream.
    """

    usage: Any
    """As far as it is known by now; None where the server does not say."""

    def read(self, response: Any) -> str:
        """
        Take in a whole response; its text. Raises ResponseFailed if the server says that it failed.
        """
        ...

    def add(self, event: Any) -> str:
        """
        Take in one event of a stream; the text it brought. Raises as `read` does.
        """
        ...

    def turn(self, n: int, *, closed: bool | None) -> Turn:
        """
        The response for the loop. Calls without an id of their own get one made of *n*, which is to be unique. Whether the
        mark of its end has come closed a stream says *closed*, None if there was no stream. Raises ResponseFailed if a part
        of the response is missing.
        """
        ...


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
        raise Unreadable(f"{name} is {_kind_of(value)}, not an object")
    made: dict[str, Any] = value.to_dict(warnings=False)
    return made


def rows(of: Mapping[str, Any], name: str, each: str) -> list[dict[str, Any]]:
    """
    Returns the objects in the list *name*, none if it is absent. The error calls an item of it *each*.
    """
    value = of.get(name)
    if value is not None and not isinstance(value, list):
        raise Unreadable(f"`{name}` is {_kind_of(value)}, not a list")
    return [plain(one, each) for one in value or ()]


def text_in(of: Mapping[str, Any], name: str) -> str:
    """
    The text in the field *name*; empty if it is absent.
    """
    value = of.get(name)
    if value is not None and not isinstance(value, str):
        raise Unreadable(f"`{name}` is {_kind_of(value)}, not text")
    return value or ""


def written_in(of: Mapping[str, Any], name: str) -> str:
    """
    Returns the text that the model wrote for a tool. Some servers send the object that the text is of.
    """
    value = of.get(name)
    return json.dumps(value) if isinstance(value, (dict, list)) else text_in(of, name)


def encodable(text: str) -> str:
    """
    *text* as a request can carry it: a stream may cut a surrogate pair in two.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return sanitise(text)
    return text


def ids_of(own: Iterable[str], n: int) -> list[str]:
    """
    Returns the ids of one turn's calls: their *own* ones. A call whose id is empty or taken gets one made of *n*, which
    is to be unique. No request could say otherwise which result is whose.
    """
    ids: dict[str, None] = {}
    for position, id_ in enumerate(own):
        unique = id_ or f"call_{n}_{position}"
        while unique in ids:
            unique = f"{unique}_{n}_{position}"
        ids[unique] = None
    return list(ids)


def said_once(calls: Iterable[C], key: Callable[[C], tuple[str, ...]]) -> list[C]:
    """
    *calls* without those that came twice, by the *key* that says all of a call, its id first: nothing runs twice.
    """
    first: dict[Any, C] = {}
    for position, call in enumerate(calls):
        said = key(call)
        first.setdefault(said if said[0] else position, call)
    return list(first.values())


def check_error(of: Mapping[str, Any]) -> None:
    """
    Raise the error that *of* holds in place of a response. Some servers always send an error, empty.
    """
    error = of.get("error") or (of if of.get("object") == "error" else None)
    if (isinstance(error, Mapping) and any(error.values())) or isinstance(error, str):
        raise Unreadable(*reason_of(error))


def reason_of(error: Any) -> tuple[str, str | None]:
    """
    Returns a server's reason for an *error*, in one line, and its code.
    """
    fields = error if isinstance(error, Mapping) else {"message": error}
    texts = {name: said for name, said in fields.items() if isinstance(said, str) and said}
    other = (said for name, said in texts.items() if name not in _NO_REASON)
    said = texts.get("message") or next(other, "the server answers with an error")
    code = fields.get("code")
    shown = str(code) if isinstance(code, (str, int)) and not isinstance(code, bool) else ""
    return line_of(redact(said, _REASON_CHARS)), line_of(shown)[:_CODE_CHARS] or None


def line_of(said: str) -> str:
    """
    *said* in one line, without control characters: it must not steer a terminal.
    """
    return "".join(char for char in " ".join(said.split()) if char.isprintable())


def check_sendable(messages: Sequence[Message]) -> None:
    """
    Raise Unreadable if a request could not carry *messages*: once kept, no request of their conversation could be sent.
    """
    try:
        # A request holds them a few levels down.
        json.dumps([[[[messages]]]], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable(f"the response cannot be sent again: {error}") from None


def _kind_of(value: object) -> str:
    return _KINDS.get(type(value), "an object")
