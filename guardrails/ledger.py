"""
The state of one session behind its store: read by the clock, changed by events that are recorded.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .chain import Chain
from .errors import GuardrailsError, StoreError
from .logs import log
from .recorder import Recorder, run_of
from .state import SessionState, time_of


if TYPE_CHECKING:
    from .sinks import Sink
    from .stores.base import Store


T = TypeVar("T")


class Ledger:
    """
    Where a session keeps what it has used, and how it is told of.

    A store that fails is a guard that fails, decided by the policy's `on_error`. Under `deny` a call is refused, and
    whatever else asks for the state raises what the store raised. Under `allow` the session goes on with what is known,
    which is nothing: calls run uncharged, what would change the state is not counted, and what is asked of it is
    answered as of a new session; the log says so each time. Limits are never moved unseen: `extend` and `child` raise
    under both.
    """

    def __init__(
        self,
        id: str,
        *,
        chain: Chain,
        store: "Store",
        sink: "Sink | None",
        clock: Callable[[], float],
    ) -> None:
        self.id = id
        self._chain = chain
        self._keys = (id,)
        self._store = store
        self._clock = clock
        self._records = None if sink is None else Recorder(id, sink)

    def _now(self) -> int:
        return round(self._clock() * 1000)

    def _read(self, look: Callable[[SessionState, int], T]) -> T:
        now = self._now()
        try:
            return self._store.update(self._keys, lambda states: look(states[0], time_of(states[0], now)))
        except Exception as error:  # noqa: BLE001
            self._without_store(error)
        return look(SessionState(), now)

    def _event(
        self,
        event: str,
        step: Callable[[Chain, SessionState, int], Any],
        values: dict[str, Any] | None = None,
        *,
        needed: bool = False,
    ) -> Any:
        """
        Change the state and record it; what else *step* made. Where nothing may go on without it, it is *needed*.
        """
        now, chain = self._now(), self._chain

        def run(states: list[SessionState]) -> tuple[Any, int, str]:
            state = states[0]
            if not state.run:
                self._begin_life(state)
            made = step(chain, state, now)
            return made, state.now_ms, state.run

        try:
            made, at_ms, life = self._store.update(self._keys, run)
        except Exception as error:
            if needed:
                raise
            self._without_store(error)
            return None
        n, extra = made if isinstance(made, tuple) else (made, None)
        if self._records is not None:
            shown = dict(values or {})
            if extra is not None:
                shown.setdefault("limits", extra)
            self._records.event(event, life, n, at_ms, shown)
        return extra

    def _begin_life(self, state: SessionState) -> None:
        if self._records is not None:
            run_of(state)

    def _without_store(self, error: Exception) -> None:
        refused = isinstance(error, GuardrailsError) and not isinstance(error, StoreError)
        if self._chain.on_error != "allow" or refused:
            raise error
        log.error("store failed: %s", error, extra={"session": self.id})
