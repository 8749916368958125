"""
Reads a server's reply as the API has it: a reply of another shape is told to be one, and never obeyed in part.

Honest servers differ in what they leave out, so that an absent field, or null, is nothing said. A value of another type is
not guessed at.
"""

import json
import sys

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from guardrails.core.text.control import sanitise
from guardrails.core.text.redaction import redact
from guardrails.core.values.errors import ResponseFailed, SessionError
from guardrails.core.values.usage import read_usage

from .wire import part


C = TypeVar("C")

_REASON_CHARS: Final = 300
_CODE_CHARS: Final = 60
_NO_REASON: Final = frozenset({"code", "type", "param", "object", "id", "event_id"})
"""Fields of an error that do not tell a person what went wrong."""
_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "text"),
    ((list, tuple), "a list"),
    (type(None), "null"),
)


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


def cut_off(error: BaseException, *, streamed: bool) -> bool:
    """
    Returns whether *error* says that a stream ended early: without its end, or because the connection was lost.
    """
    openai = sys.modules.get("openai")
    if not streamed or openai is None:
        return isinstance(error, Cut)
    lost = isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError)
    return lost or isinstance(error, Cut)


def kind_of(value: object) -> str:
    """
    Returns the kind of *value*, for a message.
    """
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "an object")


def checked_object(value: Any, name: str) -> Any:
    """
    *value*, an object of the client or a mapping.
    """
    if kind_of(value) != "an object":
        raise Unreadable(f"{name} is {kind_of(value)}, not an object")
    return value


def list_in(of: Any, name: str) -> Sequence[Any]:
    """
    The list in the field *name*; empty if it is absent.
    """
    value = part(of, name)
    if value is not None and not isinstance(value, (list, tuple)):
        raise Unreadable(f"`{name}` is {kind_of(value)}, not a list")
    return value or ()


def text_in(of: Any, name: str) -> str:
    """
    The text in the field *name*; empty if it is absent.
    """
    value = part(of, name)
    if value is not None and not isinstance(value, str):
        raise Unreadable(f"`{name}` is {kind_of(value)}, not text")
    return value or ""


def named_in(call: Any) -> str:
    """
    The name of the tool that *call* asks for.
    """
    name = text_in(call, "name")
    if not name:
        raise Unreadable("a tool call has no `name`")
    return name


def told_once(calls: Iterable[C], key: Callable[[C], tuple[str, ...]]) -> list[C]:
    """
    *calls* without those that came twice, by the *key* that says all of a call, its id first: nothing runs twice.
    """
    first: dict[tuple[str, ...], C] = {}
    for position, call in enumerate(calls):
        said = key(call)
        first.setdefault(said if said[0] else ("", str(position)), call)
    return list(first.values())


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


def written_in(of: Any, name: str) -> str:
    """
    Returns the text that the model wrote for a tool. Some servers send the object that the text is of.
    """
    value = part(of, name)
    if value is None:
        return ""
    try:
        return encodable(value if isinstance(value, str) else json.dumps(value))
    except (ValueError, TypeError, RecursionError):
        raise Unreadable(f"`{name}` is {kind_of(value)} that is no JSON") from None


def encodable(text: str) -> str:
    """
    *text* as a request can carry it: a stream may cut a surrogate pair in two.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return sanitise(text)
    return text


def is_json(text: str) -> bool:
    """
    Returns whether *text* is JSON that is whole; no text at all is a call without arguments.
    """
    try:
        json.loads(text or "null")
    except (ValueError, RecursionError):
        return False
    return True


def check_error(of: Any) -> None:
    """
    Raise the error that *of* holds in place of a response.
    """
    error = error_in(of) or (of if part(of, "object") == "error" else None)
    if error:
        raise Unreadable(*reason_of(error))


def error_in(of: Any) -> Any:
    """
    Returns the value of the field *error* of *of*, None if it is empty. Some servers always send an object there,
    empty.
    """
    error = part(of, "error")
    return error if any(_fields(error).values()) else None


def reason_of(error: Any) -> tuple[str, str | None]:
    """
    Returns a server's reason for an *error*, in one line, and its code.
    """
    texts = {name: said for name, said in _fields(error).items() if isinstance(said, str) and said}
    other = (said for name, said in texts.items() if name not in _NO_REASON)
    said = texts.get("message") or next(other, "the server answers with an error")
    code = part(error, "code")
    coded = isinstance(code, (str, int)) and not isinstance(code, bool) and code != ""
    shown = line_of(str(code))[:_CODE_CHARS] if coded else None
    return line_of(redact(said, _REASON_CHARS)), shown


def _fields(error: Any) -> Mapping[str, Any]:
    """
    Returns the fields of an *error*, by name.
    """
    if isinstance(error, Mapping):
        return error
    return dict(error) if hasattr(error, "model_extra") else {"message": error}


def line_of(said: str) -> str:
    """
    *said* in one line, without control characters: it must not steer a terminal.
    """
    return "".join(char for char in " ".join(said.split()) if char.isprintable())


def readable_usage(usage: Any) -> Any:
    """
    *usage* if it can be read, else None: the response was used all the same, and is not free.
    """
    try:
        read_usage(usage)
    except SessionError:
        return None
    return usage


def check_sendable(messages: Sequence[Mapping[str, Any]]) -> None:
    """
    Raise Unreadable if a request could not carry *messages*: once kept, no request of their conversation could be sent.
    """
    try:
        # A request holds them a few levels down.
        json.dumps([[[[messages]]]], ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable(f"the response cannot be sent again: {error}") from None
