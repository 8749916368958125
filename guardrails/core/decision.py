"""
The answers of the engine: to a call, to its end, and to any other event.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.refusals import waiting
from guardrails.core.retries.serving import Judged
from guardrails.core.state import Pending
from guardrails.core.values.types import Denial, Nudge, RetrySource, ToolCall


Expired = tuple[tuple[int, Pending], ...]
"""(number of the event, admission)"""


@dataclass
class Decision:
    """
    What was decided about a call. Fields after *turn* are those of the class until they are set.
    """

    call: ToolCall
    n: int
    """Number of its event in the session; 0: the state could not be reached."""
    at_ms: int
    turn: int
    envelope: Envelope | None = field(default=None, kw_only=True)
    """What the model reads of a call that does not run; None: it may run."""
    denials: tuple[Denial, ...] = field(default=(), kw_only=True)
    observed: tuple[Denial | Nudge, ...] = field(default=(), kw_only=True)
    """Verdicts of guards that only observe."""
    nudges: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """(code, hint)"""
    errors: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """(guard, what it raised)"""
    seq: int | None = field(default=None, kw_only=True)
    """Number among the admitted calls; None: it was not admitted."""
    cost: int = field(default=0, kw_only=True)
    """The estimate that is held, in micro-dollars."""
    tokens: int = field(default=0, kw_only=True)
    claimed: bool = field(default=False, kw_only=True)
    """Who asked runs it."""
    repeated: bool = field(default=False, kw_only=True)
    """The same was decided before, and nothing is charged again."""
    claim_n: int = field(default=0, kw_only=True)
    """Number of the event by which an admission was taken up; 0: there was none."""
    park_n: int = field(default=0, kw_only=True)
    """Number of the event by which it waits for a person, or ceased to; 0: there was none."""
    expired: Expired = field(default=(), kw_only=True)
    """Admissions that were given up before."""
    session: str = field(default="", kw_only=True)
    run: str = field(default="", kw_only=True)
    marks: dict[str, Any] | None = field(default=None, kw_only=True)
    """Its place among events of other sessions."""
    left_ms: int | None = field(default=None, kw_only=True)
    """Milliseconds until the session's time is up; None: it is days away, or there is no limit."""
    retry_source: RetrySource | None = field(default=None, kw_only=True)
    """Of a call that follows its own failure: who asked for it."""

    @classmethod
    def again(cls, call: ToolCall, pending: Pending, *, session: str = "", run: str = "") -> Self:
        """
        Returns the decision that *pending* was made by.
        """
        made = cls(call, pending.n, pending.at_ms, pending.turn, repeated=True, session=session, run=run)
        made.seq, made.cost, made.tokens, made.nudges = pending.seq, pending.cost, pending.tokens, pending.hints
        made.claimed = pending.stage == "running"
        if pending.question is not None and pending.stage != "suspended":
            said = waiting(pending.question)
            made.envelope, made.denials = Envelope.refusal(said), (said,)
        return made

    @classmethod
    def unknown(cls, call: ToolCall, at_ms: int, session: str, error: tuple[str, str], denial: Denial | None) -> Self:
        """
        Returns the decision on a *call* of which the state or the time cannot be known, for *error*. The call runs
        uncharged if there is no *denial*.
        """
        made = cls(call, 0, at_ms, 0, errors=(error,), session=session)
        if denial is not None:
            made.envelope, made.denials = Envelope.refusal(denial), (denial,)
        return made

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


@dataclass(kw_only=True)
class Completion:
    """
    What the end of a call came to, for its record.
    """

    n: int
    """Number of the event; 0: the state could not be reached."""
    at_ms: int
    late: bool
    """Its admission was given up before: nothing is charged."""
    duration_ms: int
    limit: str | None = None
    """Code of the limit that the envelope shows."""
    errors: tuple[tuple[str, str], ...] = ()
    retryable: bool | None = None
    wait_ms: int | None = None
    retries: int | None = None
    is_complete: bool | None = None
    no_retry: str | None = None
    """Code of why a failure is not to be repeated though it may pass."""
    run: str = ""
    judged: Judged | None = None
    changes: bool = True
    uncertain: bool = False
    """Nobody knows whether it happened."""
    elapsed_ms: int = 0
    marks: dict[str, Any] | None = None


class Happened(NamedTuple):
    """
    The result of an event that is no call.
    """

    n: int
    """Its number in the session."""
    at_ms: int
    run: str
    """Which life of the session."""
    marks: dict[str, Any] | None
    """Its place among the events of other sessions."""
    limits: dict[str, int] | None = None
    """The amounts that it set or held, by limit."""
    refused: tuple[str, str] | None = None
    """(code, message) of why a model request is not to be made."""


NOT_AGAIN: Final = Happened(0, 0, "", None)
"""The result of an event that was named already: it is no event."""
