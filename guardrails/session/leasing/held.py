"""
The part of one scope that one process holds.
"""

import threading

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.engine import Happened
from guardrails.core.engine.events.lending import Lend, Lent, lease_of
from guardrails.core.state.entries import NO_AMOUNTS, Amounts
from guardrails.core.state.leases import each, fuses, retreat, used_of
from guardrails.core.state.state import SessionState
from guardrails.session.recorder import Recorder, life


if TYPE_CHECKING:
    from guardrails.sinks import Sink


IDLE_S: Final = 10.0
"""After how long a part is given back that nobody uses."""
AHEAD: Final = 4
"""It is looked again in one part in so many of the time in which nothing would be left."""
BEATS: Final = 3
"""How often a lease is heard of in its time, if it holds anything."""
TRIES: Final = range(64)
"""Trips for one step before it is given up: other threads may take each time what was granted."""
WAYS: Final = 4_096
"""Sessions whose keys are kept as the local store has them."""
LOOK_S: Final = 0.25
"""How often it is looked whether a part is to be given back."""
AGAIN_S: Final = 1.0
"""After how long a trip is made again that failed, and that no call waits for."""


class HeldLease:
    """
    The part of one scope that this process holds.
    """

    def __init__(self, key: str, name: str, own: str, chain: Chain) -> None:
        self.key, self.name, self.own, self.chain = key, name, own, chain
        self.lock = threading.RLock()
        self.dropped = False
        """Nobody has used it for long, and whoever does gets another."""
        self.watched: dict[str, tuple[int, float]] = {}
        """Of other leases, how often they were heard of, and since when."""
        self.begin()

    def begin(self) -> None:
        """
        Be a new lease, which nobody has heard of.
        """
        self.holder = life()
        self.local = f"{self.key}@{self.holder}"
        self.n = self.trips = 0
        self.told = self.last = NO_AMOUNTS
        self.trip_at = self.moved_at = self.look_at = float("-inf")
        self.silent_at = float("inf")
        """From when on others may have its part: it admits nothing then before another trip."""
        self.failed = False
        """The shared store did not answer the latest trip."""
        self.rest: dict[str, int] = {}
        """What nobody held, by limit, when it was looked last."""
        self.rest_at = 0.0
        self.rates: dict[str, float] = {}
        """How fast that has become less, a second."""

    @property
    def time_s(self) -> float:
        """
        The time that it may be silent before it is lost.
        """
        return lease_of(self.chain).time

    @property
    def idle_s(self) -> float:
        """
        The time after which a part is given back that nobody uses, and the longest until it is looked again.
        """
        return min(IDLE_S, self.time_s / BEATS)

    @property
    def returns(self) -> bool:
        """
        Whether others get its part if it is lost.
        """
        return lease_of(self.chain).lost == "return"

    def hear(self, at: float) -> None:
        """
        The shared store has answered a trip that was made *at* then.
        """
        self.trip_at = at
        self.failed = False
        if self.returns:
            self.silent_at = at + self.time_s

    def is_idle(self, used: Amounts, now: float) -> bool:
        """
        Returns whether it has *used* nothing for a while.
        """
        if used != self.last:
            self.last, self.moved_at = used, now
        return now - max(self.moved_at, self.trip_at) >= self.idle_s

    def is_left(self, now: float) -> bool:
        """
        Returns whether nobody has used it for so long that others which were silent meanwhile are lost.
        """
        return now - max(self.moved_at, self.trip_at) >= self.time_s

    def is_unheard(self, now: float) -> bool:
        """
        Returns whether it is to be heard of again.
        """
        return now - self.trip_at >= self.time_s / BEATS

    def plan_look(self, rest: dict[str, int], now: float) -> None:
        """
        Look again before the *rest* is gone at the pace that was seen, for then others may ask for something. They may
        be faster than ever before, so that no look is far off.
        """
        wait, passed = self.idle_s if self.rest else 0.0, now - self.rest_at
        for name, left in rest.items():
            faded = self.rates.get(name, 0.0) / 2
            rate = max(faded, (self.rest.get(name, left) - left) / passed) if passed > 0 else 2 * faded
            self.rates[name] = rate
            if left <= 0 or rate > 0:
                wait = min(wait, max(0, left) / max(rate, 1e-9) / AHEAD)
        self.rest, self.rest_at, self.look_at = rest, now, now + wait

    def wake(self, now: float) -> None:
        """
        Note that the process looks now, as it should have all the time. If it did not, it was asleep or the store was
        out of reach, perhaps for the others too. The others are then silent from now on.
        """
        if now - self.rest_at >= self.time_s:
            self.watched = {}

    def lost(self, now: float) -> tuple[tuple[str, int], ...]:
        """
        Returns the other leases of which nobody has heard for their time.
        """
        if self.failed:
            self.wake(now)
        return tuple((holder, trips) for holder, (trips, since) in self.watched.items() if now - since >= self.time_s)

    def watch(self, others: Sequence[tuple[str, int]], now: float) -> None:
        """
        Note of which *others* something was heard since.
        """
        before = self.watched
        self.watched = {
            holder: before[holder] if holder in before and before[holder][0] == trips else (trips, now)
            for holder, trips in others
        }

    def record(self, sink: "Sink", event: Lend, lent: Lent, known: Happened) -> None:
        """
        Hand over to *sink* the report and the answer of a trip, and its place among the events of both states.
        """
        self.n += 1
        values = {
            "scope": [self.name, self.own],
            "shared": [lent.run, lent.n, lent.at_ms],
            "own": [known.run, known.n, known.at_ms],
            "used": event.used,
            "holds": event.holds,
            "wants": event.wants,
            "told": event.told,
            "known": event.known,
            "lost": event.lost,
            "back": event.back,
            "over": event.over,
            "fuses": dict(event.fuses),
            "amounts": None if event.amounts is None else dict(event.amounts),
            "granted": lent.granted,
            "enough": lent.enough,
        }
        told = Happened(self.n, known.at_ms, known.run, None)
        Recorder(f"lease:{self.holder}", sink).event("lend", told, values)


Seen = tuple[Amounts, Amounts, Amounts, dict[str, int]]
"""What a lease was granted, has used and holds, and the fuses that have blown under it since its latest trip."""


def seen(states: list[SessionState]) -> Seen:
    """
    Returns the amounts under the lease of the first of *states*.
    """
    state = states[0]
    part = state.part
    granted = NO_AMOUNTS if part is None else part.granted
    known = () if part is None else part.fuses
    blown = {key: value for key, value in fuses(state).items() if key not in known}
    return granted, used_of(state), (0, state.held_cost, state.held_tokens), blown


def retreated(states: list[SessionState]) -> Seen:
    """
    Returns the same, for a lease that admits no more before the next trip.
    """
    retreat(states[0])
    return seen(states)


def silent_of(leases: Sequence[HeldLease], now: float) -> list[tuple[HeldLease, int]]:
    """
    Returns those of *leases* whose parts others may have by *now*, and how often each was at the shared state.
    """
    return [(lease, lease.trips) for lease in leases if now >= lease.silent_at]


def any_free(granted: Amounts, used: Amounts, holds: Amounts) -> bool:
    """
    Returns whether anything of what was *granted* is neither used nor held.
    """
    return any(each(lambda place, _: max(0, granted[place] - used[place] - holds[place])))
