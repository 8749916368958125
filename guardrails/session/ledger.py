"""
The state of one session behind its store: read by the clock, changed by events that are recorded.
"""

import threading

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Decision, Happened
from guardrails.core.engine import Engine
from guardrails.core.events import ITERATIONS, event, is_shared
from guardrails.core.guards.budget import unpriced
from guardrails.core.refusals import unreachable, unreadable
from guardrails.core.scopes import Scope
from guardrails.core.state import SessionState
from guardrails.core.values.errors import GuardrailsError, SessionError, StateUnreadable, StoreError
from guardrails.core.values.logs import log
from guardrails.core.values.session_id import scope_key
from guardrails.core.values.types import NO_TIME, Denial, ToolCall

from .recorder import Recorder, life
from .terms import Lay, Terms, laid_on


if TYPE_CHECKING:
    from guardrails.sinks import Sink
    from guardrails.stores.base import Store


P = ParamSpec("P")
T = TypeVar("T")
LATEST_S: Final = 9e12
"""Seconds since 1970 from which on a clock is not believed."""


def undecided(
    session_id: str, call: ToolCall, plan: Plan, now_ms: int, stop: Denial | None, error: Exception, failed: str
) -> Decision:
    """
    Returns the decision on a call if the state or the time cannot be known. The *failed* part raised *error*.

    A state that cannot be read stays so. Such calls are refused under every `on_error`, since calls without its limits
    would never end.
    """
    denial = stop or (unreadable(error) if isinstance(error, StateUnreadable) else None)
    if denial is None and plan.deny_on_error:
        denial = unreachable(failed)
    return Decision.unknown(call, now_ms, session_id, (failed, f"{type(error).__name__}: {error}"), denial)


