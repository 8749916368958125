"""
The messages that the next request carries: each call with its result, and no control characters.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.text.control import sanitise
from guardrails.integrations.hosting import BROKEN_OFF

from .reading import Message, RequestedCall, part


if TYPE_CHECKING:
    from .loop import Wire

_SAID: Final = ("content", "output", "text", "refusal", "instructions")
"""Where the texts are: of a message, of a result, of a part of one, of a request."""
PUT_BACK: Final = "Earlier messages of this conversation were cut. What the tools did so far:\n"


def cleaned(message: Any) -> Any:
    """
    *message* with its texts sanitised, itself if there is nothing to do; the arguments of its calls stay as they are.
    """
    found = {}
    for name in _SAID if isinstance(message, dict) else ():
        said = message.get(name)
        clean = sanitise(said) if isinstance(said, str) else [*map(cleaned, said)] if isinstance(said, list) else said
        if clean != said:
            found[name] = clean
    return {**message, **found} if found else message


def mend(wire: "Wire", messages: list[Any]) -> None:
    """
    Answer the calls in *messages* that nobody answered, as a process leaves them behind that was killed, as broken off.
    """
    waiting, _ = _paired(wire, messages)
    for behind, call in reversed(waiting):
        place = behind
        # Behind the answers of its turn, and in Responses behind its other calls.
        while place < len(messages) and _of_turn(wire, messages[place]):
            place += 1
        messages.insert(place, wire.result(call, BROKEN_OFF.to_json()))


def compacted(wire: "Wire", messages: list[Any], kept: Sequence[Any], digest: Callable[[], str] | None) -> list[Any]:
    """
    The messages *kept* of all *messages*. If they differ, the text of *digest* is put in front, after the instructions. A
    result is dropped with its call; a call that is kept alone is answered.
    """
    if len(kept) == len(messages) and all(a is b or a == b for a, b in zip(kept, messages, strict=True)):
        return messages
    answered = {id(message) for message in _paired(wire, kept)[1]}
    made = [message for message in kept if wire.answers(message) is None or id(message) in answered]
    mend(wire, made)
    if digest is not None:
        roles = [part(message, "role") in ("system", "developer") for message in made]
        head = roles.index(False) if False in roles else len(roles)
        made.insert(head, {"role": "user", "content": PUT_BACK + digest()})
    return made


def _of_turn(wire: "Wire", message: Message) -> bool:
    return wire.answers(message) is not None or (wire.form == "responses" and any(wire.calls_of(message)))


def _paired(wire: "Wire", messages: Sequence[Any]) -> tuple[list[tuple[int, RequestedCall]], list[Any]]:
    """
    The calls that nobody answered, with the place behind their message, and the messages that answer a call.
    """
    waiting: list[tuple[int, RequestedCall]] = []
    answers, since = [], 0
    for place, message in enumerate(messages, 1):
        answered = wire.answers(message)
        if answered is None:
            # In chat.completions an answer follows its call at once.
            since = len(waiting) if wire.form == "chat" else 0
            waiting += [(place, call) for call in wire.calls_of(message)]
            continue
        # Servers use the same ids again: the latest call of an id is meant.
        found = next((one for one in reversed(waiting[since:]) if one[1].id == answered), None)
        if found is not None:
            waiting.remove(found)
            answers.append(message)
    return waiting, answers
