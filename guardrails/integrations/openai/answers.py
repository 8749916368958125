"""
The answers to the calls of a turn: results as they come, and refusals of calls that are not run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.types import Denial

from .context import BROKEN_OFF
from .loop import RequestedCall
from .wire import Message, Wire


def limited(envelope: Envelope, limit: Denial | None) -> Envelope:
    """
    *envelope* as that of the last result before the *limit* of a loop; what it says of another limit stays.
    """
    if limit is None or envelope.limit_message is not None:
        return envelope
    made = envelope.copy()
    made.limit(limit.message, limit.hint, limit.code)
    return made


@dataclass(slots=True)
class Answers:
    """
    The results of one turn's calls: each goes into the conversation as soon as those before it have.
    """

    requested: tuple[RequestedCall, ...]
    _wire: Wire
    _append: Callable[[Message], None]
    calls: tuple[RequestedCall, ...]
    """Those to run."""
    limit: Denial | None = None
    """What the result of the last of them says, if no more calls will be run after them."""
    _given: dict[int, str] = field(default_factory=dict)
    _said: int = 0

    def give(self, position: int, envelope: Envelope) -> None:
        """
        The call at *position* came to *envelope*.
        """
        last = self.limit is not None and position == len(self.calls) - 1
        self._given[position] = (limited(envelope, self.limit) if last else envelope).to_json()
        while self._said in self._given:
            self._say()

    def break_off(self) -> None:
        """
        Nothing more comes: the calls without a result are answered all the same.
        """
        while self._said < len(self.requested):
            self._say()

    def _say(self) -> None:
        # Given up only once it is kept: a list that could not write it may the next time.
        text = self._given.get(self._said) or BROKEN_OFF.to_json()
        self._append(self._wire.result(self.requested[self._said], text))
        self._given.pop(self._said, None)
        self._said += 1
