"""
A format is a generator of events: a call was `Made`, a result `Came`, a response `Used` tokens. One join makes calls of them.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
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
    The result of the open call *key* came.
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
    then: Callable[[RecordedCall], object] | None = None
    """In place of the above: what puts the result into its call."""


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


@dataclass(slots=True)
class _Joined:
    """
    One session.
    """

    count: int = 0
    turns: dict[Hashable, int] = field(default_factory=dict)
    first: dict[Hashable, RecordedCall] = field(default_factory=dict)
    """By response."""
    used: dict[Hashable, Used] = field(default_factory=dict)
    """By response, before its first call."""
    open: dict[Hashable, RecordedCall] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)


def joined(events: Iterable[Event], source: str) -> Iterator[RecordedCall]:
    """
    Yields the calls of *events*, each when it was made: its result may come later. Within a session they are in order.

    A key that is still open names the new call from there on; the earlier one stays without a result.
    """
    sessions: dict[Session, _Joined] = {}
    for event in events:
        of = event.call.session if type(event) is Made else event.session  # type: ignore[union-attr]
        session = sessions.get(of)
        if session is None:
            session = sessions[of] = _Joined()
        if type(event) is Made:
            call = event.call
            if call.id is not None and not event.again:
                if call.id in session.ids:
                    continue
                session.ids.add(call.id)
            call.source = call.source or source
            _place(session, event, call)
            yield call
        elif type(event) is Came:
            found = session.open.pop(event.key, None)
            if found is not None:
                _end(found, event)
        elif type(event) is Used:
            first = session.first.get(event.response)
            if first is None:
                session.used[event.response] = event
            else:
                _use(first, event)


def _place(session: _Joined, event: Made, call: RecordedCall) -> None:
    call.call_index = session.count if event.at is None else event.at
    session.count = call.call_index + 1
    if event.response is not None:
        call.turn = session.turns.setdefault(event.response, len(session.turns) + 1)
        if event.response not in session.first:
            session.first[event.response] = call
            used = session.used.pop(event.response, None)
            if used is not None:
                _use(call, used)
    if event.key is not None:
        call.has_result = False
        session.open[event.key] = call


def _use(call: RecordedCall, used: Used) -> None:
    if call.tokens_in is None:
        call.tokens_in = used.tokens_in
    if call.tokens_out is None or (used.tokens_out or 0) > call.tokens_out:
        call.tokens_out = used.tokens_out
    if call.cost_usd is None:
        call.cost_usd = used.cost_usd


def _end(call: RecordedCall, came: Came) -> None:
    if came.then is not None:
        came.then(call)
        return
    settle(call, came.content, failed=came.failed)
    if call.error_type == "other":
        call.error_type = came.kind or "other"
    if came.shown is not None:
        call.shows(came.shown)
    call.duration_ms = came.ms
    call.ended(came.at_ms)
