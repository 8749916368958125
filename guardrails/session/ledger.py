"""
The account of one session: its state behind a store, read by the clock, changed by events that are recorded; and of its family.
"""

import os
import threading

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import InitVar, dataclass, field, replace
from functools import cache, partial, reduce
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from guardrails.core import record as records
from guardrails.core.chain import Chain, Plan, least_of
from guardrails.core.decision import Completion, Decision, Happened
from guardrails.core.engine import Engine, exhausted_by
from guardrails.core.events import happen, is_shared, lose
from guardrails.core.guards.budget import ITERATIONS, LIMITS, NO_LIMITS, TIME, Limits, internal, settings_of, unpriced
from guardrails.core.guards.denials import Denials
from guardrails.core.guards.evidence import changed_seq
from guardrails.core.refusals import unreachable, unreadable
from guardrails.core.scopes import Place, progress
from guardrails.core.state import Pending, SessionState
from guardrails.core.text.plain_json import exact
from guardrails.core.values.errors import GuardrailsError, SessionError, StateUnreadable, StoreError
from guardrails.core.values.logs import log, warn_once
from guardrails.core.values.names import scope_key
from guardrails.core.values.types import MICRO, End, ToolCall


if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from guardrails.sinks import Sink
    from guardrails.sinks.base import Entry
    from guardrails.stores import Store


P = ParamSpec("P")
T = TypeVar("T")
Layer = Callable[[Chain], Chain]
"""What a session, or a host, puts on a policy's chain: tools, limits, a rule."""
Look = Callable[[Sequence[Place]], T]
"""A question about a session and its scopes, at a time of its clock."""
SHARE: Final = 0.125
"""What an adapter gives a sub-agent: of 1,000 calls the first has 125, and the tenth that runs beside it 38."""
RECORD_BYTES: Final = 1_900
"""Bytes that the record of a decision or of its end takes beside its texts, as tracemalloc counts them."""
EVENT_BYTES: Final = 1_200


