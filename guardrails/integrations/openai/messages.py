"""
The messages that the next request carries: each call with its result, and no control characters.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.text.control import sanitise
from guardrails.integrations.hosting import BROKEN_OFF

from .reading import RequestedCall, part


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
    whole = _answered(wire, messages, strays=True)
    if len(whole) > len(messages):
        messages[:] = whole


def compacted(wire: "Wire", messages: list[Any], kept: Sequence[Any], digest: Callable[[], str] | None) -> list[Any]:
    """
    The messages *kept* of all *messages*. If they differ, the text of *digest* is put in front, after the instructions. A
    result is dropped with its call; a call that is kept alone is answered.
    """
    if [*kept] == messages:
        return messages
    made = _answered(wire, kept, strays=False)
    if digest is not None:
        roles = [part(message, "role") in ("system", "developer") for message in made]
        head = roles.index(False) if False in roles else len(roles)
        made.insert(head, {"role": "user", "content": PUT_BACK + digest()})
    return made


def _answered(wire: "Wire", messages: Sequence[Any], *, strays: bool) -> list[Any]:
    """
    Returns *messages* with a result of each call, which says of a lost one that it was broken off. Results without a call are
    kept as *strays*, or dropped.
    """
    made, waiting = list[Any](), list[RequestedCall]()

    def give_up() -> None:
        made.extend(wire.result(lost, BROKEN_OFF.to_json()) for lost in waiting)
        waiting.clear()

    for message in messages:
        answered = wire.answers(message)
        # Servers use the same ids again: the latest call of an id is meant.
        call = next((one for one in reversed(waiting) if one.id == answered), None)
        if call is not None:
            waiting.remove(call)
        elif answered is None:
            # In chat.completions an answer follows its call at once, in Responses it may come later.
            if wire.form == "chat":
                give_up()
            waiting += wire.calls_of(message)
        elif not strays:
            continue
        made.append(message)
    give_up()
    return made
