"""
Parts of a scope's limits that workers hold. The shared state knows its leases, and the state of a lease knows the rest.

The state of a lease is one of a scope, for one worker. The use of other workers counts in it, and all but its own part
is reserved elsewhere. So the guards of the scope decide on it as on the shared one.
"""

from collections.abc import Callable, Mapping
from typing import Final

from .entries import NO_AMOUNTS, Amounts, Lease, Part
from .state import NEVER, SessionState
from .totals import release, reserve


METERED: Final = ("max_calls", "max_cost", "max_tokens")
"""The limits that are lent, in the order of `Amounts`."""
ELSEWHERE: Final = "*"
"""Who holds, in the state of a lease, all that is not its own."""
PARTS: Final = 2
"""Of what nobody holds, each lease may take one part in so many for each lease there is."""
LARGE: Final = 4
"""A lease that holds so many times what another takes at once is asked to give back, before nothing is left."""
FIRST: Final = 256
"""The least that a lease may take at once is one part in so many, after any use."""


def part_of(rest: int, used: int, leases: int) -> int:
    """
    Returns the amount that a lease takes at once of *rest*, which nobody holds. It depends on the amount *used* under
    it and on the number of *leases*.
    """
    return max(1, min(rest // (PARTS * leases), max(rest // FIRST, used)))


def report(state: SessionState, holder: str, used: Amounts) -> Lease:
    """
    Count in the shared *state* the amounts that the lease of *holder* has *used* from its beginning. Returns the lease.
    """
    known = state.leases.get(holder, _NEW)
    calls, cost, tokens = (now - before for now, before in zip(used, known.used, strict=True))
    state.calls += calls
    state.cost += cost
    state.tokens += tokens
    made = state.leases[holder] = Lease(known.granted, used, known.trips + 1, known.recalled)
    return made


def grant(state: SessionState, holder: str, granted: Amounts, *, recalled: bool) -> None:
    """
    Let the lease of *holder* be one of *granted* from its beginning. The unused part of that is reserved for it.
    """
    lease = state.leases[holder] = state.leases[holder]._replace(granted=granted, recalled=recalled)
    left = zip(METERED, granted, lease.used, strict=True)
    reserve(state, holder, {name: more - less for name, more, less in left if more != less})


def end_lease(state: SessionState, holder: str, *, burns: bool) -> None:
    """
    Forget the lease of *holder* in the shared *state*. Its rest counts as used if it *burns*, else it is free.
    """
    left = state.reserved.get(holder, {})
    if state.leases.pop(holder, None) is not None:
        release(state, holder, left if burns else {})


def count_unheard(state: SessionState, used: Amounts) -> None:
    """
    Count in the shared *state* the amounts *used* under a lease that is over.
    """
    state.calls += used[0]
    state.cost += used[1]
    state.tokens += used[2]


def recall(state: SessionState, holder: str, name: str, *, above: int = 0) -> None:
    """
    Ask all but *holder* to give back what they do not use, if they hold more than *above* of the limit *name*.
    """
    for other, lease in tuple(state.leases.items()):
        if other != holder and not lease.recalled and state.reserved.get(other, {}).get(name, 0) > above:
            state.leases[other] = lease._replace(recalled=True)


def blow_fuses(state: SessionState, fuses: Mapping[str, int]) -> None:
    """
    Take over the counters of *fuses* that have blown elsewhere.
    """
    if fuses:
        state.meters = {**state.meters, **fuses}


def fuses(state: SessionState) -> dict[str, int]:
    """
    Returns the counters of the fuses that have blown.
    """
    return {key: value for key, value in state.meters.items() if value < 0} if state.meters else {}


def take_part(
    state: SessionState,
    granted: Amounts,
    foreign: Amounts,
    elsewhere: Mapping[str, int],
    *,
    rest: Mapping[str, int],
    limits: Mapping[str, int],
    blown: Mapping[str, int],
    trips: int,
    dry_ms: int,
) -> None:
    """
    Let the *state* of a lease know its amounts. It was *granted* so much from its beginning, others have used *foreign*
    and hold *elsewhere*, and nobody holds *rest*. Until *dry_ms* there is no more to take.
    """
    before = NO_AMOUNTS if state.part is None else state.part.foreign
    state.calls += foreign[0] - before[0]
    state.cost += foreign[1] - before[1]
    state.tokens += foreign[2] - before[2]
    state.limits = dict(limits)
    state.meters = {**{key: value for key, value in state.meters.items() if value >= 0}, **blown}
    state.reserved = {ELSEWHERE: dict(elsewhere)}
    calls, cost, tokens = (
        others + own if name in elsewhere else NEVER
        for name, others, own in zip(METERED, foreign, granted, strict=True)
    )
    caps, known = (calls, cost, tokens), tuple(blown)
    state.part = Part(granted, foreign, caps, known, rest=dict(rest), trips=trips, dry_ms=dry_ms)


def retreat(state: SessionState) -> None:
    """
    Let the lease of *state* admit nothing more before its next trip, which gives back what it has not used or held by now.
    """
    part = state.part
    if part is not None:
        calls, cost, tokens = part.caps
        caps = (
            min(calls, state.calls),
            min(cost, state.cost + state.held_cost),
            min(tokens, state.tokens + state.held_tokens),
        )
        state.part = part._replace(caps=caps, dry_ms=0)


def used_of(state: SessionState) -> Amounts:
    """
    Returns the amounts that have been used under the lease of *state* from its beginning.
    """
    foreign = NO_AMOUNTS if state.part is None else state.part.foreign
    return state.calls - foreign[0], state.cost - foreign[1], state.tokens - foreign[2]


def is_short(state: SessionState, need: Amounts, now_ms: int) -> bool:
    """
    Returns whether the lease of *state* has less left than *need*, and more may be had when the clock of its worker
    says *now_ms*.
    """
    part = state.part
    if part is None:
        return True
    calls, cost, tokens = part.caps
    _, dear, long = need
    fits = (
        state.calls + need[0] <= calls
        and state.cost < cost
        and state.tokens < tokens
        and (not dear or state.cost + state.held_cost + dear <= cost)
        and (not long or state.tokens + state.held_tokens + long <= tokens)
    )
    return not fits and max(state.now_ms, now_ms) >= part.dry_ms


def is_over(state: SessionState) -> bool:
    """
    Returns whether the lease of *state* has used and holds more than it was granted, or has blown a fuse that was not
    told.
    """
    part = state.part
    calls, cost, tokens = NO_AMOUNTS if part is None else part.caps
    return (
        state.calls > calls
        or state.cost + state.held_cost > cost
        or state.tokens + state.held_tokens > tokens
        or (bool(state.meters) and fuses(state).keys() != set(() if part is None else part.fuses))
    )


def each(made: Callable[[int, str], int]) -> Amounts:
    """
    Returns the answers of *made* for the place and the name of each limit that is lent.
    """
    calls, cost, tokens = (made(place, name) for place, name in enumerate(METERED))
    return calls, cost, tokens


_NEW: Final = Lease(NO_AMOUNTS, NO_AMOUNTS, 0)
