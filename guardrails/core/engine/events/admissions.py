"""
Events that end admitted calls which neither run nor settle, and events that only mark a time or a turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from guardrails.core.engine.decision import Decision
from guardrails.core.engine.engine import Engine, Event, Happened
from guardrails.core.engine.exhaustion import reopen, undo
from guardrails.core.engine.scopes import Scope, free_all
from guardrails.core.state.admissions import forgo, lose, withdraw
from guardrails.core.state.entries import Pending, pending_key
from guardrails.core.state.parking import approve, digest_of, parked, refuse, suspend
from guardrails.core.state.scope_state import approve_held, let_go, suspend_held, withdraw_held
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import go_on, number, time_of, touch
from guardrails.core.values.errors import SessionError


@dataclass(slots=True)
class Note(Event[Happened]):
    """
    Something happens that changes nothing here, and has a number all the same: a call of another life ends, a scope's limits
    are raised.
    """

    now_ms: int

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        for scope in scopes:
            number(scope.state)
            go_on(scope.state)
        touch(state, self.now_ms)
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Adopt(Event[Happened]):
    """
    The policy of a session has changed: it goes on if a limit had ended it that is not used up any more.
    """

    now_ms: int

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        for scope in scopes:
            number(scope.state)
        touch(state, self.now_ms)
        reopen(engine.chain, state)
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Expire(Event[None]):
    """
    The admission number *seq* is given up, as a record tells it: the time of the next event would find it overdue.
    """

    now_ms: int
    seq: int

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> None:
        touch(state, self.now_ms)
        for pending in [one for one in state.pending.values() if one.seq == self.seq]:
            forgo(state, pending)
            if pending.parked is not None:
                undo(engine.chain, state, pending)
            number(state)


@dataclass(slots=True)
class Unpark(Event[Happened]):
    """
    A person has approved the parked call number *seq*, or refused it for a *reason*.

    Raises SessionError if that call does not wait any more.
    """

    now_ms: int
    seq: int
    approved: bool
    reason: str = ""

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        pending = parked(state, self.seq)
        waits = None if pending is None else pending.parked
        if pending is None or waits is None or (self.approved and waits.approved):
            raise SessionError("the call does not wait for an answer any more")
        if self.approved and pending.expires_ms <= time_of(state, self.now_ms):
            raise SessionError("the answer comes too late: the time of the question is over")
        # Time is noted last: what is refused is no event.
        now = touch(state, self.now_ms)
        for scope in scopes:
            number(scope.state)
            (approve_held if self.approved else let_go)(scope.state, engine.id, self.seq)
            if not self.approved:
                undo(scope.chain, scope.state, pending)
        if self.approved:
            approve(pending, now)
        else:
            refuse(state, pending, self.reason)
            undo(engine.chain, state, pending)
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Suspend(Event[Happened]):
    """
    The tool of *decision* has handed its call back to the host, which makes it again later. The admission stays open, with
    all that it holds; one that is over already stays so.
    """

    now_ms: int
    decision: Decision

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        touch(state, self.now_ms)
        pending = _open(state, self.decision)
        if pending is not None and pending.parked is not None:
            pending = None
        for scope in scopes:
            number(scope.state)
            if pending is not None:
                suspend_held(scope.state, engine.id, pending.seq)
        if pending is not None:
            suspend(state, pending, digest_of(self.decision.call))
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Withdraw(Event[Happened]):
    """
    The call of *decision* never ran and will not: what it held comes back, and it is not counted. One that is over stays so.
    """

    now_ms: int
    decision: Decision

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        touch(state, self.now_ms)
        pending = _open(state, self.decision)
        if pending is not None:
            free_all(engine.id, state, scopes, f"c{pending.seq}")
            withdraw(state, pending)
            undo(engine.chain, state, pending)
            reopen(engine.chain, state)
        for scope in scopes:
            number(scope.state)
            if pending is not None:
                withdraw_held(scope.state, engine.id, pending)
                undo(scope.chain, scope.state, pending)
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Lose(Event[None]):
    """
    The end of the call of *decision* will never be told: the next event gives it up. It is no event of its own.
    """

    now_ms: int
    decision: Decision

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> None:
        pending = _open(state, self.decision)
        if pending is not None:
            lose(pending, self.now_ms)


def _open(state: SessionState, decision: Decision) -> Pending | None:
    """
    Returns the admission that *decision* made, as long as it is open.
    """
    pending = state.pending.get(pending_key(decision.call.id, decision.call.sig, decision.seq))
    return pending if pending is not None and pending.seq == decision.seq else None
