"""
Changes to the limits of a session: they are raised, or shared with its children.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.budget_words import usd
from guardrails.core.guards.limits.room import CHILDREN, CHILDREN_LIMIT, crowded
from guardrails.core.state.family import outdate
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import (
    close,
    extend,
    forget_refusals,
    go_on,
    number,
    release,
    reserve,
    set_meters,
    time_of,
    touch,
)
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Denial

from .chain import Chain
from .engine import Engine, Event, Happened
from .events.turns import ended
from .exhaustion import ended_by_refusals, exhaustion
from .scopes import Scope


LIMITS: Final = ("max_calls", "max_turns", "max_cost", "max_tokens", "max_elapsed")
"""Limits as the state names them: money in micro-dollars, time in milliseconds."""
ITERATIONS: Final = "max_tool_iterations"
"""The state's name for the calls that loops may make beyond the limit of each."""
CLOSED: Final = Denial(
    code="session.closed",
    status="limit_reached",
    message="This session is closed.",
    hint="Report what you have.",
    ends_session=True,
)


@dataclass(slots=True)
class Extend(Event[Happened]):
    """
    A session may use *amounts* more than its limits, or more than it has used if that is more; it goes on.

    If it is *shared*, the limits of scopes are raised, and not its own. Raises SessionError for a limit that the policy does
    not set.
    """

    now_ms: int
    amounts: Mapping[str, int]
    shared: bool = False
    asked: bool = False
    """
    A further message of the user asks for it, and no more than *amounts* is left by it. Fuses and a person's answers stay. What
    the model repeated is no strike any more, and what was seen before may be older than what the user did meanwhile.
    """

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        limits = None
        if self.shared:
            for scope in scopes:
                self.raise_in(scope.chain, scope.state, scope.now_ms)
                number(scope.state)
                go_on(scope.state)
            touch(state, self.now_ms)
        else:
            limits = self.raise_in(engine.chain, state, self.now_ms)
        return engine.happened(state, scopes, limits)

    def raise_in(self, chain: Chain, state: SessionState, now_ms: int) -> dict[str, int]:
        """
        Raise the limits of one *state*, whose time is *now_ms*. Returns those that were raised.
        """
        if state.closed:
            raise SessionError("the session is closed: what it did not use was given back")
        # A budget that only observes has limits too: a host that raises them must not break in observe mode.
        budget = chain.limits or Budget()
        used = {
            "max_calls": state.calls,
            "max_turns": state.turns,
            "max_cost": state.cost,
            "max_tokens": state.tokens,
            "max_elapsed": state.spent_ms(time_of(state, now_ms)),
            "max_children": state.meter(CHILDREN),
        }
        limits = {}
        for name, amount in self.amounts.items():
            if name == ITERATIONS:
                # Each loop has a limit of its own; what all may do more is counted here.
                limits[name] = state.limits.get(name, 0) + amount
                continue
            limit = budget.limit(state, name)
            if limit is None:
                raise SessionError(f"the policy sets no limit `{_said(name)}` that could be raised")
            limits[name] = max(limit, used[name] + amount) if self.asked else max(limit, used[name]) + amount
        # Time is noted last: what is refused is no event, and leaves no trace that a replay would miss.
        now = touch(state, now_ms)
        if "max_children" in limits:
            # Of the whole family, as their number is.
            set_meters(state, {CHILDREN_LIMIT: limits.pop("max_children")})
        if self.asked:
            forget_refusals(state)
            outdate(state)
        if not self.asked or limits or ended_by_refusals(chain, state):
            extend(state, limits, forgive=not self.asked)
        ended(chain, state, now)
        return limits