@dataclass(eq=False)
class Ledger:
    """
    The account of a session: its amounts, its limits and its end.

    A store that fails is a guard that fails, decided by the policy's `on_error`. Under `deny` a call is refused, and
    every other question about the state raises the store's error. Under `allow` the session goes on as if new: calls
    run uncharged, and changes of the state are not counted. Questions about the state are answered as for a new
    session. The log says so each time. Limits are never moved unseen: `extend` and `child` raise under both. So does
    every question about a state that this version cannot read.
    """

    id: str
    policy: Any
    """The `Policy` by which it goes, of a room above this one; what is in force may be another at the next call."""
    store: "Store"
    clock: Callable[[], float]
    sink: "Sink | None" = None
    scopes: InitVar[Sequence[tuple[str, str, Chain]]] = ()
    layers: tuple[Layer, ...] = ()
    parent: "Ledger | None" = None
    share: float | None = None
    """The part of the rest of its parent that a child takes. None: it has no parent, or takes all at once."""
    closed_children: set[str] = field(default_factory=set)
    """Of the whole family."""
    lock: Any = field(default_factory=threading.RLock)
    """Held while the chain changes; the copies of a session share it."""

    def __post_init__(self, scopes: Sequence[tuple[str, str, Chain]]) -> None:
        policy, life = self.policy, None if self.sink is None else new_id
        root = () if self.parent is None else self.parent.keys[-1:]
        self.now_ms = 0
        """The latest time of its clock."""
        self.blocks = bool(getattr(self.store, "blocks", False)) or bool(getattr(self.sink, "blocks", False))
        """Its steps may wait for a file."""
        self.records = None if self.sink is None else Recorder(self.id, self.sink)
        self.keys: tuple[str, ...] = (self.id, *root)
        """The session's, and that of its family's root."""
        self.all_keys: tuple[str, ...] = (self.id, *(scope_key(name, own) for name, own, _ in scopes), *root)
        """Those of its scopes too."""
        self.engine = Engine(layered(policy.chain, self.layers), self.id, scopes, child=bool(root), life=life)
        self.base: Chain | None = None if policy.changed else policy.chain
        """The chain of the policy, on which the layers of this session lie; None: it has to say which."""
        self._digest = None if policy.changed else policy.digest

    def child(self, name: str) -> "Ledger":
        """
        Returns the account of the child *name*, which has nothing yet.
        """
        own, scopes = f"{self.id}/{name}", self.engine.scopes
        return replace(self, id=own, parent=self, share=None, lock=threading.RLock(), scopes=scopes)

    # The amounts

    @property
    def cost_usd(self) -> float:
        """
        The cost of the session so far, without open estimates.
        """
        return self.read(lambda state, _: state.cost) / MICRO

    @property
    def unpriced(self) -> int:
        """
        Model responses whose price nobody knows.
        """
        return self.read(lambda state, _: unpriced(state))

    @property
    def progress(self) -> dict[str, Any]:
        """
        The used and the remaining amounts, in USD and seconds.
        """
        return self.look(progress)

    @property
    def limit_message(self) -> str | None:
        """
        The message to the model about the limit that exhausted the session. None while it goes on.
        """
        return (self.look(self.cause) or (None, None))[1]

    @property
    def limits(self) -> Limits:
        """
        The guard that holds the session's limits.
        """
        return self.chain.limits or NO_LIMITS

    def cause(self, places: Sequence[Place]) -> tuple[str, str] | None:
        """
        Returns code and message of the limit that exhausted the session first. Returns None while it goes on.
        """
        stop = self.policy.stop
        return exhausted_by(places) if stop is None else (stop.code, stop.message)

    def go_on(self) -> bool:
        """
        Say that the user has sent a further message. Returns whether a session that had ended goes on.

        If calls or turns have ended it, as many of them are left now as `go_on` of the policy's `budget` says. If
        refusals have, they are forgiven. Earlier calls are no evidence any more, since a user does things too. No other
        limit is raised, and nothing of a child.
        """

        def look(places: Sequence[Place]) -> tuple[bool, tuple[str, str] | None]:
            # Whether it would free anything: calls that ran, refusals, or an end.
            state, cause = places[0].state, self.cause(places)
            news = state.seq > changed_seq(state) or state.reserved or state.own.get(Denials.name) or state.exhausted
            return bool(news) and not state.closed, cause

        frees, end = self.look(look)
        if self.parent is not None or not frees:
            return False
        limits = self.limits
        opens = {name: more for name, more in limits.budget.go_on.items() if name in limits.own}
        amounts = internal(opens) if end is not None and end[0].removeprefix("budget.") in opens else {}
        self.event("extend", {"amounts": amounts, "asked": True}, needed=True)
        return end is not None and self.look(self.cause) is None

    def forget(self) -> None:
        """
        Drop the session's state: the same name starts afresh. The amounts held for calls that wait for a person come
        back first. The states of its children that were closed in this process go too: no other call would ever drop
        them.
        """
        if len(self.all_keys) > 1:
            self._withdraw_questions()
        while self.parent is None and self.closed_children:
            self.store.forget(self.closed_children.pop())
        self.store.forget(self.id)

    def close(self) -> None:
        """
        Write the records. A child gives back its unused amounts and is over.
        """
        if self.parent is not None:
            self._withdraw_questions()
            end = self.event("close", {})
            if end is not None:
                self.parent.event("release", {"child": self.id, "used": end.limits or {}})
            self.closed_children.add(self.id)
        if self.sink is not None:
            try:
                self.sink.flush(10)
            except Exception as error:  # nor does it fail the end of a session
                log_loss(self.sink, error)

    def _withdraw_questions(self) -> None:
        """
        Give back what calls hold that wait for a person, or were approved and not made: in the session, its scopes and
        its family.
        """
        answer = {"approved": False, "by": "", "reason": "The session is over."}
        for one in self.read(lambda state, _: [each for each in state.pending.values() if each.question is not None]):
            with suppress(SessionError):  # it was made meanwhile
                self.event("unpark", {**records.identity(one), **answer}, needed=True)

    # The chain

    @property
    def chain(self) -> Chain:
        """
        The chain of the policy, with all that lies on it.
        """
        return self.engine.chain

    def plan(self, tool: str) -> Plan:
        """
        Returns the plan of the calls of *tool*.
        """
        return self.engine.chain.plan(tool)

    def lay(self, layer: Layer) -> None:
        """
        Lay something of this session on its policy's chain, now and whenever that is another.
        """
        with self.lock:
            self.engine, self.layers = self.engine._replace(chain=layer(self.chain)), (*self.layers, layer)

    def refresh(self) -> None:
        """
        Go by the policy as it is now; a change of it is an event. Amounts used stay used, running calls are settled,
        waiting calls wait. A raised limit reopens the session that it had ended.
        """
        policy = self.policy
        if monotonic() >= policy.due_s:
            policy.look()
        if policy.chain is self.base:
            return
        with self.lock:
            chain, engine, before = policy.chain, self.engine, self._digest
            if chain is self.base:
                return
            scopes = tuple((name, own, policy.scopes.get(name, below)) for name, own, below in engine.scopes)
            self.engine = engine._replace(chain=layered(chain, self.layers), scopes=scopes)
            # In here: the events of two changes are in the order of the changes.
            try:
                self.event("policy", {"before": before, "after": chain.source})
            except Exception as error:  # the next step hears of a store that fails
                self.log_fault(error)
            self._digest, self.base = chain.source, chain

    # The clock and the store

    def time(self) -> int:
        """
        Returns the time of the clock, in milliseconds. If that fails, its time before: the session's time stands still then, and all other
        limits hold.
        """
        try:
            self.now_ms = round(self.clock() * 1000)
        except Exception as error:  # a call that ran is not lost for its time
            log.error("clock failed: %s", error, extra={"session": self.id})
        return self.now_ms

    def read(self, look: Callable[[SessionState, int], T]) -> T:
        """
        Returns the findings of *look* in the state of the session alone.
        """
        alone = self.engine._replace(scopes=())
        return self._answer(alone, self.keys, lambda places: look(places[0].state, places[0].now_ms))

    def look(self, look: Look[T]) -> T:
        """
        Returns the findings of *look* in the state and those of the scopes, at the time of the clock.
        """
        self.refresh()
        return self._answer(self.engine, self.all_keys, look)

    def _answer(self, engine: Engine, keys: tuple[str, ...], look: Look[T]) -> T:
        now = self.time()
        try:
            return self.store.update(keys, lambda states: engine.look(look, states, now))
        except Exception as error:
            self._go_without(error)
        return look([Place("", self.id, self.chain, SessionState(), now)])

    def event(self, name: str, values: Mapping[str, Any], *, needed: bool = False, **hidden: Any) -> Happened | None:
        """
        Let the event *name* happen, by *values* that are recorded and *hidden* ones that are not. Returns its result;
        None if the store failed under `on_error: allow`. One that is *needed* raises then.
        """
        now, chain = self.time(), self.chain
        step = partial(self.engine.apply, happen, (name, {**values, **hidden}, now), now)
        try:
            made = self.store.update(self.all_keys if is_shared(name, values) else self.keys, step)
        except Exception as error:
            self._go_without(error, needed=needed)
            return None
        if self.records is not None and made.n:
            least = least_of(chain, *(below for *_, below in self.engine.scopes))
            limits = {} if made.limits is None or "limits" in values else {"limits": made.limits}
            self.records.event(name, made, {**values, **({"least": least} if least else {}), **limits})
        return made

    # Open calls

    def suspend(self, decision: Decision) -> None:
        """
        Say that the call of *decision* stopped in the control flow of its host, which makes it again.
        """
        try:
            self.event("suspend", records.identity(decision), needed=True, call=decision.call)
        except Exception as error:  # the control flow of a host is never lost
            self.log_fault(error)

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
        now = self.time()
        for one in which:
            self.store.update(self.keys, partial(self.engine.apply, lose, (one.seq, now), now))

    def unknown(self, call: ToolCall, plan: Plan, now_ms: int, error: Exception) -> Decision:
        """
        Returns the decision on a call if the state cannot be known: the store raised *error*.

        A state that cannot be read stays so. Such calls are refused under every `on_error`, since calls without its
        limits would never end.
        """
        self.log_fault(error)
        denial = self.policy.stop or (unreadable(error) if isinstance(error, StateUnreadable) else None)
        if denial is None and plan.deny_on_error:
            denial = unreachable()
        return Decision.unknown(call, now_ms, self.id, ("store", f"{type(error).__name__}: {error}"), denial)

    def log_fault(self, error: Exception) -> None:
        """
        Say in the log that the store of the session raised *error*.
        """
        log.error("store failed: %s", error, extra={"session": self.id})

    def _go_without(self, error: Exception, *, needed: bool = False) -> None:
        refusal = isinstance(error, GuardrailsError) and not isinstance(error, StoreError)
        if needed or self.chain.on_error != "allow" or refusal or isinstance(error, StateUnreadable):
            raise error
        self.log_fault(error)

    async def off_loop(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """
        Returns the result of `function(*args, **kwargs)`, for example `session.charge`, without holding up the event
        loop. It runs in a thread if the store may wait for a file, else right here. It is done to its end even if the
        task is cancelled meanwhile. A call that it claims is then given back: nobody got it, and it never ran.
        """
        if not self.blocks:
            return function(*args, **kwargs)
        import asyncio

        work = _worker().submit(copy_context().run, partial(function, *args, **kwargs))
        try:
            return await asyncio.shield(asyncio.wrap_future(work))
        except BaseException:
            # Also if it is done: its value may be on its way to the loop, and nobody gets it.
            work.add_done_callback(self._give_back)
            raise

    def aside(self, work: Callable[[], object]) -> None:
        """
        Do *work*, and hold up no event loop for it.
        """
        if self.blocks:
            _worker().submit(copy_context().run, work)
        else:
            work()

    def _give_back(self, work: "Future[Any]") -> None:
        """
        Let a call go that was decided for nobody. Its earlier admission, for an interrupt or by a person, stays.
        """
        made = None if work.exception() is not None else work.result()
        one = made[0] if isinstance(made, tuple) else made  # a decision comes with the plan of its tool
        if isinstance(one, Decision) and one.envelope is None:
            if one.claim_n or one.park_n:
                self.suspend(one)
            elif one.claimed and not one.repeated:
                self.release(one)


def layered(chain: Chain, layers: Iterable[Layer]) -> Chain:
    """
    Returns *chain* with all *layers* on it, in order.
    """
    return reduce(lambda made, layer: layer(made), layers, chain)


@cache
def _worker() -> "ThreadPoolExecutor":
    """
    The one thread in which stores are asked, in turn: no tool keeps it.
    """
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, "guardrails-store")


