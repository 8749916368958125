"""
The messages that the next request carries: all, the new ones, or what a compaction left and the digest.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.text.control import sanitise

from .wire import Message, Sent, Wire, part


Compact = Callable[[list[Any]], Any]
"""Of the messages in use, those to go on with; the same ones where there is nothing to do."""

BROKEN_OFF: Final = Envelope.error("cancelled", "this call was broken off before it gave a result")
_SAID: Final = ("content", "output", "text", "refusal", "instructions")
"""Where the texts are: of a message, of a result, of a part of one, of a request."""
PUT_BACK: Final = "Earlier messages of this conversation were cut. What the tools did so far:\n"


class Context:
    """
    The messages of one loop on *wire*. If *messages* is a list, it grows in place by `append` and `extend`, and holds
    everything.

    A call in it that nobody answered, as a process leaves behind that was killed, is answered as broken off.
    """

    def __init__(self, wire: Wire, messages: Iterable[Any], previous: str | None = None) -> None:
        self._wire = wire
        self.whole: list[Any] = messages if isinstance(messages, list) else list(messages)
        for place, missing in reversed(_unanswered(wire, self.whole)):
            self.whole.insert(place, missing)
        self._used = self.whole
        self._digest: Message | None = None
        self._known = 0
        self._previous = previous

    @property
    def asked(self) -> bool:
        """
        Returns whether the latest message is the user's.
        """
        return bool(self.whole) and part(self.whole[-1], "role") == "user"

    def append(self, message: Message) -> None:
        """
        Go on with *message*.
        """
        self.extend([message])

    def extend(self, messages: Sequence[Message]) -> None:
        """
        Go on with *messages*, which belong together: a list that keeps them on a disk keeps all of them or none.
        """
        if len(messages) == 1:
            self.whole.append(messages[0])
        elif messages:
            self.whole.extend(messages)
        if self._used is not self.whole:
            self._used.extend(messages)

    def answered(self, response_id: str | None) -> None:
        """
        The server has answered by the response of this id, which the conversation has by now.
        """
        if self._wire.chained:
            self._previous, self._known = response_id, len(self._used) if response_id else 0

    def next(self) -> Sent:
        """
        Returns the messages of the next request, without control characters in their texts.
        """
        if self._previous is not None:
            return Sent([*map(cleaned, self._used[self._known :])], self._previous)
        head = 0 if self._digest is None else sum(1 for _ in _leading(self._used))
        digest = [] if self._digest is None else [self._digest]
        return Sent([*map(cleaned, [*self._used[:head], *digest, *self._used[head:]])])

    def used(self) -> list[Any]:
        """
        The messages in use, to be compacted; the digest is not among them.
        """
        return list(self._used)

    def compacted(self, kept: Sequence[Any], digest: Callable[[], str] | None) -> None:
        """
        Go on with the messages *kept*. If they differ from those before, the text of *digest* is put in front, after
        the instructions. A result is dropped with its call; a call that is kept alone is answered.
        """
        if len(kept) == len(self._used) and all(a is b or a == b for a, b in zip(kept, self._used, strict=True)):
            return
        answered = {id(message) for message in _paired(self._wire, self._used)[1]}
        still = {id(message) for message in _paired(self._wire, kept)[1]}
        used = [message for message in kept if id(message) in still or id(message) not in answered]
        for place, missing in reversed(_unanswered(self._wire, used)):
            used.insert(place, missing)
        self._used = used
        self._previous, self._known = None, 0
        self._digest = None if digest is None else {"role": "user", "content": PUT_BACK + digest()}


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


def _leading(messages: Iterable[Any]) -> Iterable[Any]:
    for message in messages:
        if part(message, "role") not in ("system", "developer"):
            return
        yield message


def _unanswered(wire: Wire, messages: Sequence[Any]) -> list[tuple[int, Message]]:
    """
    Returns the answers to calls that nobody answered, and their place: behind the answers of their turn. So the last
    ones are appended.
    """
    waiting, _ = _paired(wire, messages)
    return [(_behind(wire, messages, place), wire.result(call, BROKEN_OFF.to_json())) for place, call in waiting]


def _behind(wire: Wire, messages: Sequence[Any], place: int) -> int:
    for at in range(place + 1, len(messages)):
        together = wire.form == "responses" and any(True for _ in wire.calls_of(messages[at]))
        if wire.answers(messages[at]) is None and not together:
            return at
    return len(messages)


def _paired(wire: Wire, messages: Sequence[Any]) -> tuple[list[tuple[int, Any]], list[Any]]:
    """
    The calls that nobody answered, with the place of their message, and the messages that answer a call.
    """
    waiting: list[tuple[int, Any]] = []
    answers: list[Any] = []
    # In chat.completions an answer follows its call at once; servers use the same ids again and again.
    since = 0
    for place, message in enumerate(messages):
        answered = wire.answers(message)
        if answered is None:
            since = len(waiting) if wire.form == "chat" else 0
            waiting += [(place, call) for call in wire.calls_of(message)]
            continue
        found = next((at for at in range(len(waiting) - 1, since - 1, -1) if waiting[at][1].id == answered), None)
        if found is not None:
            del waiting[found]
            answers.append(message)
    return waiting, answers
