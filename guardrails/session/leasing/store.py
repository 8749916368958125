"""
A worker's store, with parts of its sessions' limits: it admits calls itself, and asks the shared store for more.
"""

import threading
import time

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.engine import Engine, Short
from guardrails.core.engine.events.lending import Borrow, Lend, standing
from guardrails.core.guards.lease import Lease
from guardrails.core.state.entries import NO_AMOUNTS, Amounts
from guardrails.core.state.leases import is_over
from guardrails.core.state.state import SessionState
from guardrails.core.values.errors import SessionError, StoreError
from guardrails.core.values.logs import log
from guardrails.core.values.session_id import SCOPES, scope_key
from guardrails.session.recorder import life
from guardrails.stores.base import note_kept
from guardrails.stores.memory import MemoryStore

from .held import AGAIN_S, BEATS, LOOK_S, TRIES, WAYS, HeldLease, any_free, retreated, seen, silent_of
from .keeping import keep, keep_track, now_of


if TYPE_CHECKING:
    from guardrails.sinks import Sink
    from guardrails.stores.base import Store


T = TypeVar("T")
Way = tuple[tuple[str, ...], tuple[HeldLease, ...]]
"""Keys as the local store has them, and the leases among them."""


class Leases:
    """
    The store of one process, for sessions whose scopes each have a `lease`: parts of their limits, held in *shared*.

    The sessions' own states are in *local*, a `MemoryStore` by default, which no other process may use. The sink
    *records* takes the records of trips. By default it is the sink of the first session that has one. A trip asks
    *shared* in the thread of the call. A thread looks every *look* seconds whether parts are to be given back. If
    *look* is None, the host calls `tend`. The *clock* is the worker's, and *timer* is a clock that is never set. `close`
    gives back the unused parts, as does the end of the program. Raises StoreError as *shared* does.
    """

    def __init__(
        self,
        shared: "Store",
        *,
        local: "Store | None" = None,
        records: "Sink | None" = None,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
        look: float | None = LOOK_S,
    ) -> None:
        self._shared = shared
        self._local: Store = MemoryStore() if local is None else local
        self._sink = records
        self._clock = clock
        self._timer = timer
        self._look = look
        self._scopes: dict[str, tuple[str, str, Chain]] = {}
        self._returns = False  # whether others get the part of any of them if it is lost
        self._over: list[tuple[str, str]] = []
        """(name, id) of scopes whose leases have used more than they were granted."""
        self.trips = 0
        """Steps of the shared store so far."""
        self.begin_in_child()
        keep_track(self)

    def begin_in_child(self) -> None:
        """
        Have no leases, as in a forked child: the parent's parts are the parent's.
        """
        self._lock = threading.RLock()
        self._leases: dict[str, HeldLease] = {}
        self._ways: dict[tuple[str, ...], Way] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def blocks(self) -> bool:
        """
        Whether its steps may wait for a file.
        """
        return bool(getattr(self._local, "blocks", False))

    def enrol(self, scopes: Sequence[tuple[str, str, Chain]], sink: "Sink | None") -> Callable[[tuple[str, str]], None]:
        """
        Know the *scopes*, each (name, id, chain), of a session. Returns the function that its engine is to tell. Raises
        SessionError if one has no lease.
        """
        for name, own, chain in scopes:
            if not any(isinstance(guard, Lease) for guard in chain.guards):
                raise SessionError(
                    f"the scope `{name}` has no `lease`, so its sessions cannot be over `Leases`: give it one, or the "
                    "session the shared store"
                )
            self._scopes[scope_key(name, own)] = name, own, chain
        if self._sink is None:
            self._sink = sink
        return self._over.append

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`: the states of sessions are local, and those of scopes are the leases of this process.
        """
        if type(keys) is not tuple:
            keys = tuple(keys)
        for _ in TRIES:
            local, leases = self._ways.get(keys) or self._way(keys)
            if self._returns and (silent := silent_of(leases, self._timer())):
                for lease, trips in silent:
                    self._trip(lease, met=trips)
                continue
            try:
                made = self._local.update(local, step)
            except Short as short:
                self._trip(leases[short.place - 1], wants=short.need, met=short.trips)
                continue
            try:
                while self._over:
                    with suppress(IndexError):  # another thread was quicker
                        self._make_up(self._lease(scope_key(*self._over.pop())))
            except BaseException as error:
                note_kept(error)
                raise
            return made
        raise StoreError("other threads of this process took what was granted, again and again: make the call again")

    def _way(self, keys: tuple[str, ...]) -> Way:
        with self._lock:
            if len(self._ways) >= WAYS:
                self._ways.clear()
            leases = {key: self._lease(key) for key in keys if key.startswith(SCOPES)}
            local = tuple(leases[key].local if key in leases else key for key in keys)
            made = self._ways[keys] = local, tuple(leases.values())
            return made

    def _lease(self, key: str) -> HeldLease:
        lease = self._leases.get(key)
        if lease is None:
            lease = self._leases.setdefault(key, HeldLease(key, *self._scopes[key]))
        lease.chain = self._scopes[key][2]
        self._returns = self._returns or lease.returns
        return lease

    def forget(self, key: str) -> None:
        """
        See `Store.forget`; of a scope, its shared state.
        """
        (self._shared if key.startswith(SCOPES) else self._local).forget(key)

    def __len__(self) -> int:
        return len(self._local)

    def extend(self, key: str, amounts: Mapping[str, int]) -> None:
        """
        Raise the limits of the scope by *key*, for all of its sessions everywhere.
        """
        with self._lock:
            lease = self._lease(key)
        self._trip(lease, amounts=amounts)

    def tend(self) -> None:
        """
        Give back parts that others ask for, or that nobody has used for a while, and let the leases be heard of.
        """
        for lease in tuple(self._leases.values()):
            try:
                self._tend(lease, self._timer())
            except Exception as error:  # noqa: BLE001  it is tried again, and no call waits for it
                lease.look_at = self._timer() + AGAIN_S
                log.error("store failed: %s", error, extra={"scope": lease.key})

    def _tend(self, lease: HeldLease, now: float) -> None:
        with lease.lock:
            if lease.dropped or now < lease.look_at:
                return
            granted, used, held, _ = self._local.update((lease.local,), seen)
            idle = lease.is_idle(used, now)
            free = any_free(granted, used, held) or used != lease.told
            if held == NO_AMOUNTS and lease.is_left(now):
                if lease.trips or used != lease.told:  # else it was lost, and nobody has come since
                    self._trip(lease, over=True)
                self._renew(lease, drop=True)
                return
            if not free and held == NO_AMOUNTS:
                lease.look_at = now + lease.time_s / BEATS
                return
            self.trips += 1
            known, rest = self._shared.update((lease.key,), partial(standing, lease.chain, lease.holder))
            lease.wake(now)
            lease.plan_look(rest, now)
            if known is None or known.recalled or (idle and free):
                self._trip(lease, back=True)
            elif lease.is_unheard(now):
                self._trip(lease)

    def close(self) -> None:
        """
        Give back the unused parts. A session that goes on takes new leases. A store that fails is logged. Parts that it
        did not take back are treated as those of a worker that was killed.
        """
        self._ended.set()
        self._thread = None
        for lease in tuple(self._leases.values()):
            with lease.lock:
                if lease.trips:
                    try:
                        self._trip(lease, over=True)
                    except Exception as error:  # noqa: BLE001  the other leases are given back all the same
                        log.error("store failed: %s", error, extra={"scope": lease.key})
                    self._renew(lease)

    def _renew(self, lease: HeldLease, *, drop: bool = False) -> None:
        old = lease.local
        with self._lock:
            lease.begin()
            self._ways.clear()
            if drop:
                lease.dropped = True
                del self._leases[lease.key]
        self._local.forget(old)

    def _make_up(self, lease: HeldLease) -> None:
        """
        Take what was used beyond the part of *lease*; a store that fails is asked again later.
        """
        with lease.lock:
            over = self._local.update((lease.local,), lambda states: is_over(states[0]))
            if not over or self._timer() - lease.trip_at < 0:
                return
            try:
                self._trip(lease)
            except Exception as error:  # noqa: BLE001  the step is done: what it came to is not lost
                lease.trip_at = self._timer() + AGAIN_S
                log.error("store failed: %s", error, extra={"scope": lease.key})

    def _trip(
        self,
        lease: HeldLease,
        *,
        wants: Amounts | None = None,
        back: bool = False,
        over: bool = False,
        amounts: Mapping[str, int] | None = None,
        met: int | None = None,
    ) -> None:
        """
        Tell the shared state what *lease* has used, and take what it grants.
        """
        with lease.lock:
            if met is not None and (lease.dropped or met != lease.trips):
                return  # another thread has just been there
            granted, used, held, blown = self._local.update((lease.local,), retreated if back or over else seen)
            now, at = now_of(self._clock), self._timer()
            if used != lease.told or any_free(granted, used, held):
                lease.wake(at)
            event = Lend(
                now_ms=now,
                holder=lease.holder,
                used=used,
                holds=held,
                wants=wants,
                told=lease.told,
                known=lease.trips > 0,
                lost=lease.lost(at),
                back=back,
                over=over,
                fuses=blown,
                amounts=amounts,
            )
            engine = Engine(lease.chain, lease.key, life=None if self._sink is None else life)
            self.trips += 1
            lease.failed = True
            lent = self._shared.update((lease.key,), partial(engine.apply, event))
            lease.trips, lease.told = lent.trips, used
            lease.hear(at)
            lease.watch(lent.others, at)
            lease.plan_look(lent.rest, at)
            known = self._local.update((lease.local,), partial(engine.apply, Borrow(now, lent)))
            if self._sink is not None:
                lease.record(self._sink, event, lent, known)
            if not lent.trips and not over:
                self._renew(lease)
        if self._thread is None and self._look is not None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and self._look is not None:
                self._ended = threading.Event()
                self._thread = keep(self, self._ended, self._look)
