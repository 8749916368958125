"""
The answers of the engine: to a call, to its end, and to any other event.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self

from guardrails.core.envelope import Envelope
from guardrails.core.refusals import waiting
from guardrails.core.state import Pending
from guardrails.core.values.types import Denial, Nudge, ToolCall


Expired = tuple[tuple[int, Pending, dict[str, Any]], ...]
"""(number of the event, admission, its place in the scopes)"""


@dataclass
class Decision:
    """
    The decision on a call. Most calls have no more than its first fields; the others are those of the class until they are set.
    """

    call: ToolCall
    n: int
    """Number of its event in the session; 0: the state could not be reached."""
    at_ms: int
    turn: int
    session: str = ""
    run: str = ""
    claimed: bool = False
    """Who asked runs it."""
    seq: int | None = None
    """Number among the admitted calls; None: it was not admitted."""
    cost: int = 0
    """The estimate that is held, in micro-dollars."""
    tokens: int = 0
    nudges: tuple[tuple[str, str], ...] = field(default=(), init=False)
    """(code, hint)"""
    denials: tuple[Denial, ...] = field(default=(), init=False)
    envelope: Envelope | None = field(default=None, init=False)
    """What the model reads of a call that does not run; None: it may run."""
    observed: tuple[Denial | Nudge, ...] = field(default=(), init=False)
    """Verdicts of guards that only observe."""
    errors: tuple[tuple[str, str], ...] = field(default=(), init=False)
    """(guard, what it raised)"""
    repeated: bool = field(default=False, init=False)
    """The same was decided before, and nothing is charged again."""
    expired: Expired = field(default=(), init=False)
    """Admissions that were given up before."""
    claim_n: int = field(default=0, init=False)
    """Number of the event by which an admission was taken up; 0: there was none."""
    park_n: int = field(default=0, init=False)
    """Number of the event by which it waits for a person, or ceased to; 0: there was none."""
    marks: dict[str, Any] | None = field(default=None, init=False)
    """Its place among events of other sessions."""
    left_ms: int | None = field(default=None, init=False)
    """Milliseconds until the session's time is up; None: it is days away, or there is no limit."""
    retry_source: Literal["agent", "policy"] | None = field(default=None, init=False)
    """Of a call that follows its own failure: who asked for it."""

    @classmethod
    def again(cls, call: ToolCall, one: Pending, session: str = "", run: str = "") -> Self:
        """
        Returns the decision that the admission *one* was made by.
        """
        claimed = one.stage == "running"
        made = cls(call, one.n, one.at_ms, one.turn, session, run, claimed, one.seq, one.cost, one.tokens)
        made.nudges, made.repeated = one.hints, True
        if one.question is not None and one.stage != "suspended":
            made.refuse(waiting(one.question))
        return made

    @classmethod
    def unknown(cls, call: ToolCall, at_ms: int, session: str, error: tuple[str, str], denial: Denial | None) -> Self:
        """
        Returns the decision on a *call* of which the state or the time cannot be known, for *error*. The call runs
        uncharged if there is no *denial*.
        """
        made = cls(call, 0, at_ms, 0, session)
        made.errors = (error,)
        if denial is not None:
            made.refuse(denial)
        return made

    def refuse(self, *denials: Denial, limit: str | None = None, left_out: frozenset[str] = frozenset()) -> None:
        """
        Let the call not run, for *denials*; the model reads the first, and the message of a *limit* that is used up.
        """
        self.denials, self.envelope = denials, Envelope.refusal(denials[0], limit, left_out=left_out)

    def of(self, call: ToolCall) -> Self:
        """
        Returns the same of another form of its *call*.
        """
        made = copy(self)
        made.call = call
        return made

    @property
    def allowed(self) -> bool:
        """
        The call may run.
        """
        return self.envelope is None

    @property
    def text(self) -> str | None:
        """
        The text to send as the result of a refused call, for a model. None: the call may run.
        """
        return None if self.envelope is None else self.envelope.to_json()

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


@dataclass
class Completion:
    """
    The end of a call, for its record. Most have no more than the first fields.
    """

    n: int
    """Number of the event; 0: the state could not be reached."""
    at_ms: int
    late: bool
    """Its admission was given up before: nothing is charged."""
    duration_ms: int
    elapsed_ms: int
    run: str
    changes: bool
    is_complete: bool | None
    uncertain: bool
    """Nobody knows whether it happened."""
    limit: str | None = field(default=None, init=False)
    """Code of the limit that the envelope shows."""
    errors: tuple[tuple[str, str], ...] = field(default=(), init=False)
    warnings: tuple[tuple[str, str], ...] = field(default=(), init=False)
    """(code, text) of what guards say with its result, beside what they said before it ran."""
    retryable: bool | None = field(default=None, init=False)
    wait_ms: int | None = field(default=None, init=False)
    retries: int | None = field(default=None, init=False)
    no_retry: str | None = field(default=None, init=False)
    """Code of why a failure is not to be repeated though it may pass."""
    judged: str | None = field(default=None, init=False)
    marks: dict[str, Any] | None = field(default=None, init=False)

    def advise(self, envelope: Envelope, no_retry: str | None) -> None:
        """
        Note what *envelope* says of a failure.
        """
        self.retryable, self.wait_ms = envelope.retryable, envelope.retry_after_ms
        self.retries, self.judged, self.no_retry = envelope.max_retries_remaining, envelope.judged, no_retry


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
