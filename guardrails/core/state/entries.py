"""
The parts of a state: the executed calls of its window, and the admissions that are not settled yet.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Self

from guardrails.core.values.types import WITHOUT_EFFECT, ErrorType


MANY: Final = 255
"""Calls admitted beside one that runs, from which on they are not counted."""

LAPSED: Final = -1
"""When a hold ends that has ended: its estimate is charged until its figure comes."""

EntryStatus = Literal["running", "ok", "error", "expired"]


@dataclass(slots=True)
class Entry:
    """
    One executed call in the window.
    """

    seq: int
    """Position among the executed calls of the session, from 1."""
    tool: str
    sig: int | None
    at_ms: int
    changes: bool = True
    """It may have changed something."""
    status: EntryStatus = "running"
    error_type: ErrorType | None = None
    result_hash: int = 0
    """Evidence: of a success as it is, of an error with digits deleted."""
    retry_at_ms: int = 0
    """After a failure: when a retry may run; 0 if nobody advised one, and tries are left all the same."""
    retries_left: int = 0
    """After a failure: how many more identical calls are a retry; 0 after a success or a lasting failure."""
    explored: bool = False  # a retry of it is advised only to learn from what comes of it
    turn: int = 0  # mark of its turn, see `SessionState.mark`
    beside: int = 0  # calls that were admitted while it ran; `MANY` stands for that many or more
    sketch: int = 0  # its arguments, where `Loops` looked at them; see `similarity`
    steady: int = 0  # 32 bits of its result but for what is volatile, or of the family of its failure; 0: not taken
    empty: bool = False  # it brought nothing
    unfinished: bool = False  # it said that what is waited for is not there yet
    little: bool = False  # it only acknowledged what was done
    retried: bool = False  # it failed and the library makes it again by itself, so that it is evidence of nothing
    another: bool = False  # it is such another attempt, no call of its own

    @classmethod
    def begun(cls, seq: int, tool: str, sig: int | None, at_ms: int, changes: bool, *, turn: int, sketch: int) -> Self:
        """
        Returns the entry of a call that is just admitted.
        """
        made = cls.__new__(cls)
        made.seq, made.tool, made.sig, made.at_ms, made.changes, made.turn = seq, tool, sig, at_ms, changes, turn
        made.status = "running"
        made.error_type = None
        made.result_hash = made.retry_at_ms = made.retries_left = made.beside = made.steady = 0
        made.explored = made.empty = made.unfinished = made.little = made.retried = made.another = False
        made.sketch = sketch
        return made

    @property
    def advised(self) -> bool:
        """
        Whether its envelope said that the same call may be made again.
        """
        return self.retries_left > 0 and self.retry_at_ms > 0

    def due(self, now_ms: int) -> bool:
        """
        Returns whether the wait before the same call is over, if it failed for a cause that may pass.
        """
        return 0 < self.retry_at_ms <= now_ms

    @property
    def worked(self) -> bool:
        """
        Whether it may have changed something, as far as its end tells.
        """
        return self.changes and self.error_type not in WITHOUT_EFFECT


class Hold(NamedTuple):
    """
    Micro-dollars and tokens that are held until *ends_ms*, beside those of admissions.
    """

    ends_ms: int
    cost: int
    tokens: int
    said: bool
    """Somebody said the estimate, which is among what the state holds; else it is an average, and only a guess."""


@dataclass(slots=True, kw_only=True)
class Parked:
    """
    The state of an admitted call that waits for a person, was approved by one and not run yet, or was suspended.
    """

    at_ms: int
    """Since when it waits, or when it was approved."""
    lasts_ms: int
    """How long it waits, and how long the approval holds; 0: nobody said."""
    code: str
    message: str
    hint: str
    reason: str
    """Why a person is asked."""
    digest: str = field(default="", compare=False)
    """The digest that binds the approval: a hash of the tool and all of its arguments; `""` in a replay without them."""
    shown: str = field(default="", compare=False)
    """The arguments as JSON, cut, until the question is answered."""
    approved: bool = False
    begun: bool = False
    """It ran, and its tool has handed it back: it may be made again, and counts in any case."""


@dataclass(slots=True)
class Pending:
    """
    An admission that is not settled yet.
    """

    seq: int
    n: int
    """Number of its `call` event."""
    id: str
    tool: str
    sig: int | None
    at_ms: int
    expires_ms: int
    cost: int
    tokens: int
    turn: int
    claimed: bool
    entry: Entry
    hints: tuple[tuple[str, str], ...] = ()
    """(code, hint) of the nudges."""
    limit: tuple[str, str] | None = None
    """(code, message) of the limit that this call used up."""
    parked: Parked | None = None
    """It may not run, or does not run yet."""

    @classmethod
    def opened(
        cls,
        call_id: str,
        entry: Entry,
        *,
        n: int,
        expires_ms: int,
        cost: int,
        tokens: int,
        turn: int,
        claimed: bool,
        hints: tuple[tuple[str, str], ...] = (),
        limit: tuple[str, str] | None = None,
    ) -> Self:
        """
        Returns the admission of the call *call_id*, as its *entry* in the window tells it.
        """
        made = cls.__new__(cls)
        made.seq, made.tool, made.sig, made.at_ms, made.entry = entry.seq, entry.tool, entry.sig, entry.at_ms, entry
        made.n = n
        made.id = call_id
        made.expires_ms = expires_ms
        made.cost = cost
        made.tokens = tokens
        made.turn = turn
        made.claimed = claimed
        made.hints = hints
        made.limit = limit
        made.parked = None
        return made


def low(sig: int | None) -> int:
    """
    Returns the part of a signature that is kept of a refused call: 32 bits, -1 if there is none.
    """
    return -1 if sig is None else sig & 0xFFFF_FFFF


def pending_key(call_id: str, sig: int | None, seq: int | None) -> tuple[str, int | None]:
    """
    Returns the key of an admission. A call that cannot be signed is never the same call as another, so it has a key of
    its own.
    """
    return (f"{call_id}#{seq}", None) if sig is None else (call_id, sig)
