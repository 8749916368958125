"""
Trips between the shared state of a scope and its leases: each event is one trip of one lease.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.engine import Engine, Event, Happened
from guardrails.core.engine.scopes import Scope
from guardrails.core.engine.sharing import Extend
from guardrails.core.guards.lease import Lease
from guardrails.core.guards.limits.budget_words import ELSEWHERE_MS
from guardrails.core.state.entries import NO_AMOUNTS, Amounts
from guardrails.core.state.entries import Lease as Known
from guardrails.core.state.leases import (
    LARGE,
    METERED,
    PARTS,
    blow_fuses,
    count_unheard,
    each,
    end_lease,
    fuses,
    grant,
    part_of,
    recall,
    report,
    take_part,
)
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import go_on, number, touch


class Lent(NamedTuple):
    """
    The result of a trip.
    """

    n: int
    """The number of the event in the shared state."""
    at_ms: int
    run: str
    granted: Amounts
    """To the lease, from its beginning."""
    foreign: Amounts
    """The amounts that all others have used."""
    elsewhere: dict[str, int]
    """The unused amounts that are not the lease's, by limit; a name that is not there has no limit."""
    rest: dict[str, int]
    """The amounts that nobody holds, by limit."""
    limits: dict[str, int]
    """Those that were raised."""
    fuses: dict[str, int]
    trips: int
    """Of this lease so far; 0: it was lost, and is over."""
    enough: bool
    """All that was needed is granted."""
    others: tuple[tuple[str, int], ...]
    """(holder, trips) of the other leases."""


@dataclass(slots=True, kw_only=True)
class Lend(Event[Lent]):
    """
    The lease of *holder* reports to the shared state of its scope. It has *used* so much from its beginning and *holds*
    estimates. It *wants* room for more, or None.
    """

    now_ms: int
    holder: str
    used: Amounts
    holds: Amounts
    wants: Amounts | None = None
    told: Amounts = NO_AMOUNTS
    """The amounts that it had used as of the trip before."""
    known: bool = False
    """It was here before."""
    lost: tuple[tuple[str, int], ...] = ()
    """(holder, trips) of leases of which nobody has heard for their time."""
    back: bool = False
    """It gives back what it does not use."""
    over: bool = False
    """It gives back, and is over if it holds nothing."""
    fuses: Mapping[str, int] = field(default_factory=dict)
    """Counters of fuses that have blown under it."""
    amounts: Mapping[str, int] | None = None
    """By what the limits of the scope are raised."""

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Lent:
        chain = engine.chain
        if self.amounts is not None:
            # What is refused is no event.
            Extend(self.now_ms, self.amounts, shared=True).raise_in(chain, state, self.now_ms)
            go_on(state)
        touch(state, self.now_ms)
        burns = lease_of(chain).lost == "burn"
        for holder, trips in self.lost:
            lease = state.leases.get(holder)
            if lease is not None and lease.trips == trips:
                end_lease(state, holder, burns=burns)
        blow_fuses(state, self.fuses)
        if self.known and self.holder not in state.leases:
            if not burns:
                # A call that is still open ends under no lease any more: its estimate stays charged.
                unheard = each(lambda place, _: self.used[place] + self.holds[place] - self.told[place])
                count_unheard(state, unheard)
            return self._lent(chain, state, NO_AMOUNTS, enough=True)
        lease = report(state, self.holder, self.used)
        # What was admitted is the lease's, even if it is over: so it is without leases.
        bound = each(lambda place, _: self.used[place] + self.holds[place])
        back = self.back or self.over
        recalled = lease.recalled and not back
        granted = bound if back else each(lambda place, _: max(lease.granted[place], bound[place]))
        grant(state, self.holder, granted, recalled=recalled)
        enough = True
        for name, rest in rest_of(chain, state).items():
            if rest < 0:
                # More was used than was held: what nobody uses makes up for it.
                recall(state, "", name)
            if self.wants is None:
                continue
            place, need = METERED.index(name), self.wants[METERED.index(name)]
            used = self.used[place]
            lacks = max(bound[place] + need if need else 0, used + 1) - granted[place]
            if lacks > max(rest, 0):
                enough = False
                recall(state, self.holder, name)
            elif lacks >= 0 and rest > 0:
                part = min(rest, part_of(rest, used, len(state.leases)))
                if part * len(state.leases) * PARTS > rest - part and not recalled:
                    recall(state, self.holder, name, above=LARGE * part)
                granted = _more(granted, place, lacks if recalled else max(lacks, part))
        grant(state, self.holder, granted, recalled=state.leases[self.holder].recalled)
        made = self._lent(chain, state, granted, enough=enough)
        if self.over and self.holds == NO_AMOUNTS:
            end_lease(state, self.holder, burns=False)
        return made

    def _lent(self, chain: Chain, state: SessionState, granted: Amounts, *, enough: bool) -> Lent:
        lease = state.leases.get(self.holder)
        used = NO_AMOUNTS if lease is None else lease.used
        rest = rest_of(chain, state)
        held = {"max_calls": 0, "max_cost": state.held_cost, "max_tokens": state.held_tokens}
        own = state.reserved.get(self.holder, {})
        return Lent(
            n=number(state),
            at_ms=state.now_ms,
            run=state.run,
            granted=granted,
            foreign=(state.calls - used[0], state.cost - used[1], state.tokens - used[2]),
            elsewhere={
                name: left + held[name] + state.reserved_by_children(name) - own.get(name, 0)
                for name, left in rest.items()
            },
            rest={name: max(0, left) for name, left in rest.items()},
            limits=dict(state.limits),
            fuses=fuses(state),
            trips=0 if lease is None else lease.trips,
            enough=enough,
            others=tuple((holder, other.trips) for holder, other in state.leases.items() if holder != self.holder),
        )


@dataclass(slots=True)
class Borrow(Event[Happened]):
    """
    The result of a trip reaches the state of the lease.
    """

    now_ms: int
    lent: Lent

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Happened:
        lent, now = self.lent, touch(state, self.now_ms)
        take_part(
            state,
            lent.granted,
            lent.foreign,
            lent.elsewhere,
            rest=lent.rest,
            limits=lent.limits,
            blown=lent.fuses,
            trips=lent.trips,
            dry_ms=0 if lent.enough else now + ELSEWHERE_MS,
        )
        return engine.happened(state, scopes)


def lease_of(chain: Chain) -> Lease:
    """
    Returns how parts of the scope of *chain* are held. Raises LookupError if they are not.
    """
    for guard in chain.guards:
        if isinstance(guard, Lease):
            return guard
    raise LookupError("the scope has no `lease`")


def standing(chain: Chain, holder: str, states: Sequence[SessionState]) -> tuple[Known | None, dict[str, int]]:
    """
    Returns the entry of the shared state for the lease of *holder*, None if it is over, and the rest that nobody holds.
    It changes no state.
    """
    return states[0].leases.get(holder), rest_of(chain, states[0])


def rest_of(chain: Chain, state: SessionState) -> dict[str, int]:
    """
    Returns the part of each limit that nobody holds.
    """
    if chain.budget is None:
        return {}
    left = ((name, chain.budget.left(state, name, state.now_ms)) for name in METERED)
    return {name: amount for name, amount in left if amount is not None}


def _more(granted: Amounts, place: int, amount: int) -> Amounts:
    return each(lambda at, _: granted[at] + amount * (at == place))
