"""
The answer of the chain to one call.
"""

from dataclasses import dataclass, field
from typing import Any, Final, Self

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.state.entries import Pending
from guardrails.core.values.types import Denial, Nudge, RetrySource, ToolCall

from .refusals import Found, waiting


Where = tuple[str, str, dict[str, Any] | None, tuple[tuple[int, Pending], ...], int | None]
"""Where a decision was made: the id of the session, which life of it, the marks of its event, what was given up on the
way, and the time that is left, as the fields of a decision have them."""
NOWHERE: Final[Where] = "", "", None, (), None


@dataclass(slots=True)
class Decision:
    """
    The answer of the chain to one call, and every guard that contributed to it. Made by `admitted`, `again`, `refused`
    or `unknown`; it is not changed after that.
    """

    call: ToolCall
    n: int
    """Number of its event in the session."""
    at_ms: int
    turn: int
    envelope: Envelope | None = field(default=None, kw_only=True)
    """The refusal; None: the call may run."""
    denials: tuple[Denial, ...] = field(default=(), kw_only=True)
    """All of them, the one that the envelope shows first."""
    observed: tuple[Denial | Nudge, ...] = field(default=(), kw_only=True)
    """Verdicts that guards in observe mode would have given."""
    nudges: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """(code, hint)"""
    errors: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """(guard, what it raised)"""
    seq: int | None = field(default=None, kw_only=True)
    """Position among the executed calls; None: denied."""
    cost: int = field(default=0, kw_only=True)
    tokens: int = field(default=0, kw_only=True)
    claimed: bool = field(default=False, kw_only=True)
    """The caller asked in order to run it at once."""
    repeated: bool = field(default=False, kw_only=True)
    """The same question was asked before and is not settled: no new charge, no new `call` event."""
    claim_n: int = field(default=0, kw_only=True)
    """Number of the `claim` event, if an admission that was decided before is now run."""
    park_n: int = field(default=0, kw_only=True)
    """Number of the `park` event, if the call now waits for a person. If the call was approved or suspended, it is the
    number of the `claim` event."""
    expired: tuple[tuple[int, Pending], ...] = field(default=(), kw_only=True)
    """(event number, admission) given up on the way."""
    session: str = field(default="", kw_only=True)
    """Id of the session that it is of."""
    run: str = field(default="", kw_only=True)
    """The life of that session, since a name may have more than one."""
    marks: dict[str, Any] | None = field(default=None, kw_only=True)
    """The place of its event among those of other sessions, if it shares anything with them."""
    left_ms: int | None = field(default=None, kw_only=True)
    """Milliseconds until the time of the session, or of a scope, is up. None if there is no limit, or if it is days away."""
    retry_source: RetrySource | None = field(default=None, kw_only=True)
    """Who caused it, where the same call failed before: the caller by itself, or what it was advised."""

    @classmethod
    def admitted(
        cls, call: ToolCall, pending: Pending, found: Found | None, source: RetrySource | None, where: Where
    ) -> Self:
        """
        Returns the decision on a *call* that was just admitted; *found* are the remarks on it.
        """
        made = cls.__new__(cls)
        made.call = call
        made.n = pending.n
        made.at_ms = pending.at_ms
        made.turn = pending.turn
        made.envelope = None
        made.denials = ()
        made.observed = () if found is None else tuple(found.observed)
        made.nudges = pending.hints
        made.errors = () if found is None else tuple(found.errors)
        made.seq = pending.seq
        made.cost = pending.cost
        made.tokens = pending.tokens
        made.claimed = pending.claimed
        made.repeated = False
        made.claim_n = made.park_n = 0
        made.session, made.run, made.marks, made.expired, made.left_ms = where
        made.retry_source = source
        return made

    @classmethod
    def again(
        cls,
        call: ToolCall,
        pending: Pending,
        where: Where = NOWHERE,
        *,
        at_ms: int | None = None,
        claim_n: int = 0,
        park_n: int = 0,
    ) -> Self:
        """
        Returns the decision on a *call* that was admitted before and is not settled. Event number *claim_n* of the
        session takes it up at *at_ms*. One that is parked is refused as before.
        """
        made = cls.__new__(cls)
        made.call = call
        made.n = pending.n
        made.at_ms = pending.at_ms if at_ms is None else at_ms
        made.turn = pending.turn
        said = None if pending.parked is None or pending.parked.begun else waiting(pending.parked)
        made.envelope = None if said is None else Envelope.refusal(said)
        made.denials = () if said is None else (said,)
        made.observed = ()
        made.nudges = pending.hints
        made.errors = ()
        made.seq = pending.seq
        made.cost = pending.cost
        made.tokens = pending.tokens
        made.claimed = pending.claimed
        made.repeated = True
        made.claim_n, made.park_n = claim_n, park_n
        made.session, made.run, made.marks, made.expired, made.left_ms = where
        made.retry_source = None
        return made

    @classmethod
    def refused(
        cls,
        call: ToolCall,
        event: tuple[int, int, int],
        found: Found,
        envelope: Envelope,
        where: Where,
        *,
        claimed: bool,
    ) -> Self:
        """
        Returns the decision on a *call* that does not run. *found* holds its denials in the order in which they count.
        *event* is its number, its time and its turn.
        """
        made = cls.__new__(cls)
        made.call = call
        made.n = event[0]
        made.at_ms = event[1]
        made.turn = event[2]
        made.envelope = envelope
        made.denials = tuple(found.denials)
        made.observed = tuple(found.observed)
        made.nudges = ()
        made.errors = tuple(found.errors)
        made.seq = None
        made.cost = 0
        made.tokens = 0
        made.claimed = claimed
        made.repeated = False
        made.claim_n = made.park_n = 0
        made.session, made.run, made.marks, made.expired, made.left_ms = where
        made.retry_source = None
        return made

    def parked(self, denial: Denial, park_n: int, left_out: frozenset[str]) -> Self:
        """
        Returns the same of a call that waits for a person from event *park_n* on, for the reason of *denial*.
        """
        self.envelope, self.denials, self.park_n = Envelope.refusal(denial, left_out=left_out), (denial,), park_n
        return self

    @classmethod
    def unknown(cls, call: ToolCall, at_ms: int, session: str, error: tuple[str, str], denial: Denial | None) -> Self:
        """
        Returns the decision on a *call* of which the state or the time cannot be known, for *error*. The call runs
        uncharged if there is no *denial*.
        """
        return cls(
            call,
            0,
            at_ms,
            0,
            envelope=None if denial is None else Envelope.refusal(denial),
            denials=() if denial is None else (denial,),
            errors=(error,),
            session=session,
        )

    @property
    def allowed(self) -> bool:
        """
        The call may run.
        """
        return self.envelope is None

    @property
    def pending(self) -> bool:
        """
        The call is admitted, and waits until a person has approved it.
        """
        return self.seq is not None and self.envelope is not None

    @property
    def denial(self) -> Denial | None:
        """
        The denial that the envelope shows.
        """
        return self.denials[0] if self.denials else None

    @property
    def code(self) -> str | None:
        """
        The code of that denial.
        """
        return self.denials[0].code if self.denials else None
