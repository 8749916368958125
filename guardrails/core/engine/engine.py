"""
The engine that drives a session: a live one, a replay of records, a judge of transcripts, a case of a policy.

Pure: an event and the states that it concerns go in, what happened comes out. Its caller reads the clock, keeps the
states and writes the records.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from guardrails.core.state.family import join, part
from guardrails.core.state.holds import NOTHING
from guardrails.core.state.scope_state import open_step
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import begin_life, number, time_of

from .chain import Chain
from .scopes import Scope, marks, seen


T = TypeVar("T")


class Event(Generic[T]):
    """
    Something that happens in a session when its clock says `now_ms`. A value; its result is a T.
    """

    __slots__ = ()

    now_ms: int

    @property
    def shared(self) -> bool:
        """
        Whether it happens in the session's scopes too.
        """
        return False

    def happen(self, engine: "Engine", state: SessionState, scopes: Sequence[Scope]) -> T:
        """
        Change the states. Returns the result of the event.
        """
        raise NotImplementedError


class Happened(NamedTuple):
    """
    The result of an event that is no call.
    """

    n: int
    """Its number in the session."""
    at_ms: int
    run: str
    """Which life of the session."""
    marks: dict[str, Any] | None
    """Its place among the events of other sessions."""
    limits: dict[str, int] | None = None
    """The amounts that it set or held, by limit."""
    refused: tuple[str, str] | None = None
    """(code, message) of why a model request is not to be made."""
    guess: tuple[int, int] = NOTHING
    """The guess of its use."""


NOT_AGAIN: Final = Happened(0, 0, "", None)
"""The result of an event that was told already: it is no event."""


class Engine:
    """
    The chain of the session *id*, and those of its *scopes*, each (name, id, chain).

    *child* says that the session belongs to a family, whose root's state is given last. *life* draws the name of a new
    life. Without *life* nobody records, and lives have no names.
    """

    __slots__ = ("chain", "child", "id", "life", "scopes")

    def __init__(
        self,
        chain: Chain,
        id: str = "",
        *,
        scopes: Sequence[tuple[str, str, Chain]] = (),
        child: bool = False,
        life: Callable[[], str] | None = None,
    ) -> None:
        self.chain = chain
        self.id = id
        self.scopes = tuple(scopes)
        self.child = child
        self.life = life

    def of(self, chain: Chain) -> "Engine":
        """
        Returns the same of another *chain*.
        """
        return self._again(chain, self.scopes)

    def within(self, scopes: Sequence[tuple[str, str, Chain]]) -> "Engine":
        """
        Returns the same in no *scopes* but these.
        """
        return self._again(self.chain, scopes)

    def _again(self, chain: Chain, scopes: Sequence[tuple[str, str, Chain]]) -> "Engine":
        return Engine(chain, self.id, scopes=scopes, child=self.child, life=self.life)

    def apply(self, event: Event[T], states: Sequence[SessionState], clocks: Sequence[int] | None = None) -> T:
        """
        Let *event* happen in *states*: the session's, those of its scopes if it is shared, and its family's root's.

        *clocks* are the times of the scopes, if each has its own.
        """
        state = states[0]
        if self.life is not None and not state.run:
            begin_life(state, self.life)
        if len(states) == 1:
            return event.happen(self, state, ())
        if self.child:
            return self._in_family(event, states, clocks)
        return event.happen(self, state, self._opened(event, states[1:], clocks))

    def _in_family(self, event: Event[T], states: Sequence[SessionState], clocks: Sequence[int] | None) -> T:
        state, root = states[0], states[-1]
        n = state.n
        join(state, root, self.id)
        try:
            return event.happen(self, state, self._opened(event, states[1:-1], clocks))
        finally:
            part(state, root, self.id, event=state.n != n)

    def look(
        self, look: Callable[[SessionState, int, Sequence[Scope]], T], states: Sequence[SessionState], now_ms: int
    ) -> T:
        """
        Returns the answer of *look* to the states of all that the session is in, at *now_ms* of its clock. It changes
        no state.
        """
        state, now = states[0], time_of(states[0], now_ms)
        scopes = seen(self.scopes, states[1 : 1 + len(self.scopes)], now_ms)
        if not self.child:
            return look(state, now, scopes)
        join(state, states[-1], self.id)
        try:
            return look(state, now, scopes)
        finally:
            part(state, states[-1], self.id, event=False)

    def marks(self, state: SessionState, scopes: Sequence[Scope]) -> dict[str, Any] | None:
        """
        Returns the place of the event that was just numbered among those of other sessions, if anybody records.
        """
        return None if self.life is None else marks(state, scopes)

    def happened(self, state: SessionState, scopes: Sequence[Scope], limits: dict[str, int] | None = None) -> Happened:
        """
        Returns the result of the event that is now numbered.
        """
        return Happened(number(state), state.now_ms, state.run, self.marks(state, scopes), limits)

    def _opened(
        self, event: Event[Any], states: Sequence[SessionState], clocks: Sequence[int] | None
    ) -> Sequence[Scope]:
        if not event.shared:
            return ()
        opened = []
        for index, ((name, own, chain), state) in enumerate(zip(self.scopes, states, strict=True)):
            if self.life is not None:
                begin_life(state, self.life)
            now = open_step(state, event.now_ms if clocks is None else clocks[index])
            opened.append(Scope(name, own, chain, state, now))
        return opened
