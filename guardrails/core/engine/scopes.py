"""
Sessions that share limits: what a user, a tenant or everyone uses together.

A scope is a state of its own with guards of its own. The guards of a call's session and those of its scopes decide it
in one step. It is admitted in all of them, or in none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from guardrails.core.guards.limits.room import fits
from guardrails.core.state.entries import Hold
from guardrails.core.state.holds import free, hold, note_used
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import time_of
from guardrails.core.values.types import Denial

from .chain import FAR_MS, Chain
from .exhaustion import exhaustion, first_cause, spent
from .exhaustion import progress as own_progress


GLOBAL: Final = "global"
"""The scope that everyone is in: its id need not be said."""
Cause = tuple[str, str]
"""(code, message)"""


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
            whose = (
                "shared by all sessions"
                if self.name == GLOBAL
                else f"that of the {self.name}, shared by all of its sessions"
            )
            worded = replace(worded, message=f"{said.message} The limit is {whose}.")
        return replace(worded, code=code, scope=self.name)

    def cause(self, looks: tuple[Callable[[SessionState, int], Denial | None], ...]) -> Cause | None:
        """
        Returns the first cause that one of *looks* finds to be used up.
        """
        cause = first_cause(self.chain, looks, self.state, self.now_ms)
        if cause is None:
            return None
        said = self.says(cause)
        return said.code, said.message


def seen(scopes: Sequence[tuple[str, str, Chain]], states: Sequence[SessionState], now_ms: int) -> list[Scope]:
    """
    Returns *scopes*, each (name, id, chain), with their *states*, as a reader finds them at *now_ms*.
    """
    return [
        Scope(name, own, chain, state, time_of(state, now_ms))
        for (name, own, chain), state in zip(scopes, states, strict=True)
    ]


def exhausted_by(chain: Chain, state: SessionState, now_ms: int, scopes: Iterable[Scope]) -> Cause | None:
    """
    Returns the cause that has ended the session, by its own limits or by those of its scopes, at its time *now_ms*.
    """
    cause = exhaustion(chain, state, now_ms)
    if cause is not None:
        return cause
    for scope in scopes:
        said = spent(scope.chain, scope.state, scope.now_ms)
        if said is not None:
            said = scope.says(said)
            return said.code, said.message
    return None


def progress(
    chain: Chain, state: SessionState, now_ms: int, scopes: Iterable[Scope], *, near: bool = False
) -> dict[str, Any]:
    """
    Returns the amounts that the session has used at its time *now_ms*. The amount left is of the nearest limit, its own
    or that of a scope; with *near* only if a fifth of it, or less than ten, are left.
    """
    shown: dict[str, Any] = {**own_progress(chain, state, now_ms, near=near)}
    for scope in scopes:
        for key, left in own_progress(scope.chain, scope.state, scope.now_ms, near=near).items():
            if key != "calls_used":
                present: Any = shown.get(key)
                shown[key] = left if present is None else min(present, left)
    return shown


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


def hold_all(
    holder: str,
    state: SessionState,
    scopes: Iterable[Scope],
    key: str,
    amounts: tuple[int, int],
    *,
    lasts_ms: int,
    said: bool = False,
) -> None:
    """
    Hold *amounts*, of micro-dollars and tokens, under *key* of the session *holder*, in its scopes too; see `Hold`.
    """
    hold(state, key, Hold(state.now_ms + lasts_ms, *amounts, said))
    for scope in scopes:
        hold(scope.state, f"{holder}#{key}", Hold(scope.now_ms + lasts_ms, *amounts, said))


def free_all(holder: str, state: SessionState, scopes: Iterable[Scope], key: str) -> None:
    """
    Give back what `hold_all` held.
    """
    free(state, key)
    for scope in scopes:
        free(scope.state, f"{holder}#{key}")


def note_all(chain: Chain, state: SessionState, scopes: Iterable[Scope], name: str, cost: int, tokens: int) -> None:
    """
    Let what a call of the tool *name*, or a response, used count for the averages of those that limit money or tokens.
    """
    for its, each in ((chain, state), *((scope.chain, scope.state) for scope in scopes)):
        if its.reserves:
            note_used(each, name, cost, tokens)


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
        made["family"] = list(state.family)
    return made or None


def unfitting(
    chain: Chain, state: SessionState, scopes: Sequence[Scope], said: tuple[int, int], guess: tuple[int, int]
) -> Cause | None:
    """
    Returns (code, message) of why a model request is not to be made: it does not fit beside the holds.
    """
    shared = ((scope.chain.budget, scope.state, scope.says) for scope in scopes)
    for budget, its, words in (*shared, (chain.budget, state, chain.worded)):
        denial = None if budget is None else fits(budget, its, said, guess, "model request")
        if denial is not None:
            told = words(denial)
            return told.code, told.message
    return None
