"""
The state of one session behind its store: read by the clock, changed by events that are recorded.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from guardrails.core.engine.chain import Chain, Plan
from guardrails.core.engine.decide import Decision
from guardrails.core.engine.exhaustion import least
from guardrails.core.engine.refusals import unreachable, unreadable
from guardrails.core.engine.scopes import Scope, apply, marks, named
from guardrails.core.engine.transitions import note, raise_limits
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.state.state import SessionState, time_of
from guardrails.core.values.errors import GuardrailsError, SessionError, StateUnreadable, StoreError
from guardrails.core.values.logs import log
from guardrails.core.values.session_id import scope_key
from guardrails.core.values.types import NO_TIME, ToolCall

from .recorder import Recorder, run_of


if TYPE_CHECKING:
    from guardrails.sinks import Sink
    from guardrails.stores.base import Store


T = TypeVar("T")
LATEST_S: Final = 9e12
"""Seconds since 1970 from which on a clock is not believed."""


def undecided(call: ToolCall, plan: Plan, now_ms: int, error: Exception, failed: str) -> Decision:
    """
    What follows for a call if the state or the time cannot be known: *error* is what the *failed* part raised.

    A state that cannot be read stays so: to run calls without its limits would never end, whatever `on_error` says.
    """
    decision = Decision(call, 0, now_ms, 0, errors=((failed, f"{type(error).__name__}: {error}"),))
    denial = unreadable(error) if isinstance(error, StateUnreadable) else unreachable(failed)
    if plan.deny_on_error or isinstance(error, StateUnreadable):
        decision.denials = (denial,)
        decision.envelope = Envelope.refusal(denial)
    return decision


class Ledger:
    """
    Where a session keeps what it has used, and how it is told of.

    A store that fails is a guard that fails, decided by the policy's `on_error`. Under `deny` a call is refused, and
    whatever else asks for the state raises what the store raised. Under `allow` the session goes on with what is known,
    which is nothing: calls run uncharged, what would change the state is not counted, and what is asked of it is
    answered as of a new session; the log says so each time. Limits are never moved unseen: `extend` and `child` raise
    under both, and whatever asks for a state that this version cannot read. A clock that fails loses nothing: the time stands still, and only calls are refused under `deny`.
    """

    def __init__(
        self,
        id: str,
        *,
        chain: Chain,
        store: "Store",
        sink: "Sink | None",
        clock: Callable[[], float],
        scopes: Sequence[tuple[str, str, Chain]] = (),
    ) -> None:
        self.id = id
        self._chain = chain
        self._keys = (id,)
        self._scopes = tuple(scopes)
        """(name, id, chain)"""
        self._all_keys = (id, *(scope_key(name, own) for name, own, _ in self._scopes))
        self._store = store
        self._clock = clock
        self._records = None if sink is None else Recorder(id, sink)

    def _now(self) -> int:
        """
        What the clock says, in milliseconds. Raises whatever the clock raises, ValueError where it says no time.
        """
        said = self._clock()
        if not 0 <= said < LATEST_S:
            raise ValueError(f"the clock says `{said!r:.40}`, which is no number of seconds since 1970")
        return round(said * 1000)

    def _time(self) -> int:
        """
        The same, `NO_TIME` where the clock fails: the session's time stands still then, and nothing is lost.
        """
        try:
            return self._now()
        except Exception as error:  # noqa: BLE001  whatever a clock raises
            log.error("clock failed: %s", error, extra={"session": self.id})
            return NO_TIME

    def _read(self, look: Callable[[SessionState, int], T]) -> T:
        now = self._time()
        try:
            return self._store.update(self._keys, lambda states: look(states[0], time_of(states[0], now)))
        except Exception as error:  # noqa: BLE001
            self._without_store(error)
        return look(SessionState(), now)

    def _look(self, look: Callable[[SessionState, int, Sequence[Scope]], T]) -> T:
        """
        What *look* sees in the state and those of the scopes, at what the clock says.
        """
        now = self._time()
        try:
            return self._store.update(self._all_keys, lambda states: look(states[0], now, self._shared(states)))
        except Exception as error:  # noqa: BLE001
            self._without_store(error)
        return look(SessionState(), now, ())

    def _shared(self, states: Sequence[SessionState]) -> Sequence[Scope]:
        """
        The scopes, of *states* as `_all_keys` names them.
        """
        return named(self._scopes, states[1:]) if self._scopes else ()

    def _event(
        self,
        event: str,
        step: Callable[[Chain, SessionState, int], Any],
        values: dict[str, Any] | None = None,
        *,
        needed: bool = False,
        shared: Callable[[Chain, SessionState, int], Any] | None = None,
        only: str | None = None,
    ) -> Any:
        """
        Change the state and record it; what else *step* made. Where nothing may go on without it, it is *needed*.

        *shared* changes the states of the scopes too, or of the *only* one.
        """
        now, chain = self._time(), self._chain

        def run(states: list[SessionState]) -> tuple[Any, int, str, dict[str, Any] | None]:
            state = states[0]
            if not state.run:
                self._begin_life(state)
            scopes: list[Scope] = []
            if shared is not None:
                scopes = [scope for scope in self._shared(states) if only in (None, scope.name)]
                self._begin_lives(scopes)
                apply(scopes, now, shared)
            made = step(chain, state, now)
            return made, state.now_ms, state.run, self._marks(state, scopes)

        try:
            made, at_ms, life, where = self._store.update(self._keys if shared is None else self._all_keys, run)
        except Exception as error:
            if needed:
                raise
            self._without_store(error)
            return None
        n, extra = made if isinstance(made, tuple) else (made, None)
        if self._records is not None:
            shown = dict(values or {})
            if cheapest := least(chain):
                shown["least"] = cheapest
            if extra is not None:
                shown.setdefault("limits", extra)
            self._records.event(event, life, n, at_ms, {**shown, **(where or {})})
        return extra

    def _extend_scope(self, scope: str, amounts: dict[str, int]) -> None:
        if scope not in {name for name, *_ in self._scopes}:
            raise SessionError(f"the session is in no scope `{scope}`")
        more = partial(raise_limits, amounts=amounts)
        step = lambda _, state, now: note(state, now)  # noqa: E731
        self._event("extend", step, {"amounts": amounts, "scope": scope}, needed=True, shared=more, only=scope)

    def _begin_life(self, state: SessionState) -> None:
        if self._records is not None:
            run_of(state)

    def _begin_lives(self, scopes: Sequence[Scope]) -> None:
        for scope in scopes:
            self._begin_life(scope.state)

    def _marks(self, state: SessionState, scopes: Sequence[Scope]) -> dict[str, Any] | None:
        return None if self._records is None or not (scopes or state.family) else marks(state, scopes)

    def _without_store(self, error: Exception) -> None:
        refused = isinstance(error, GuardrailsError) and not isinstance(error, StoreError)
        refused = refused or isinstance(error, StateUnreadable)
        if self._chain.on_error != "allow" or refused:
            raise error
        log.error("store failed: %s", error, extra={"session": self.id})
