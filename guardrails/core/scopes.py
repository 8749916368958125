"""
Sessions that share limits: what a user, a tenant or everyone uses together.

A scope is a state of its own with guards of its own. The guards of a call's session and those of its scopes decide it
in one step. It is admitted in all of them, or in none. A scope holds amounts, and no calls: what a call took from it is known to the
call's session alone, which gives it back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from guardrails.core.chain import FAR_MS, Chain, Hook, Plan
from guardrails.core.guards.base import Edge, Facts
from guardrails.core.guards.budget import NO_LIMITS
from guardrails.core.refusals import broken
from guardrails.core.state import Pending, SessionState, touch
from guardrails.core.values.types import Denial, Outcome


OPEN: Final = "calls"
"""Under this name a scope has reserved what open calls are held to cost."""
_COUNTS: Final = ("n", "calls", "cost", "tokens", "now_ms")
_HELD: Final = {"held_cost": "max_cost", "held_tokens": "max_tokens"}
_FIELDS: Final = tuple(each.name for each in fields(SessionState) if each.init)
GLOBAL: Final = "global"
"""The scope that everyone is in: its id need not be said."""


@dataclass(slots=True)
class Place:
    """
    One place in which a call counts, for one step: its session, or one of the session's scopes.
    """

    name: str
    """Of the scope; `""`: it is the session itself."""
    id: str
    chain: Chain
    state: SessionState
    now_ms: int
    """Its own time: each state's is clamped by itself."""
    holder: str = ""
    """In a scope: the session that the call is of."""
    plan: Plan = field(init=False)
    """All that applies here to the tool of a call, once there is one."""

    def says(self, denial: Denial) -> Denial:
        """
        Returns *denial* in the words of this place; that of a scope is told by its code and in its message.
        """
        worded = self.chain.worded(denial)
        if not self.name:
            return worded
        if isinstance(self.state, SharedState):
            self.state.objected = True
        if "message" not in self.chain.messages.get(denial.code, {}):
            shared = "shared by all sessions"
            whose = shared if self.name == GLOBAL else f"that of the {self.name}, shared by all of its sessions"
            worded = replace(worded, message=f"{denial.message} The limit is {whose}.")
        return replace(worded, code=self.code(denial.code), scope=self.name)

    def broken(self, guard: str) -> Denial | None:
        """
        Returns the end of the session that follows if *guard* failed at what it counts or ends; None: the policy goes on without it.
        """
        goes_on = self.chain.on_error == "allow" or self.chain.mode != "enforce"
        return None if goes_on else self.chain.worded(broken(self.code(guard), ends=True))

    def code(self, code: str) -> str:
        """
        Returns *code*, or a name of a guard, as it is written of this place.
        """
        return f"{self.name}.{code}" if self.name else code


@dataclass(slots=True)
class SharedState(SessionState):
    """
    The state of a scope in a store in which several change it at once: amounts, and a rest that seldom changes.

    What each adds to its amounts adds up. A step looks at them as they were, and the store asks `edges` whether it would have done the
    same by those that are there now; else it is done again. Its amounts are what it counts, and by `GUARD/NAME` every whole number that
    a guard remembers by a name.
    """

    chain: Chain | None = field(default=None, compare=False)
    """Of its guards, by which a step was decided."""
    objected: bool = field(default=False, compare=False)
    """A guard of it had something to say in that step."""
    places: list[list[Any]] = field(default_factory=list, compare=False)
    """What is recorded of the step's place; its number, the third, is known once it is kept."""

    @classmethod
    def of(cls, rest: SessionState, amounts: Mapping[str, int]) -> "SharedState":
        """
        Returns the state of a *rest*, as `rest` gave it, and *amounts*.
        """
        made = cls(**{name: getattr(rest, name) for name in _FIELDS})
        made.have(amounts)
        return made

    def amounts(self) -> dict[str, int]:
        """
        Returns its amounts by name.
        """
        held = self.reserved.get(OPEN, {})
        made = {name: getattr(self, name) for name in _COUNTS} | {name: held.get(its, 0) for name, its in _HELD.items()}
        for guard, mine in self.own.items():
            if type(mine) is dict:
                made.update([(f"{guard}/{name}", value) for name, value in mine.items() if type(value) is int])
        return made

    def have(self, amounts: Mapping[str, int]) -> None:
        """
        Have these *amounts* in place of its own.
        """
        self.own = {guard: dict(mine) if type(mine) is dict else mine for guard, mine in self.own.items()}
        for name, value in amounts.items():
            guard, _, own = name.rpartition("/")
            if guard:
                self.own.setdefault(guard, {})[own] = value
            elif name in _COUNTS:
                setattr(self, name, value)
        if amounts:
            held = {its: amounts[name] for name, its in _HELD.items() if amounts.get(name)}
            self.reserved = {OPEN: held} if held else {}

    def rest(self) -> "SharedState":
        """
        Returns what it is beside its amounts.
        """
        own = {guard: _rest(mine) for guard, mine in self.own.items()}
        return replace(self, n=0, calls=0, cost=0, tokens=0, now_ms=0, behind_ms=0, reserved={}, own=own)

    def edges(self) -> list[Edge] | None:
        """
        Returns the edges of its guards; None if one goes by more than amounts, so that nothing else may have happened meanwhile.
        """
        made: list[Edge] = []
        for guard in () if self.chain is None else self.chain.guards:
            own = guard.edges(self, self.own.get(guard.key), self.now_ms)
            if own is None:
                return None
            for edge in own:
                names = [name if name in _COUNTS or name in _HELD else f"{guard.key}/{name}" for name in edge.names]
                made.append(edge._replace(names=tuple(names)))
        return None if self.chain is None else made


