"""
The state of a session: the only thing that guards look at.

Rule 1: every write to it, to an entry of its window and to an admission is in this folder; a test proves it. Rule 2: a
transition is a pure function of the state and its arguments. The store runs it atomically, and may run it again on a
fresh copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from guardrails.core.retries.context import Settled

from .entries import Entry as Entry  # noqa: PLC0414  what a state is made of
from .entries import Hold, low
from .entries import Pending as Pending  # noqa: PLC0414


METERS: Final = 64
"""Named counters a session may hold; the last one is shared by all that come later (stricter, never looser)."""
OVERFLOW: Final = "*"
NEVER: Final = 1 << 62


@dataclass(slots=True)
class SessionState:
    """
    Totals, a bounded window of recent calls and bounded named counters.
    """

    started_ms: int = -1
    """Time of the first event; -1 before it."""
    behind_ms: int = field(default=0, compare=False)
    """How far the clock was set back since the session began; what it says is that much too little. Below 0: set ahead."""
    now_ms: int = 0
    """The latest time seen; time never goes back."""
    n: int = 0  # events so far: the number of the latest record
    seq: int = 0  # executed calls so far, children's excluded
    calls: int = 0
    """Admitted calls, those of closed children included."""
    turns: int = 0
    """Turns with an admitted call."""
    cost: int = 0  # micro-dollars: settled calls and charged model responses
    tokens: int = 0
    requests: int = 0  # model requests started
    unpriced: int = 0
    """Model responses whose price is unknown."""
    held_cost: int = 0
    """Estimates of admitted, unsettled calls, and those of `holds` that somebody said."""
    held_tokens: int = 0
    reserved: dict[str, dict[str, int]] = field(default_factory=dict)
    """The amounts that children hold, by child and name of the limit."""

    turn: int = 0
    """Number of the present turn; 0 before the first `begin_turn`."""
    turn_expects: int = 0  # how many calls the present turn has; 0: unknown
    turn_decided: int = 0
    turn_admitted: int = 0
    turn_strikes: int = 0
    """Calls refused in the present turn that an earlier turn was refused already."""
    turn_refused: int = 0
    """How many of the latest `refusals` are the present turn's."""
    refused_turns: int = 0
    """Turns in a row, up to the previous one, of nothing but refusals."""
    denied_turns: int = 0
    """Those of them that repeated a refused call."""
    implied: int = 0
    """Turns that were told apart by when their calls started, while nobody told any."""
    turn_ms: int = 0
    """When the first of the calls began that came so soon after each other, up to the latest."""

    streak_tool: str = ""
    streak: int = 0
    streak_failures: int = 0  # failures in a row at the end of the streak
    changed_seq: int = 0
    """`seq` of the latest call that was admitted before work ended of which the window does not tell."""
    work: int = field(default=0, compare=False)
    """Begins and ends of work in its family that it knows of, while there are children."""
    working: dict[str, int] = field(default_factory=dict, compare=False)
    """Until when work of others of its family may run, by session id; kept by the root, a child has it in a step."""

    window: list[Entry] = field(default_factory=list)
    trail: list[Settled] = field(default_factory=list)
    """The latest calls that are over, oldest first: what the features of a failure are taken from."""
    latest: dict[int | None, int] = field(default_factory=dict)
    """`seq` of the latest call in the window, by signature: to look here is all that most calls need."""
    moving: list[int] = field(default_factory=list)
    """Signatures, as `low` gives them, of the calls whose result was seen to change by itself, the latest last."""
    pending: dict[tuple[str, int | None], Pending] = field(default_factory=dict)
    meters: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """Limits of this session that differ from its policy's: raised by `extend`, given to a child."""
    holds: dict[str, Hold] = field(default_factory=dict)
    """The holds. Those for model requests are named by the number of the event, those for calls by guess by `c` and their `seq`.
    In a scope the session and `#` stand before it."""
    used: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """The use of each tool, and of model responses under `""`: how many told it, their micro-dollars, their tokens."""
    refusals: list[int] = field(default_factory=list)
    """Signatures of the latest refused calls as `low` gives them, the newest last."""
    exhausted: tuple[str, str] | None = None
    """(code, message) of the first cause that ended the session."""
    closed: bool = False
    parked: int = 0
    """Admissions that wait for a person, or were approved or suspended and do not run."""
    stood_ms: int = 0
    """Milliseconds for which the session's time stood still, up to the latest event; see `waited_ms`."""
    asking: bool = False  # a model request was told that no response has followed yet
    told: bytes = b""
    """The latest responses that were told by a key, `KEY_BYTES` each. The lowest bit is set if it was charged too."""
    answers: dict[int | None, tuple[str, str]] = field(default_factory=dict)
    """The results of the latest questions to a person, (`refused` or `expired`, reason), by signature."""
    run: str = field(default="", compare=False)
    """The life of the session, drawn by the recorder. `""` if nothing is recorded."""
    shared: int = field(default=0, compare=False)
    """Events of its children so far, which share its counters."""
    family: tuple[str, int, int] | None = field(default=None, compare=False)
    """Of a child, in a step: its root's life, `n` and `shared`, which place the event among those of the family."""

    def limit(self, name: str, default: int | None) -> int | None:
        """
        Returns the limit *name* of this session.
        """
        return self.limits.get(name, default) if self.limits else default

    def meter(self, key: str) -> int:
        """
        Returns the counter *key*, 0 if it was never charged.
        """
        value = self.meters.get(key)
        return self.meters.get(OVERFLOW, 0) if value is None else value

    def reserved_by_children(self, name: str) -> int:
        """
        Returns how much of limit *name* children hold.
        """
        if not self.reserved:
            return 0
        held = 0
        for each in self.reserved.values():
            held += each.get(name, 0)
        return held

    @property
    def mark(self) -> int:
        """
        The mark of the calls of the present turn, 1 to 255; 0 before there is a turn.
        """
        number = self.turn + self.implied
        return (number - 1) % 255 + 1 if number else 0

    @property
    def only_refused(self) -> bool:
        """
        Whether every call that was decided in the present turn was refused.
        """
        if self.turn:
            return self.turn_admitted == 0
        return not self.window or self.window[-1].turn != self.mark

    def refused_before(self, sig: int | None) -> bool:
        """
        Returns whether a call of signature *sig* was refused in an earlier turn.
        """
        return sig is not None and low(sig) in self.refusals[: len(self.refusals) - self.turn_refused]

    def refused_now(self, sig: int | None) -> bool:
        """
        Returns whether a call of signature *sig* was refused in the present turn.
        """
        return low(sig) in self.refusals[len(self.refusals) - self.turn_refused :]

    @property
    def elapsed_ms(self) -> int:
        """
        Milliseconds from the first event to the latest.
        """
        return self.now_ms - self.started_ms if self.started_ms >= 0 else 0

    def waited_ms(self, now_ms: int) -> int:
        """
        Returns the milliseconds up to *now_ms* in which every open call waited for a person, or to be made again. Time
        in which a model or a child worked is left out.
        """
        waited = self.stood_ms
        if self.parked and not self.asking and not self.reserved and self.parked == len(self.pending):
            until = now_ms
            for pending in self.pending.values():
                waits = pending.parked
                if waits is None or (waits.approved and not waits.begun):
                    return waited
                until = min(until, pending.expires_ms)
            waited += max(0, until - self.now_ms)
        return waited

    def spent_ms(self, now_ms: int) -> int:
        """
        Returns milliseconds from the first event to *now_ms*, without those in which its time stood still.
        """
        if self.started_ms < 0:
            return 0
        passed = now_ms - self.started_ms
        return passed - self.waited_ms(now_ms) if self.parked or self.stood_ms else passed

    def earlier(self, sig: int | None, last: int) -> Sequence[Entry]:
        """
        Returns the calls of signature *sig* among the *last* executed ones, newest first; of the attempts at one, the
        last.
        """
        if sig is None or sig not in self.latest:
            return ()
        after = self.seq - last
        return [
            entry for entry in reversed(self.window) if entry.sig == sig and entry.seq > after and not entry.retried
        ]