if hasattr(os, "register_at_fork"):
    # No thread of the parent is there in a new process.
    os.register_at_fork(after_in_child=_worker.cache_clear)


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
    closed, begun = child.read(lambda state, _: (state.closed, state.n > 0))
    if closed:
        raise SessionError(f"`{child.id}` was closed: give the next child another name")
    child.share = share if share < 1 else None
    held = parent.read(lambda state, _: state.reserved.get(child.id)) if again and begun else None
    runs, over = held is not None, None
    if not runs:
        part = {} if share == 1 else {"share": share}
        made: Any = parent.event("reserve", {"child": child.id, "amounts": amounts, **part}, needed=True)
        held, over = made.limits, made.refused
    child.lay(partial(Chain.with_limits, **settings_of(held or {})))
    if not runs:
        child.event("open", {"limits": held or {}, **({} if over is None else {"over": list(over)})})


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
    while (left := parent.look(lambda places: budget.left(places[0].state, limit.name, places[0].now_ms)) or 0) <= 1:
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
    own = {name: amount for name, amount in amounts.items() if name != ITERATIONS}
    if child.parent is not None and own:
        child.parent.event("reserve", {"child": child.id, "amounts": own, "more": True}, needed=True)


# Records


class Recorder:
    """
    The records of the session *session_id*, handed to *sink* as soon as their events have happened. Exceptions of a sink
    are logged once.

    A record waits with its arguments and its result as JSON: as Python objects they may take many times as much, and change.
    """

    def __init__(self, session_id: str, sink: "Sink") -> None:
        # Without records, none of it is imported.
        from guardrails.sinks.base import put_of

        self._session_id, self.sink, self._put = session_id, sink, put_of(sink)

    def decision(self, decision: Decision, plan: Plan) -> None:
        """
        Hand over the event of a decision, and those that happened before it: admissions that were given up, a claim.
        """
        session = self._session_id
        if decision.expired or decision.claim_n:
            self._before(decision)
        if decision.repeated or not decision.n:
            return
        arguments = decision.call.canonical or exact(records.snapshot(decision.call))
        # A record is made when it is written: what it is made of changes no more.
        record = partial(records.call_record, session, decision, plan, arguments)
        self.hand(record, RECORD_BYTES + len(arguments))
        if decision.park_n:
            self.hand(partial(records.park_record, session, decision), EVENT_BYTES)

    def _before(self, decision: Decision) -> None:
        session, run, at_ms, marks = self._session_id, decision.run, decision.at_ms, decision.marks or {}
        for n, pending, scopes in decision.expired:
            # Where nothing else happened, the last of them is the event that has a place in the family.
            last = decision.repeated and not decision.claim_n and pending is decision.expired[-1][1]
            places = {**scopes, **(marks if last else {})}
            self.hand(records.expire_record(session, run, n, at_ms, pending) | places, EVENT_BYTES)
        if decision.claim_n:
            # An approval is used by whoever asks first, who may only ask.
            parked = {"id": decision.call.id, "claimed": decision.claimed} if decision.park_n else {}
            values = {"call_n": decision.n, **parked}
            claim = records.event_record("claim", session, run, decision.claim_n, at_ms, values)
            self.hand(claim | marks, EVENT_BYTES)

    def end(self, decision: Decision, end: End, completion: Completion) -> None:
        """
        Hand over how a call ended, if the session's state knows of it.
        """
        if completion.n:
            record = partial(records.settle_record, self._session_id, decision, end, completion)
            self.hand(record, RECORD_BYTES if end.rendered is None else RECORD_BYTES + len(end.rendered.payload))

    def event(self, name: str, happened: Happened, values: Mapping[str, Any]) -> None:
        """
        Hand over any other event.
        """
        record = records.event_record(name, self._session_id, happened.run, happened.n, happened.at_ms, values)
        self.hand(record | (happened.marks or {}), EVENT_BYTES)

    def hand(self, record: "Entry", size: int) -> None:
        """
        Hand over one *record* of *size* bytes.
        """
        try:
            self._put(record, size)
        except Exception as error:  # a record never fails the call it is about
            log_loss(self.sink, error)


def log_loss(sink: "Sink", error: Exception) -> None:
    """
    Say in the log, once, that *sink* raised *error*.
    """
    kind = type(sink).__qualname__
    warn_once(f"sink {kind}", "the sink `%s` raised: %r; its records are lost", kind, error)


def new_id() -> str:
    """
    Returns an id that no other process draws: of a call without one, or of a life of a session, whose name may live again and counts from 1
    then.
    """
    return os.urandom(8).hex()