def _rest(mine: Any) -> Any:
    return mine if type(mine) is not dict else {name: value for name, value in mine.items() if type(value) is not int}


def first_cause(place: Place, hooks: tuple[Hook, ...], facts: Facts) -> Denial | None:
    """
    Returns the first cause that one of *hooks* finds, in the words of *place*. A guard that fails ends the session too, unless the
    policy goes on without it.
    """
    state, mine = place.state, place.state.own.get
    for name, key, _, spent in hooks:
        try:
            cause = spent(state, mine(key), facts)
        except Exception:  # a guard that fails is decided by `on_error`
            if (end := place.broken(name)) is not None:
                return end
        else:
            if cause is not None:
                return place.says(cause)
    return None


def opened(
    scopes: Sequence[tuple[str, str, Chain]], states: Sequence[SessionState], clocks: Sequence[int], holder: str
) -> list[Place]:
    """
    Returns *scopes*, each (name, id, chain), of the session *holder*, with their *states*, at the times of their *clocks*. Time passes in
    them.
    """
    made = []
    for (name, own, chain), state, now_ms in zip(scopes, states, clocks, strict=True):
        now = touch(state, now_ms)
        if isinstance(state, SharedState):
            state.chain = chain
        made.append(Place(name, own, chain, state, now, holder))
    return made


def progress(places: Iterable[Place], *, near: bool = False) -> dict[str, Any]:
    """
    Returns the amounts that the session has used. The amount left is of the nearest limit, its own or that of a scope; with *near* only
    if a fifth of it, or less than ten, are left.
    """
    shown, *others = [(one.chain.budget or NO_LIMITS).progress(one.state, one.now_ms, near=near) for one in places]
    for left in others:
        shown |= {key: min(amount, shown.get(key, amount)) for key, amount in left.items() if key != "calls_used"}
    return shown


def time_left(places: Iterable[Place]) -> int | None:
    """
    Returns milliseconds until the time of the session, or of a scope, is up. Returns None if there is no limit, or one
    that is days away.
    """
    times = [(one.chain.budget or NO_LIMITS).left(one.state, "max_elapsed", one.now_ms) for one in places]
    return min((time for time in times if time is not None and time <= FAR_MS), default=None)


def marks(state: SessionState, scopes: Sequence[Place]) -> dict[str, Any] | None:
    """
    Returns the place of the event that was just numbered among those of other sessions. A record adds it so that they
    can be replayed together. For each scope its id, life, number and time; of a child, the place in its family. None:
    it shares nothing.
    """
    made: dict[str, Any] = {}
    if scopes:
        made["scopes"] = {one.name: [one.id, one.state.run, one.state.n, one.state.now_ms] for one in scopes}
        for one in scopes:
            if isinstance(one.state, SharedState):
                one.state.places.append(made["scopes"][one.name])
    if state.family is not None:
        made["family"] = list(state.family[1:])
    return made or None


# A call of a session in the amounts of a scope


def hold_in(scope: SessionState, call: Pending) -> None:
    """
    Count a call that a session was admitted to make, and hold what it holds.
    """
    scope.n += 1
    scope.calls += 1
    hold(scope, call.cost, call.tokens)


def move_in(scope: SessionState, call: Pending, event: str) -> None:
    """
    Let *event* of a call be one of the scope too: one that never ran gives back what it took.
    """
    scope.n += 1
    if event in ("refuse", "withdraw"):
        # A scope that was forgotten counts nothing of it.
        scope.calls = max(0, scope.calls - 1)
        hold(scope, -call.cost, -call.tokens)
    elif event == "expire":
        settle_in(scope, (call.cost, call.tokens), Outcome())


def settle_in(scope: SessionState, estimate: tuple[int, int], outcome: Outcome) -> None:
    """
    Charge what a call cost, in place of its *estimate*.
    """
    hold(scope, -estimate[0], -estimate[1])
    scope.cost += estimate[0] if outcome.cost is None else outcome.cost
    scope.tokens += estimate[1] if outcome.tokens is None else outcome.tokens


def hold(scope: SessionState, cost: int, tokens: int) -> None:
    """
    Hold so much more for open calls, in micro-dollars and tokens.
    """
    held = scope.reserved.get(OPEN, {})
    amounts = (("max_cost", cost), ("max_tokens", tokens))
    left = {name: amount for name, more in amounts if (amount := held.get(name, 0) + more) > 0}
    scope.reserved = {OPEN: left} if left else {}