@dataclass(slots=True)
class Reserve(Event[Happened]):
    """
    A *child* begins, with *amounts* of the limits of its parent. A limit that is not named gives a *share* of the rest
    of it, rounded up; time gives all. With *more* the child has begun already, and its own limits are raised by
    *amounts*.

    Raises SessionError if that is more than is left, or the child does not run any more.
    """

    now_ms: int
    child: str
    amounts: Mapping[str, int]
    more: bool = False
    share: float = 1.0

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        held = state.reserved.get(self.child)
        if self.more:
            made = self._more(engine.chain, state, held)
        else:
            made = self._share(engine.chain, state) if held is None else held
        # Time is noted last: what is refused is no event.
        touch(state, self.now_ms)
        reserve(state, self.child, made)
        return engine.happened(state, scopes, None if self.more else made)

    def _share(self, chain: Chain, state: SessionState) -> dict[str, int]:
        child, now = self.child, time_of(state, self.now_ms)
        cause = exhaustion(chain, state, now)
        if cause is not None:
            raise SessionError(f"the session is exhausted ({cause[0]}), so nothing is left for `{child}`")
        narrow = chain.budget and crowded(chain.budget, state, child.count("/"))
        if narrow:
            raise SessionError(f"`{child}` cannot be made: {narrow}")
        left = _left(chain, state, now)
        held: dict[str, int] = {}
        for name in LIMITS:
            own, available = self.amounts.get(name), left[name]
            if own is not None and available is not None and own > available:
                asked = f"{_said(name)} {_shown(name, own)}"
                raise SessionError(f"`{child}` asks for {asked}, {_shown(name, available)} is left")
            amount = self._part(name, available) if own is None else own
            if amount is not None:
                held[name] = max(0, amount)
        if chain.limits is not None and chain.limits.limit(state, "max_children") is not None:
            set_meters(state, {CHILDREN: state.meter(CHILDREN) + 1})
        return held

    def _part(self, name: str, available: int | None) -> int | None:
        # Time passes for all at once, so that nobody has less of it for sharing it.
        if available is None or name == "max_elapsed" or self.share == 1:
            return available
        return ceil(available * self.share)

    def _more(self, chain: Chain, state: SessionState, held: dict[str, int] | None) -> dict[str, int]:
        if held is None:
            raise SessionError(f"`{self.child}` is closed: what it did not use was given back")
        left = _left(chain, state, time_of(state, self.now_ms))
        for name, amount in self.amounts.items():
            available = left[name]
            if available is not None and amount > available:
                asked = f"{_said(name)} {_shown(name, amount)}"
                raise SessionError(f"`{self.child}` asks for {asked} more, {_shown(name, available)} is left")
        return {name: amount + self.amounts.get(name, 0) for name, amount in held.items()}


@dataclass(slots=True)
class Release(Event[Happened]):
    """
    A *child* is over: what it held comes back, and what it *used* is charged.
    """

    now_ms: int
    child: str
    used: Mapping[str, int]

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        touch(state, self.now_ms)
        release(state, self.child, self.used)
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Open(Event[Happened]):
    """
    The clock of a child starts, whose share was just reserved.
    """

    now_ms: int

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        touch(state, self.now_ms)
        return engine.happened(state, scopes)


@dataclass(slots=True)
class Close(Event[Happened]):
    """
    A child is over for good; the limits that come of it are what it has used.
    """

    now_ms: int

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        touch(state, self.now_ms)
        close(state, CLOSED)
        return engine.happened(state, scopes, used_by(state))


def used_by(state: SessionState) -> dict[str, int]:
    """
    Returns the amounts that a session has used, by limit. Open amounts count: estimates that may never settle, children
    that still run.
    """
    used = {
        "max_calls": state.calls,
        "max_turns": state.turns,
        "max_cost": state.cost + state.held_cost,
        "max_tokens": state.tokens + state.held_tokens,
    }
    return {name: amount + state.reserved_by_children(name) for name, amount in used.items()}


def _left(chain: Chain, state: SessionState, now: int) -> dict[str, int | None]:
    budget = chain.budget or Budget()
    return {name: budget.left(state, name, now) for name in LIMITS}


def _said(name: str) -> str:
    return "max_cost_usd" if name == "max_cost" else name


def _shown(name: str, amount: int) -> str:
    return usd(amount) if name == "max_cost" else str(amount)
