"""
The account of one session: its state behind a store, read by the clock, changed by events that are recorded; and of its family.
"""

import os
import threading
import weakref

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from copy import copy
from functools import partial
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from guardrails.core import record as records
from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Completion, Decision, Happened
from guardrails.core.engine import Engine, exhausted_by
from guardrails.core.events import event, is_shared, lose
from guardrails.core.guards import amounts as units
from guardrails.core.guards.amounts import ITERATIONS
from guardrails.core.guards.budget import LIMITS, NO_LIMITS, TIME, Limits, unpriced
from guardrails.core.guards.denials import Denials
from guardrails.core.guards.evidence import changed_seq
from guardrails.core.prepare import Prepared
from guardrails.core.refusals import unreachable, unreadable
from guardrails.core.scopes import Scope, progress
from guardrails.core.state import Pending, SessionState
from guardrails.core.text.plain_json import exact
from guardrails.core.values.errors import GuardrailsError, SessionError, StateUnreadable, StoreError
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.names import scope_key
from guardrails.core.values.types import NO_TIME, Denial, ToolCall


if TYPE_CHECKING:
    from guardrails.policy.policy import Policy
    from guardrails.sinks import Sink
    from guardrails.stores.base import Store


P = ParamSpec("P")
T = TypeVar("T")
Lay = Callable[[Chain], Chain]
"""What a session, or a host, puts on a policy's chain: tools, limits, a rule."""
Look = Callable[[SessionState, int, Sequence[Scope]], T]
"""A question about a session's state and those of its scopes, at a time of its clock in milliseconds."""
LATEST_S: Final = 253_402_300_800
"""Seconds since 1970 from which on a clock is not believed: the year 10,000."""
OVER: Final = "The session is over."
SHARE: Final = 0.125
"""What an adapter gives a sub-agent: of 1,000 calls the first has 125, and the tenth that runs beside it 38."""
RECORD_BYTES: Final = 1_900
"""Bytes that the record of a decision or of its end takes beside its texts, as tracemalloc counts them."""
EVENT_BYTES: Final = 1_200


