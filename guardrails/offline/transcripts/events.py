"""
A format is a generator of events: a call was `Made`, a result `Came`, a response `Used` tokens. One join makes calls of them.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from guardrails.core.values.types import ErrorType

from .calls import RecordedCall, Report, Session
from .results import settle


Values = Iterable[tuple[int, Any]]
"""The JSON values of a file with the line, from 1, that each begins on: one a line, or one in all."""


@dataclass(slots=True)
class Made:
    """
    A call was made. The join gives it its source, its place and, by *response*, its turn.
    """

    call: RecordedCall
    key: Hashable = None
    """By which its result is known, within its session. None: the call has all that there is of it."""
    response: Hashable = None
    """Of the model: calls of one response are one turn."""
    again: bool = False
    """The id may be used again; else a second call of one id in a session is the same one, told twice."""
    at: int | None = None
    """Its place in the session, if the format says it."""


@dataclass(slots=True)
class Came:
    """
    The result of the open call *key* came; of several the earliest is meant.
    """

    session: Session
    key: Hashable
    content: Any = None
    failed: bool | None = None
    """What the format says of it; None: nothing, the content is asked."""
    at_ms: int | None = None
    ms: int | None = None
    """How long the call took."""
    kind: ErrorType | None = None
    """Of the failure, if the content tells none."""
    shown: str | None = None
    """The part of the content that is not of this one run."""


@dataclass(slots=True)
class Used:
    """
    A response used tokens, and cost so much: told of its first call. Told again, the larger output counts.
    """

    session: Session
    response: Hashable
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


Event = Made | Came | Used


class Format(Protocol):
    """
    One format.
    """

    name: str
    """As a person would call it: `claude code session`."""

    def fits(self, value: Any) -> bool | None:
        """
        Returns whether a JSON value, a line or a whole document, is of this format. None: other formats have it too.
        """
        ...

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        """
        Yields what happened, in order, by the *values* that fit. *file* names a session that has no id; `report.broke` counts a line that is wrong.
        """
        ...


def joined(events: Iterable[Event], source: str) -> list[RecordedCall]:
    """
    Returns the calls of *events* in the order in which they were made, with their results.
    """
    calls: list[RecordedCall] = []
    places, ids = Counter[Session](), set[tuple[Session, str]]()
    firsts: defaultdict[Session, dict[Hashable, tuple[int, RecordedCall]]] = defaultdict(dict)
    """Of a session's responses the turn and the first call."""
    open_: defaultdict[tuple[Session, Hashable], deque[RecordedCall]] = defaultdict(deque)
    used: list[Used] = []
    for event in events:
        if isinstance(event, Made):
            call, session = event.call, event.call.session
            if call.id is not None and not event.again:
                if (session, call.id) in ids:
                    continue
                ids.add((session, call.id))
            call.source, call.call_index = call.source or source, places[session] if event.at is None else event.at
            places[session] = call.call_index + 1
            if event.response is not None:
                responses = firsts[session]
                call.turn = responses.setdefault(event.response, (len(responses) + 1, call))[0]
            if event.key is not None:
                call.has_result = False
                open_[session, event.key].append(call)
            calls.append(call)
        elif isinstance(event, Used):
            used.append(event)
        elif waiting := open_.get((event.session, event.key)):
            _end(waiting.popleft(), event)
    for event in used:
        if event.response in firsts[event.session]:
            _use(firsts[event.session][event.response][1], event)
    return calls


def _use(call: RecordedCall, used: Used) -> None:
    call.tokens_in = used.tokens_in if call.tokens_in is None else call.tokens_in
    if call.tokens_out is None or (used.tokens_out or 0) > call.tokens_out:
        call.tokens_out = used.tokens_out
    call.cost_usd = used.cost_usd if call.cost_usd is None else call.cost_usd


def _end(call: RecordedCall, came: Came) -> None:
    settle(call, came.content, failed=came.failed)
    if call.error_type == "other":
        call.error_type = came.kind or "other"
    if came.shown is not None:
        call.shows(came.shown)
    call.duration_ms = came.ms
    call.ended(came.at_ms)
