"""
The outcome of a call with all that costs time already done, outside of any lock.
"""

from dataclasses import dataclass
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.outcome import outcome_of, outcome_of_async
from guardrails.core.repetition.results import HEAD, LITTLE, MAX_EMPTY, emptiness, family_hash, steady_hash
from guardrails.core.state.failing import Told
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.text.truncation import Rendered, render
from guardrails.core.values.types import ERROR_TYPES, STATUSES, Outcome, ToolCall

from .plan import Plan


@dataclass(slots=True)
class Prepared:
    """
    An outcome with all that costs time already done: rendered and hashed, outside of any lock.
    """

    outcome: Outcome
    rendered: Rendered | None
    result_hash: int
    """Evidence: of a success as it is, of a failure with digits deleted."""
    own: Envelope | None = None
    """The envelope that the tool itself made."""
    steady: int = 0
    """Of a success, where asked for, what is not volatile; of a failure its family; 0: not taken."""
    empty: int = 0
    """As `emptiness` says."""
    told: Told | None = None
    """Its values; None: to be taken from the call and what is rendered, if a tool fails."""

    def of(self, outcome: Outcome) -> "Prepared":
        """
        Returns the same of another *outcome*, for a record.
        """
        return Prepared(outcome, self.rendered, self.result_hash, self.own, self.steady, self.empty)


def told(
    result: object,
    plan: Plan,
    arguments: Any,
    now_ms: int | None,
    passes: tuple[type[BaseException], ...] = (),
) -> Outcome:
    """
    Returns the outcome of *result*, which a call of the tool of *plan* with *arguments* returned or raised.

    Of an iterator or stream as many bytes are taken as are shown. An exception of one of the types *passes* that this
    raises is raised on.
    """
    if plan.tool.returns_envelope:
        result = Envelope.spoken(result)
    return outcome_of(
        result,
        classifier=plan.tool.result,
        limit=plan.max_bytes,
        now_ms=now_ms,
        speaks=plan.speaks,
        arguments=arguments,
        passes=passes,
    )


async def told_async(
    result: object, plan: Plan, arguments: Any, now_ms: int | None, passes: tuple[type[BaseException], ...] = ()
) -> Outcome:
    """
    Returns the outcome as `told` does, for a result that may be an asynchronous iterator.
    """
    known: dict[str, Any] = {
        "classifier": plan.tool.result,
        "limit": plan.max_bytes,
        "now_ms": now_ms,
        "passes": passes,
    }
    return await outcome_of_async(result, **known, speaks=plan.speaks, arguments=arguments)


def prepare(outcome: Outcome, max_bytes: int, call: ToolCall | None = None) -> Prepared:
    """
    Render and hash an outcome; the work is bounded by *max_bytes* and 64 KB. Its steady part is hashed too if a guard looked
    closer at the *call*.
    """
    own = _heard(outcome.value) if isinstance(outcome.value, Envelope) else None
    if own is not None:
        outcome = _spoken(outcome, own)
    if outcome.error_type is not None:
        kept = None if outcome.value is None else render(outcome.value, max_bytes)
        if kept is not None:
            kept.compact()
        text = evidence(outcome, kept)
        # What may be an answer says nothing of the next question.
        head = text[:HEAD].decode("utf-8", "ignore")
        family = 0 if outcome.found == "answer" else family_hash(outcome.error_type, head)
        return Prepared(outcome, kept, masked_result_hash(text), own, family, LITTLE if outcome.found else 0)
    rendered = render(outcome.value, max_bytes)
    # A record or a cached result may hold it for long.
    rendered.compact()
    # A cut result is told apart from another by how long it really was.
    payload = rendered.payload
    steady = steady_hash(payload, call) if call is not None and call.sketch is not None else 0
    empty = emptiness(payload, call) if len(payload) <= MAX_EMPTY else 0
    return Prepared(outcome, rendered, result_hash(payload, rendered.original_bytes), own, steady, empty)


def evidence(outcome: Outcome, rendered: Rendered | None) -> bytes:
    """
    Returns the text that tells one outcome from another: the result, else the words of the failure.
    """
    if rendered is not None:
        return rendered.payload
    return f"{outcome.error_type}: {outcome.error_message}".encode(errors="replace")


def _heard(said: Envelope) -> Envelope:
    """
    Returns a tool's own envelope without what does not have the form of its field: state and records rely on it.
    """
    own = said.copy()
    if own.error_type is not None and own.error_type not in ERROR_TYPES:
        own.error_type = "other"
    if own.status not in STATUSES:
        own.status = "success" if own.error_type is None else "error"
    for name in ("retry_after_ms", "max_retries_remaining"):
        claim = getattr(own, name)
        if claim is not None and (type(claim) is not int or claim < 0):
            setattr(own, name, None)
    return own


def _spoken(outcome: Outcome, own: Envelope) -> Outcome:
    return Outcome(
        own.value,
        own.error_type or (None if own.ok else "validation" if own.status == "validation_error" else "other"),
        own.error_message or own.message or "",
        own.http_status,
        own.retry_after_ms,
        cost=outcome.cost,
        tokens=outcome.tokens,
    )
