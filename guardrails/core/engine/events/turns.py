"""
Events of the model in a session: its requests, its responses and their turns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.engine import NOT_AGAIN, Engine, Event, Happened
from guardrails.core.engine.exhaustion import exhaustion, failed, note_turn, spent
from guardrails.core.engine.scopes import Scope, exhausted_by, free_all, hold_all, note_all, unfitting
from guardrails.core.state.admissions import ADMISSION_MS
from guardrails.core.state.holds import NOTHING, RESPONSES, average, fitting, lapse
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import (
    charge,
    count_request,
    exhaust,
    go_on,
    keep_cause,
    number,
    set_meters,
    time_of,
    touch,
)
from guardrails.core.state.turns import begin_turn, end_turn, is_told, note_told


@dataclass(slots=True)
class Turn(Event[Happened]):
    """
    A model response came, with *calls* calls (0: unknown): the present turn is over, and the next begins.

    *uncharged*: nobody will charge it, and what was guessed of its request comes back. One that was told by the same *key*
    before is no event.
    """

    now_ms: int
    calls: int = 0
    uncharged: bool = False
    key: bytes | None = None
    """`KEY_BYTES` of a hash, the lowest bit 0."""

    @property
    def shared(self) -> bool:
        return self.uncharged

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        if is_told(state, self.key):
            return NOT_AGAIN
        note_told(state, self.key)
        if self.uncharged:
            free_all(engine.id, state, scopes, fitting(state, 0, 0, guesses=True) or "")
            for scope in scopes:
                number(scope.state)
        now = touch(state, self.now_ms, responds=True)
        cause = exhaustion(engine.chain, state, now)
        if cause is not None:
            keep_cause(state, cause)
        end_turn(state)
        begin_turn(state, self.calls)
        return engine.happened(state, scopes)


class Counted(Event[Happened]):
    """
    Something that is counted in the session and in each of its scopes alike.
    """

    __slots__ = ()

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        for scope in scopes:
            self.count(scope.chain, scope.state, touch(scope.state, scope.now_ms))
            number(scope.state)
            go_on(scope.state)
        self.count(engine.chain, state, touch(state, self.now_ms, responds=isinstance(self, Charge)))
        return engine.happened(state, scopes)

    def count(self, chain: Chain, state: SessionState, now: int) -> None:
        """
        Count it in one *state*, whose time is *now*.
        """
        raise NotImplementedError


@dataclass(slots=True)
class Charge(Counted):
    """
    A response of *model* is to be paid, *cost* in micro-dollars. A *cost* of None says that the price is unknown or, if
    *model* is None too, that nobody asked for it. *untold* says that the response came whole and did not tell its
    usage. A response that was charged by the same *key* before is no event.
    """

    now_ms: int
    cost: int | None
    tokens: int
    model: str | None = None
    untold: bool = False
    request: int | None = None
    """The number of the request that it settles; None: of those that are open the one that fits, 0: none."""
    key: bytes | None = None
    """`KEY_BYTES` of a hash, the lowest bit 0."""

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        if is_told(state, self.key, charged=True):
            return NOT_AGAIN
        note_told(state, self.key, charged=True)
        if state.holds:
            key = str(self.request) if self.request is not None else fitting(state, self.cost or 0, self.tokens)
            free_all(engine.id, state, scopes, key or "")
        if self.cost or self.tokens:
            note_all(engine.chain, state, scopes, RESPONSES, self.cost or 0, self.tokens)
        return Counted.happen(self, engine, state, scopes)

    def count(self, chain: Chain, state: SessionState, now: int) -> None:
        charge(state, self.cost, self.tokens)
        note_turn(chain, state, self.cost)
        if not ended(chain, state, now):
            for usage in chain.usages:
                _count(chain, state, usage, self.tokens, now)
            said = self.cost, self.tokens, self.model, self.untold
            for response in chain.responses:
                _count(chain, state, response, *said)
            ended(chain, state, now)


@dataclass(slots=True)
class Request(Counted):
    """
    A model request starts, and holds its *estimate* for *lasts_ms* or until it is charged, if that fits. None: nobody said,
    and it is as much as responses have used on average.
    """

    now_ms: int
    estimate: tuple[int, int] | None = None
    """Micro-dollars, tokens."""
    lasts_ms: int = ADMISSION_MS
    guess: tuple[int, int] | None = None
    """The guess by the record."""

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        now, key = time_of(state, self.now_ms), str(state.n + 1)
        refused = exhausted_by(engine.chain, state, now, scopes)
        guess, held = self.guess or NOTHING, NOTHING
        if state.holds:
            lapse(state, now)
        if engine.chain.reserves or any(scope.chain.reserves for scope in scopes):
            if self.guess is None and self.estimate is None:
                known = next((each for each in (state, *(s.state for s in scopes)) if RESPONSES in each.used), state)
                guess = average(known, RESPONSES)
            held = self.estimate or guess
            refused = refused or unfitting(engine.chain, state, scopes, self.estimate or NOTHING, guess)
        made = Counted.happen(self, engine, state, scopes)
        if refused is None and held != NOTHING:
            hold_all(engine.id, state, scopes, key, held, lasts_ms=self.lasts_ms, said=self.estimate is not None)
        return made._replace(refused=refused, guess=guess) if refused or guess != NOTHING else made

    def count(self, chain: Chain, state: SessionState, now: int) -> None:
        count_request(state)
        # A fuse that another session of the family has blown stays blown.
        if not ended(chain, state, now):
            for request in chain.requests:
                _count(chain, state, request, now)
            if chain.requests:
                ended(chain, state, now)


@dataclass(slots=True)
class Drop(Counted):
    """
    The model request number *request* came to nothing: what it holds comes back.
    """

    now_ms: int
    request: int

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        free_all(engine.id, state, scopes, str(self.request))
        return Counted.happen(self, engine, state, scopes)

    def count(self, chain: Chain, state: SessionState, now: int) -> None:
        """
        Count nothing.
        """


def _count(chain: Chain, state: SessionState, method: Callable[..., Mapping[str, int]], *facts: object) -> None:
    """
    Let a guard count what happened; a guard that fails may end the session.
    """
    try:
        set_meters(state, method(state, *facts))
    except Exception:  # noqa: BLE001
        cause = failed(chain, method)
        if cause is not None:
            exhaust(state, chain.worded(cause))


def ended(chain: Chain, state: SessionState, now_ms: int) -> bool:
    """
    End the session if something is used up; whether it is.
    """
    cause = spent(chain, state, now_ms)
    if cause is not None:
        exhaust(state, cause)
    return cause is not None
