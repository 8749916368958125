"""
Sessions that share limits: what a user, a tenant or everyone uses together.

A scope is a state of its own with guards of its own. The guards of a call's session and those of its scopes decide it
in one step. It is admitted in all of them, or in none. A scope counts every call, and holds those that cost something or wait.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from guardrails.core.chain import FAR_MS, Chain, Hook, first_cause
from guardrails.core.guards.base import Facts
from guardrails.core.state import (
    Entry,
    Pending,
    SessionState,
    approve,
    drop,
    expire,
    held_key,
    move,
    overdue,
    suspend,
    time_of,
    touch,
)
from guardrails.core.values.types import Denial, Outcome


GLOBAL: Final = "global"
"""The scope that everyone is in: its id need not be said."""


class Scope(NamedTuple):
    """
    One scope of a session, for one step.
    """

    name: str
    id: str
    chain: Chain
    state: SessionState
    now_ms: int
    """Its own time: each state's is clamped by itself."""

    def says(self, said: Denial) -> Denial:
        """
        Returns *said* as an objection of this scope: by its code, and in its message.
        """
        code = f"{self.name}.{said.code}"
        worded = self.chain.worded(said)
        if "message" not in self.chain.messages.get(said.code, {}):
            shared = "shared by all sessions"
            whose = shared if self.name == GLOBAL else f"that of the {self.name}, shared by all of its sessions"
            worded = replace(worded, message=f"{said.message} The limit is {whose}.")
        return replace(worded, code=code, scope=self.name)

    def cause(self, hooks: tuple[Hook, ...], facts: Facts) -> Denial | None:
        """
        Returns the first cause that one of *hooks* finds to be used up.
        """
        cause = first_cause(self.chain, hooks, self.state, facts)
        return None if cause is None else self.says(cause)


def opened(
    scopes: Sequence[tuple[str, str, Chain]], states: Sequence[SessionState], clocks: Sequence[int]
) -> list[Scope]:
    """
    Returns *scopes*, each (name, id, chain), with their *states*, at the times of their *clocks*. Time passes in them.
    """
    made = []
    for (name, own, chain), state, now_ms in zip(scopes, states, clocks, strict=True):
        now = touch(state, now_ms)
        for pending in overdue(state, now) if state.pending else ():
            expire(state, pending)
        made.append(Scope(name, own, chain, state, now))
    return made


def seen(scopes: Sequence[tuple[str, str, Chain]], states: Sequence[SessionState], now_ms: int) -> list[Scope]:
    """
    Returns the same as a reader finds them at *now_ms*.
    """
    return [
        Scope(name, own, chain, state, time_of(state, now_ms))
        for (name, own, chain), state in zip(scopes, states, strict=True)
    ]


def progress(
    chain: Chain, state: SessionState, now_ms: int, scopes: Iterable[Scope], *, near: bool = False
) -> dict[str, Any]:
    """
    Returns the amounts that the session has used at its time *now_ms*. The amount left is of the nearest limit, its own
    or that of a scope; with *near* only if a fifth of it, or less than ten, are left.
    """
    shown = own_progress(chain, state, now_ms, near=near)
    for scope in scopes:
        for key, left in own_progress(scope.chain, scope.state, scope.now_ms, near=near).items():
            if key != "calls_used":
                present: Any = shown.get(key)
                shown[key] = left if present is None else min(present, left)
    return shown


def own_progress(chain: Chain, state: SessionState, now_ms: int, *, near: bool = False) -> dict[str, Any]:
    """
    Returns the used and the remaining amounts of the session's own limits, or of those that are *near*; money in USD, time in seconds.
    """
    return {"calls_used": state.calls} if chain.budget is None else chain.budget.progress(state, now_ms, near=near)


def time_left(chain: Chain, state: SessionState, scopes: Iterable[Scope]) -> int | None:
    """
    Returns milliseconds until the time of the session, or of a scope, is up. Returns None if there is no limit, or one
    that is days away.
    """
    left = None if chain.budget is None else chain.budget.left(state, "max_elapsed", state.now_ms)
    for scope in scopes:
        limits = scope.chain.budget
        its = None if limits is None else limits.left(scope.state, "max_elapsed", scope.now_ms)
        left = its if left is None or (its is not None and its < left) else left
    return None if left is None or left > FAR_MS else left


def marks(state: SessionState, scopes: Sequence[Scope]) -> dict[str, Any] | None:
    """
    Returns the place of the event that was just numbered among those of other sessions. A record adds it so that they
    can be replayed together. For each scope its id, life, number and time; of a child, the place in its family. None:
    it shares nothing.
    """
    made: dict[str, Any] = {}
    if scopes:
        made["scopes"] = {
            scope.name: [scope.id, scope.state.run, scope.state.n, scope.state.now_ms] for scope in scopes
        }
    if state.family is not None:
        made["family"] = list(state.family[1:])
    return made or None


# A call of a session in the state of a scope


def hold_in(scope: SessionState, holder: str, call: Pending) -> None:
    """
    Count a call that the session *holder* was admitted to make, and hold what it holds.
    """
    scope.n += 1
    scope.calls += 1
    if not (call.cost or call.tokens or call.question):
        return
    entry = Entry(call.seq, call.tool, None, scope.now_ms, changes=False)
    held = Pending(entry, holder, 0, scope.now_ms + call.expires_ms - call.at_ms, call.cost, call.tokens)
    if call.question is not None:
        held.stage, held.question = (
            call.stage,
            replace(call.question, message="", hint="", reason="", digest="", shown=""),
        )
    key = held_key(holder, call.seq)
    earlier = scope.pending.pop(key, None)
    if earlier is not None:
        # A session that was forgotten and lives again counts anew.
        scope.cost += earlier.cost
        scope.tokens += earlier.tokens
    scope.pending[key] = held


def move_in(scope: SessionState, holder: str, call: Pending, event: str, now_ms: int) -> None:
    """
    Let *event* of a call happen to what the scope holds for it, if it holds something.
    """
    scope.n += 1
    held = scope.pending.get(held_key(holder, call.seq))
    if held is None:
        if event == "withdraw":
            # A scope that was forgotten counts nothing of it.
            scope.calls = max(0, scope.calls - 1)
            scope.cost = max(0, scope.cost - call.cost)
            scope.tokens = max(0, scope.tokens - call.tokens)
    elif event in ("claim", "ask"):
        move(held, event)
        held.question, held.expires_ms = None, scope.now_ms + call.expires_ms - now_ms
    elif event == "approve":
        approve(held, scope.now_ms)
    elif event == "suspend":
        suspend(held, scope.now_ms, "")
    else:
        drop(scope, held, event)


def settle_in(scope: SessionState, holder: str, seq: int, estimate: tuple[int, int], outcome: Outcome) -> None:
    """
    Charge what a call of the session *holder* cost, in place of its *estimate*.
    """
    held = scope.pending.pop(held_key(holder, seq), None)
    if held is None and any(estimate):
        return
    scope.cost += estimate[0] if outcome.cost is None else outcome.cost
    scope.tokens += estimate[1] if outcome.tokens is None else outcome.tokens