class Ledger:
    """
    The account of a session: its amounts, its limits and its end.

    A store that fails is a guard that fails, decided by the policy's `on_error`. Under `deny` a call is refused, and
    every other question about the state raises the store's error. Under `allow` the session goes on as if new: calls
    run uncharged, and changes of the state are not counted. Questions about the state are answered as for a new
    session. The log says so each time. Limits are never moved unseen: `extend` and `child` raise under both. So does
    every question about a state that this version cannot read. A clock that fails loses nothing: the time stands still,
    and only calls are refused under `deny`.
    """

    __slots__ = (
        "_clock", "_digest", "_laid", "all_keys", "base", "blocks", "engine", "id", "keys", "lock", "over", "parent",
        "policy", "records", "share", "store",
    )  # fmt: skip

    def __init__(
        self,
        id: str,
        policy: "Policy",
        *,
        laid: tuple[Lay, ...] = (),
        store: "Store",
        sink: "Sink | None" = None,
        clock: Callable[[], float],
        scopes: Sequence[tuple[str, str, Chain]] = (),
    ) -> None:
        self.id = id
        self.policy = policy
        self.parent: Ledger | None = None
        self.share: float | None = None
        """The part of the rest of its parent that a child takes. None: it has no parent, or takes all at once."""
        self.store = store
        self.blocks = bool(getattr(store, "blocks", False)) or bool(getattr(sink, "blocks", False))
        """Its steps may wait for a file."""
        self.records = None if sink is None else Recorder(id, sink)
        self.keys: tuple[str, ...] = (id,)
        """The session's, and that of its family's root."""
        self.all_keys: tuple[str, ...] = (id, *(scope_key(name, own) for name, own, _ in scopes))
        """Those of its scopes too."""
        self.over: set[str] = set()
        """The children of the family that are closed."""
        self.lock = threading.RLock()
        """Held while the chain changes; the copies of a session share it."""
        self._clock = clock
        self._laid = laid
        self.engine = Engine(laid_on(policy.chain, laid), id, scopes=scopes, life=None if sink is None else new_id)
        self.base: Chain | None = None if policy.changed else policy.chain
        """The chain of the policy, on which this session has *laid* its own; None: it has to say which."""
        self._digest = None if policy.changed else policy.digest

    def child(self, name: str) -> "Ledger":
        """
        Returns the account of the child *name*, which has nothing yet.
        """
        own, engine, policy = copy(self), self.engine, self.policy
        own.id, own.parent, own.share, own.lock = f"{self.id}/{name}", self, None, threading.RLock()
        own.keys = own.id, self.keys[-1]
        own.all_keys = own.id, *self.all_keys[1 : 1 + len(engine.scopes)], self.keys[-1]
        own.records = None if self.records is None else Recorder(own.id, self.records.sink)
        own.engine = Engine(engine.chain, own.id, scopes=engine.scopes, child=True, life=engine.life)
        if policy.changed:
            own.base, own._digest = None, None  # noqa: SLF001  of this class
        return own

    # The amounts

    @property
    def cost_usd(self) -> float:
        """
        The cost of the session so far, without open estimates.
        """
        return self.read(lambda state, now: state.cost) / 1_000_000

    @property
    def unpriced(self) -> int:
        """
        Model responses whose price nobody knows.
        """
        return self.read(lambda state, now: unpriced(state))

    @property
    def progress(self) -> dict[str, Any]:
        """
        The used and the remaining amounts, in USD and seconds.
        """
        return self.look(partial(progress, self.chain))

    @property
    def limit_message(self) -> str | None:
        """
        The message to the model about the limit that exhausted the session. None while it goes on.
        """
        cause = self.look(self.cause)
        return None if cause is None else cause[1]

    @property
    def limits(self) -> Limits:
        """
        The guard that holds the session's limits.
        """
        return self.chain.limits or NO_LIMITS

    def cause(self, state: SessionState, now: int, scopes: Sequence[Scope]) -> tuple[str, str] | None:
        """
        Returns code and message of the limit that exhausted the session first. Returns None while it goes on.
        """
        stop = self.policy.stop
        return exhausted_by(self.chain, state, now, scopes) if stop is None else (stop.code, stop.message)

    def go_on(self) -> bool:
        """
        Say that the user has sent a further message. Returns whether a session that had ended goes on.

        If calls or turns have ended it, as many of them are left now as `go_on` of the policy's `budget` says. If
        refusals have, they are forgiven. Earlier calls are no evidence any more, since a user does things too. No other
        limit is raised, and nothing of a child.
        """
        if self.parent is not None:
            return False
        freed, ended = self.look(lambda state, now, scopes: (_frees(state), self.cause(state, now, scopes)))
        if not freed:
            return False
        limits, fresh = self.limits, SessionState()
        opens = {name: more for name, more in limits.budget.go_on.items() if limits.limit(fresh, name) is not None}
        if ended is None or ended[0].removeprefix("budget.") not in (amounts := units.internal(opens)):
            amounts = {}
        self.event("extend", {"amounts": amounts, "asked": True}, needed=True)
        return ended is not None and self.look(self.cause) is None

    def extend_scope(self, scope: str, amounts: dict[str, int]) -> None:
        """
        Raise limits of the scope of that name by *amounts*, for all of its sessions. Raises as `Session.extend` does.
        """
        one = next((each for each in self.engine.scopes if each[0] == scope), None)
        if one is None:
            raise SessionError(f"the session is in no scope `{scope}`")
        if ITERATIONS in amounts:
            raise SessionError(f"`{ITERATIONS}` is a limit of loops, and of no scope")
        self.event("extend", {"amounts": amounts, "scope": scope}, needed=True, only=one)

    def forget(self) -> None:
        """
        Drop the session's state: the same name starts afresh. The amounts held for calls that wait for a person come
        back first. The states of its children that were closed in this process go too: no other call would ever drop
        them.
        """
        if len(self.all_keys) > 1:
            self.end_waiting()
        while self.parent is None and self.over:
            self.store.forget(self.over.pop())
        self.store.forget(self.id)

    def end_waiting(self) -> None:
        """
        Give back what calls hold that wait for a person, or were approved and not made: in the session, its scopes and
        its family.
        """
        for one in self.read(lambda state, _: [each for each in state.pending.values() if each.question is not None]):
            with suppress(SessionError):  # it was made meanwhile
                self.event(
                    "unpark", {**records.identity(one), "approved": False, "by": "", "reason": OVER}, needed=True
                )

    def close(self) -> None:
        """
        Write the records. A child gives back its unused amounts and is over.
        """
        if self.parent is not None:
            self.end_waiting()
            closed = self.event("close")
            if closed is not None:
                self.parent.event("release", {"child": self.id, "used": closed.limits or {}})
            self.over.add(self.id)
        if self.records is not None:
            self.records.flush(10)

    # The chain

    @property
    def chain(self) -> Chain:
        """
        The chain of the policy, with all that is laid on it.
        """
        return self.engine.chain

    def plan(self, tool: str) -> Plan:
        """
        Returns the plan of the calls of *tool*.
        """
        return self.engine.chain.plan(tool)

    def lay(self, lay: Lay) -> None:
        """
        Lay something of this session on its policy's chain, now and whenever that is another.
        """
        with self.lock:
            self.engine, self._laid = self.engine.of(lay(self.chain)), (*self._laid, lay)

    def fresh(self) -> None:
        """
        Go by the policy as it is now; a change of it is an event.
        """
        policy = self.policy
        if monotonic() >= policy.due_s:
            policy.look()
        if policy.chain is not self.base:
            self._adopt()

    def _adopt(self) -> None:
        """
        Go by the policy's present chain, with what this session has laid on the one before. Amounts used stay used,
        running calls are settled, waiting calls wait. A raised limit reopens the session that it had ended.
        """
        with self.lock:
            policy, engine = self.policy, self.engine
            chain = policy.chain
            if chain is self.base:
                return
            scopes = tuple((name, own, policy.scopes.get(name, below)) for name, own, below in engine.scopes)
            self.engine = engine.of(laid_on(chain, self._laid)).within(scopes)
            # Not the policy's: that may be another one's by now.
            before, after = self._digest, chain.source
            # In here: the events of two changes are in the order of the changes.
            try:
                self.event("policy", {"before": before, "after": after})
            except Exception as error:  # noqa: BLE001  the next step hears of a store that fails
                self.failed("store", error)
            self._digest, self.base = after, chain

    # The clock and the store

    def time(self, needed: bool = False) -> int:
        """
        Returns the time of the clock, in milliseconds; `NO_TIME` if the clock fails: the session's time stands still
        then, and nothing is lost. If it is *needed*, raises the clock's own error, or ValueError for no time.
        """
        try:
            seconds = self._clock()
            if not 0 <= seconds < LATEST_S:
                raise ValueError(f"the clock says `{seconds!r:.40}`, which is no number of seconds since 1970")
            return round(seconds * 1000)
        except Exception as error:
            if needed:
                raise
            self.failed("clock", error)
            return NO_TIME

    def read(self, look: Callable[[SessionState, int], T]) -> T:
        """
        Returns the findings of *look* in the state of the session alone.
        """
        return self._seen(self.engine.within(()), self.keys, lambda state, now, _: look(state, now))

    def look(self, look: Look[T]) -> T:
        """
        Returns the findings of *look* in the state and those of the scopes, at the time of the clock.
        """
        self.fresh()
        return self._seen(self.engine, self.all_keys, look)

    def _seen(self, engine: Engine, keys: tuple[str, ...], look: Look[T]) -> T:
        now = self.time()
        try:
            return self.store.update(keys, lambda states: engine.look(look, states, now))
        except Exception as error:  # noqa: BLE001
            self._without_store(error)
        return look(SessionState(), now, ())

    def event(
        self,
        name: str,
        values: dict[str, Any] | None = None,
        *,
        needed: bool = False,
        only: tuple[str, str, Chain] | None = None,
        **hidden: Any,
    ) -> Happened | None:
        """
        Let the event *name* happen, by *values* that are recorded and *hidden* ones that are not; in the scope
        *only*, if it is given. Returns its result; None if the store failed under `on_error: allow`. One that is *needed* raises
        then.
        """
        values, now, engine = values or {}, self.time(), self.engine
        keys = self.all_keys if is_shared(name, values) else self.keys
        if only is not None:
            engine, keys = engine.within([only]), (self.id, scope_key(*only[:2]), *self.keys[1:])
        step = partial(engine.apply, event(name, {**values, **hidden}, now), now)
        try:
            made = self.store.update(keys, step)
        except Exception as error:
            if needed:
                raise
            self._without_store(error)
            return None
        if self.records is not None and made.n:
            fields = dict(values)
            if engine.chain.least:
                fields["least"] = engine.chain.least
            if made.limits is not None:
                fields.setdefault("limits", made.limits)
            self.records.event(name, made, {**fields, **(made.marks or {})})
        return made

    # Open calls

    def suspend(self, decision: Decision) -> None:
        """
        Say that the call of *decision* stopped in the control flow of its host, which makes it again.
        """
        if not decision.n:
            # The state knows nothing of it.
            return
        try:
            self.event("suspend", records.identity(decision), needed=True, call=decision.call)
        except Exception as error:  # noqa: BLE001  the control flow of a host is never lost
            self.failed("store", error)

    def release(self, decision: Decision) -> None:
        """
        Let the call of *decision*, which never ran and will not, hold nothing.
        """
        if self.read(lambda state, _: any(one.seq == decision.seq for one in state.pending.values())):
            self.event("release", records.identity(decision))

    def lose(self, *which: Pending) -> None:
        """
        Say of open calls that nobody will ever tell how they ended. The amounts that they hold stay charged, and the
        same call may be made again.
        """
        for one in which:
            now = self.time()
            step = partial(self.engine.apply, partial(lose, seq=one.seq, now_ms=now), now)
            self.store.update(self.keys, step)

    def let_go(self, made: object) -> None:
        """
        Take back what *made* holds, the result of a step that was cancelled: nobody got it. A call that was claimed
        never ran then. Its earlier admission, for an interrupt or by a person, stays.
        """
        one = made[0] if isinstance(made, tuple) else made  # a decision comes with the plan of its tool
        if not isinstance(one, Decision) or one.envelope is not None:
            return
        if one.claim_n or one.park_n:
            self.suspend(one)
        elif one.claimed and not one.repeated:
            self.release(one)

    def undecided(self, call: ToolCall, plan: Plan, now_ms: int, error: Exception) -> Decision:
        """
        Returns the decision on a call if the state or the time cannot be known: the store, or the clock, raised *error*.

        A state that cannot be read stays so. Such calls are refused under every `on_error`, since calls without its
        limits would never end.
        """
        failed = "clock" if now_ms == NO_TIME else "store"
        self.failed(failed, error)
        denial: Denial | None = self.policy.stop
        if denial is None and isinstance(error, StateUnreadable):
            denial = unreadable(error)
        if denial is None and plan.deny_on_error:
            denial = unreachable(failed)
        return Decision.unknown(call, now_ms, self.id, (failed, f"{type(error).__name__}: {error}"), denial)

    def failed(self, part: str, error: Exception) -> None:
        """
        Say in the log that a *part* of the session, its store or its clock, raised *error*.
        """
        log.error("%s failed: %s", part, error, extra={"session": self.id})

    def _without_store(self, error: Exception) -> None:
        refused = isinstance(error, GuardrailsError) and not isinstance(error, StoreError)
        if self.chain.on_error != "allow" or refused or isinstance(error, StateUnreadable):
            raise error
        self.failed("store", error)

    async def off_loop(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """
        Returns the result of `function(*args, **kwargs)`, for example `session.charge`, without holding up the event
        loop. It runs in a thread if the store may wait for a file, else right here. It is done to its end even if the
        task is cancelled meanwhile. A call that it has claimed is then let go.
        """
        if not self.blocks:
            return function(*args, **kwargs)
        import asyncio

        begun, cancelled = later(self.store, partial(function, *args, **kwargs)), None
        made = asyncio.wrap_future(begun)
        try:
            while not made.done():
                try:
                    await asyncio.wait((made,))
                except asyncio.CancelledError as error:
                    cancelled = error
        except BaseException:
            # Ctrl-C has ended the loop: nobody awaits this coroutine any more.
            begun.add_done_callback(lambda done: None if done.exception() else self.let_go(done.result()))
            raise
        if cancelled is None:
            return made.result()
        if made.exception() is None:
            await self.off_loop(self.let_go, made.result())
        raise cancelled


def _frees(state: SessionState) -> bool:
    """
    Returns whether a further message of the user would free anything: calls that ran, refusals, or an end.
    """
    came = state.seq > changed_seq(state) or bool(state.reserved) or bool(state.own.get(Denials.name))
    return not state.closed and (came or state.exhausted is not None)


def laid_on(chain: Chain, laid: Iterable[Lay]) -> Chain:
    """
    Returns *chain* with all that is *laid* on it, in order.
    """
    for lay in laid:
        chain = lay(chain)
    return chain


def later(store: object, work: Callable[[], T]) -> "Future[T]":
    """
    Do *work* in the thread of *store*, and wait for nothing. Returns the future of its result.

    Each store has one thread, as it takes one step at a time. No step then waits for threads that tools keep.
    """
    try:
        worker = _workers.get(store)
    except TypeError:  # a store that has no hash, or cannot be referred to
        store = type(store)
        worker = _workers.get(store)
    if worker is None:
        worker = _workers.setdefault(store, ThreadPoolExecutor(1, "guardrails-store"))
    return worker.submit(copy_context().run, work)


_workers: "weakref.WeakKeyDictionary[Any, ThreadPoolExecutor]" = weakref.WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # No thread of the parent is there in a new process.
    os.register_at_fork(after_in_child=_workers.clear)


# The family


def reserve(child: Ledger, amounts: dict[str, int], share: float, *, again: bool) -> None:
    """
    Reserve *amounts* for *child* of its parent's limits, and a *share* of what is left of the others; see
    `Session.child`.
    """
    parent = child.parent
    if parent is None or not 0 < share <= 1:
        raise SessionError(f"`share` is above 0 and at most 1, not {share}")
    if ITERATIONS in amounts:
        amounts["max_turns"] = amounts.pop(ITERATIONS)
    if child.read(lambda state, now: state.closed):
        raise SessionError(f"`{child.id}` was closed: give the next child another name")
    child.share = share if share < 1 else None
    held = parent.read(lambda state, _: state.reserved.get(child.id)) if again else None
    runs = held is not None and child.read(lambda state, _: state.n > 0)
    if not runs:
        part = {} if share == 1 else {"share": share}
        made = parent.event("reserve", {"child": child.id, "amounts": amounts, **part}, needed=True)
        held = made.limits if made is not None else None
    settings = units.settings_of(held or {})
    child.lay(lambda chain: chain.with_limits(**settings))
    if not runs:
        child.event("open", {"limits": held or {}})


def grow(child: Ledger, code: str | None) -> bool:
    """
    Take the share of *child* once more from its parent's rest of the limit that *code* names. Returns whether it did.
    The last call, turn or token stays the parent's, which has an answer to give. A parent with a share of its own grows
    first.
    """
    limit, share, parent = LIMITS.get((code or "").removeprefix("budget.")), child.share, child.parent
    if limit is None or limit is TIME or share is None or parent is None:
        return False
    budget = parent.chain.budget or NO_LIMITS
    while (left := parent.look(lambda state, now, _: budget.left(state, limit.name, now)) or 0) <= 1:
        if not grow(parent, code):
            return False
    amounts = {limit.name: min(ceil(left * share), left - 1)}
    try:
        take(child, amounts)
    except SessionError:  # another child was quicker, or this one is closed
        return False
    child.event("extend", {"amounts": amounts}, needed=True)
    return True


def take(child: Ledger, amounts: Mapping[str, int]) -> None:
    """
    Reserve *amounts* more for *child* from its parent, if it has one. Raises SessionError if less is left.
    """
    if child.parent is not None:
        child.parent.event("reserve", {"child": child.id, "amounts": amounts, "more": True}, needed=True)


# Records


class Recorder:
    """
    The records of the session *session_id*, handed to *sink* as soon as their events have happened. Exceptions of a sink
    are logged once.

    A record waits with its arguments and its result as JSON: as Python objects they may take many times as much, and change.
    """

    __slots__ = ("_put", "_session_id", "sink")

    def __init__(self, session_id: str, sink: "Sink") -> None:
        # Without records, none of it is imported.
        from guardrails.sinks.base import put_of

        self._session_id, self.sink, self._put = session_id, sink, put_of(sink)

    def decided(self, decision: Decision, plan: Plan) -> None:
        """
        Hand over the event of a decision, and those that happened before it: admissions that were given up, a claim.
        """
        try:
            if decision.expired or decision.claim_n:
                for one in _before(self._session_id, decision):
                    self._put(one, EVENT_BYTES)
            if decision.repeated or not decision.n:
                return
            arguments = decision.call.canonical
            if arguments is None:
                arguments = exact(records.snapshot(decision.call))
            record = records.call_record(self._session_id, decision, plan, arguments)
            if decision.marks is not None:
                record |= decision.marks
            self._put(record, RECORD_BYTES + len(arguments))
            if decision.park_n:
                self._put(records.park_record(self._session_id, decision), EVENT_BYTES)
        except Exception as error:  # noqa: BLE001  a record never fails the call it is about
            self._lose(error)

    def settled(self, decision: Decision, prepared: Prepared, completion: Completion) -> None:
        """
        Hand over how a call ended, if the session's state knows of it.
        """
        if not completion.n:
            return
        try:
            record = records.settle_record(self._session_id, decision, prepared, completion)
            if completion.marks is not None:
                record |= completion.marks
            rendered = prepared.rendered
            self._put(record, RECORD_BYTES if rendered is None else RECORD_BYTES + rendered.size)
        except Exception as error:  # noqa: BLE001
            self._lose(error)

    def event(self, name: str, happened: Happened, values: Mapping[str, Any]) -> None:
        """
        Hand over any other event.
        """
        n, at_ms, run = happened[:3]
        try:
            self._put(records.event_record(name, self._session_id, run, n, at_ms, values), EVENT_BYTES)
        except Exception as error:  # noqa: BLE001
            self._lose(error)

    def flush(self, timeout: float) -> None:
        """
        Wait up to *timeout* seconds until all is written.
        """
        try:
            self.sink.flush(timeout)
        except Exception as error:  # noqa: BLE001
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        kind = type(self.sink).__qualname__
        warn_once(f"sink {kind}", "the sink `%s` raised: %r; its records are lost", kind, error)


def _before(session_id: str, decision: Decision) -> Iterator[dict[str, Any]]:
    run, at_ms, claimed_n, marks = decision.run, decision.at_ms, decision.claim_n, decision.marks or {}
    for n, pending in decision.expired:
        # Where nothing else happened, the last of them is the event that has a place in the family.
        alone = decision.repeated and not claimed_n and pending is decision.expired[-1][1]
        yield records.expire_record(session_id, run, n, at_ms, pending) | (marks if alone else {})
    if claimed_n:
        # An approval is used by whoever asks first, who may only ask.
        parked = {"id": decision.call.id, "claimed": decision.claimed} if decision.park_n else {}
        yield records.event_record(
            "claim", session_id, run, claimed_n, at_ms, {"call_n": decision.n, **parked, **marks}
        )


def new_id() -> str:
    """
    Returns an id that no other process draws: of a life of a session, whose name may live again and counts from 1 then.
    """
    return os.urandom(8).hex()