class Ledger:
    """
    Keeps the amounts that a session has used, and tells of them.

    A store that fails is a guard that fails, decided by the policy's `on_error`. Under `deny` a call is refused, and
    every other question about the state raises the store's error. Under `allow` the session goes on as if new: calls
    run uncharged, and changes of the state are not counted. Questions about the state are answered as for a new
    session. The log says so each time. Limits are never moved unseen: `extend` and `child` raise under both. So does
    every question about a state that this version cannot read. A clock that fails loses nothing: the time stands still,
    and only calls are refused under `deny`.
    """

    _parent: "Ledger | None" = None
    _share: float | None = None
    """Of what the parent has left; None: it has no parent, or all that it is to have."""

    policy: Terms

    def __init__(
        self,
        id: str,
        *,
        chain: Chain,
        laid: tuple[Lay, ...] = (),
        store: "Store",
        sink: "Sink | None",
        clock: Callable[[], float],
        scopes: Sequence[tuple[str, str, Chain]] = (),
        root: str | None = None,
    ) -> None:
        self.id = id
        family = () if root is None else (root,)
        self._keys = (id, *family)
        self._all_keys = (id, *(scope_key(name, own) for name, own, _ in scopes), *family)
        self._store = store
        self._blocks = bool(getattr(store, "blocks", False)) or bool(getattr(sink, "blocks", False))
        self._clock = clock
        self._records = None if sink is None else Recorder(id, sink)
        named = None if sink is None else life
        child = root is not None
        self._engine = Engine(laid_on(chain, laid), id, scopes=scopes, child=child, life=named)
        self._base: Chain | None = None if self.policy.changed else chain
        """That of the policy, on which this session has *laid* its own; None: it has to tell which."""
        self._laid = laid
        self._adopting = threading.RLock()
        self._digest: str | None = None

    async def off_loop(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """
        Returns the result of `function(*args, **kwargs)`, for example `session.charge`, without holding up the event
        loop. It runs in a thread if the store may wait for a file, else right here. It is done to its end even if the
        task is cancelled meanwhile. A call that it has claimed is then let go.
        """
        if not self._blocks:
            return function(*args, **kwargs)
        return await self._away(partial(function, *args, **kwargs), self._let_go)

    def _let_go(self, made: object) -> None:
        """
        Take back what *made* holds, the result of a step that was cancelled: nobody got it.
        """

    async def _away(self, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        from .off_loop import away

        return await away(self._store, work, undo)

    @property
    def cost_usd(self) -> float:
        """
        The cost of the session so far, without open estimates.
        """
        return self._read(lambda state, now: state.cost) / 1_000_000

    @property
    def unpriced(self) -> int:
        """
        Model responses whose price nobody knows.
        """
        return self._read(lambda state, now: unpriced(state))

    @property
    def _chain(self) -> Chain:
        return self._engine.chain

    def _lay(self, lay: Lay) -> None:
        """
        Lay something of this session on its policy's chain, now and whenever that is another.
        """
        with self._adopting:
            self._engine, self._laid = self._engine.of(lay(self._chain)), (*self._laid, lay)

    def _fresh(self) -> None:
        """
        Go by what the policy is now; that it is another is an event.
        """
        policy = self.policy
        if monotonic() >= policy.due_s:
            policy.look()
        if policy.chain is not self._base:
            self._adopt()

    def _adopt(self) -> None:
        """
        Go by the policy's present chain, with what this session has laid on the one before. Amounts used stay used,
        running calls are settled, waiting calls wait. A raised limit reopens the session that it had ended.
        """
        with self._adopting:
            policy, engine = self.policy, self._engine
            chain = policy.chain
            if chain is self._base:
                return
            scopes = tuple((name, own, policy.scopes.get(name, below)) for name, own, below in engine.scopes)
            self._engine = engine.of(laid_on(chain, self._laid)).within(scopes)
            # Not the policy's: that may be another one's by now.
            before, after = self._digest, chain.source
            # In here: the events of two changes are in the order of the changes.
            try:
                self._event("policy", {"before": before, "after": after})
            except Exception as error:  # noqa: BLE001  what a store raises, the next step hears of
                log.error("store failed: %s", error, extra={"session": self.id})
            self._digest, self._base = after, chain

    def _now(self) -> int:
        """
        Returns the time of the clock, in milliseconds. Raises the clock's own error, ValueError for no time.
        """
        said = self._clock()
        if not 0 <= said < LATEST_S:
            raise ValueError(f"the clock says `{said!r:.40}`, which is no number of seconds since 1970")
        return round(said * 1000)

    def _time(self) -> int:
        """
        The same, `NO_TIME` if the clock fails: the session's time stands still then, and nothing is lost.
        """
        try:
            return self._now()
        except Exception as error:  # noqa: BLE001  whatever a clock raises
            log.error("clock failed: %s", error, extra={"session": self.id})
            return NO_TIME

    def _read(self, look: Callable[[SessionState, int], T]) -> T:
        now = self._time()
        try:
            engine = self._engine.within(())
            return self._store.update(
                self._keys, lambda states: engine.look(lambda state, now, _: look(state, now), states, now)
            )
        except Exception as error:  # noqa: BLE001
            self._without_store(error)
        return look(SessionState(), now)

    def _look(self, look: Callable[[SessionState, int, Sequence[Scope]], T]) -> T:
        """
        Returns the findings of *look* in the state and those of the scopes, at the time of the clock.
        """
        self._fresh()
        now = self._time()
        try:
            return self._store.update(self._all_keys, lambda states: self._engine.look(look, states, now))
        except Exception as error:  # noqa: BLE001
            self._without_store(error)
        return look(SessionState(), now, ())

    def _event(
        self, name: str, values: dict[str, Any] | None = None, *, needed: bool = False, **hidden: Any
    ) -> Happened | None:
        """
        Let the event *name* happen, by *values* that are recorded and *hidden* ones that are not. Returns its result; None if the store
        failed under `on_error: allow`. One that is *needed* raises then.
        """
        values = values or {}
        keys = self._all_keys if is_shared(name, values) else self._keys
        return self._happen(self._engine, keys, name, values, hidden, needed=needed)

    def _happen(
        self,
        engine: Engine,
        keys: tuple[str, ...],
        name: str,
        values: dict[str, Any],
        hidden: dict[str, Any],
        *,
        needed: bool,
    ) -> Happened | None:
        now = self._time()
        step = partial(engine.apply, event(name, {**values, **hidden} if hidden else values, now), now)
        try:
            made = self._store.update(keys, step)
        except Exception as error:
            if needed:
                raise
            self._without_store(error)
            return None
        if self._records is not None:
            _hand(engine, name, values, self._records, made)
        return made

    def _flush(self) -> None:
        if self._records is not None:
            self._records.flush(10)

    def _extend_scope(self, scope: str, amounts: dict[str, int]) -> None:
        engine = self._engine
        one = [(name, own, chain) for name, own, chain in engine.scopes if name == scope]
        if not one:
            raise SessionError(f"the session is in no scope `{scope}`")
        keys = (self.id, scope_key(scope, one[0][1]), *self._keys[1:])
        if ITERATIONS in amounts:
            raise SessionError(f"`{ITERATIONS}` is a limit of loops, and of no scope")
        values: dict[str, Any] = {"amounts": amounts, "scope": scope}
        self._happen(engine.within(one), keys, "extend", values, {}, needed=True)

    def _without_store(self, error: Exception) -> None:
        refused = isinstance(error, GuardrailsError) and not isinstance(error, StoreError)
        refused = refused or isinstance(error, StateUnreadable)
        if self._chain.on_error != "allow" or refused:
            raise error
        log.error("store failed: %s", error, extra={"session": self.id})


def _hand(engine: Engine, name: str, values: dict[str, Any], records: Recorder, made: Happened) -> None:
    if not made.n:
        return
    shown = dict(values)
    if cheapest := engine.chain.least:
        shown["least"] = cheapest
    if made.limits is not None:
        shown.setdefault("limits", made.limits)
    records.event(name, made, {**shown, **(made.marks or {})})
