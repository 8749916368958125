"""
After a tool ran: settle the call and make the envelope of its outcome.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Facts
from guardrails.core.guards.limits.budget import FINISH
from guardrails.core.guards.repeats.loop_words import hints_of
from guardrails.core.repetition.results import HEAD, MAX_EMPTY, emptiness, family_hash, steady_hash
from guardrails.core.retries.context import Settled, due_of, time_left
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.retries.serving import Advised, Judged, Retried
from guardrails.core.state.failing import Told, note_ended, told
from guardrails.core.state.state import Entry, Pending, SessionState, exhaust, set_meter, settle, touch
from guardrails.core.state.worked import outdate
from guardrails.core.text.jsonable import exact
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.text.truncation import Rendered, render
from guardrails.core.values.types import ERROR_TYPES, STATUSES, Outcome, ToolCall, pending_key

from .chain import Chain, Plan
from .decide import Decision
from .exhaustion import first_cause, progress


DUE: Final = "due."
"""Counter of a tool: until when, in milliseconds since 1970, one of its answers has asked to be left alone."""
UNJUDGED_RETRIES: Final = 3
"""Retries of a failure that may pass, where no guard judges it."""
UNJUDGED_WAIT_MS: Final = 60_000
"""From the last of them on until another."""
DUE_TOOLS: Final = 16
"""Tools of a session that may have one; counters are for guards."""


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


def prepare(outcome: Outcome, max_bytes: int, *, closer: bool = False) -> Prepared:
    """
    Render and hash an outcome; the work is bounded by *max_bytes* and 64 KB. *closer*: its steady part is hashed too.
    """
    own = _heard(outcome.value) if isinstance(outcome.value, Envelope) else None
    if own is not None:
        outcome = _spoken(outcome, own)
    if outcome.error_type is not None:
        kept = None if outcome.value is None else render(outcome.value, max_bytes)
        if kept is not None:
            kept.payload = exact(kept.payload)
        text = evidence(outcome, kept)
        family = family_hash(outcome.error_type, text[:HEAD].decode("utf-8", "ignore"))
        return Prepared(outcome, kept, masked_result_hash(text), own, family)
    rendered = render(outcome.value, max_bytes)
    # A record or a cached result may hold it for long.
    rendered.payload = exact(rendered.payload)
    # A cut result is told apart from another by how long it really was.
    payload = rendered.payload
    steady = steady_hash(payload) if closer else 0
    empty = emptiness(payload) if len(payload) <= MAX_EMPTY else 0
    return Prepared(outcome, rendered, result_hash(payload, rendered.original_bytes), own, steady, empty)


def evidence(outcome: Outcome, rendered: Rendered | None) -> bytes:
    """
    The text that tells one outcome from another: the result, else what the failure says.
    """
    if rendered is not None:
        return rendered.payload
    return f"{outcome.error_type}: {outcome.error_message}".encode(errors="replace")


def _heard(said: Envelope) -> Envelope:
    """
    A tool's own envelope without what does not have the form of its field: state and records rely on it.
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
        own.error_type or (None if own.ok else "other"),
        own.error_message or own.message or "",
        own.http_status,
        own.retry_after_ms,
        outcome.cost,
        outcome.tokens,
    )


@dataclass(slots=True)
class Completion:
    """
    A settled call, but for what the model reads: a record may wait long after that is gone.
    """

    n: int
    at_ms: int
    late: bool
    """Its admission had expired or was settled before: only recorded."""
    duration_ms: int
    limit: str | None = None
    """Code of the limit that the call used up."""
    errors: tuple[tuple[str, str], ...] = ()
    retryable: bool | None = None
    """This and the next three are what the envelope says."""
    wait_ms: int | None = None
    retries: int | None = None
    is_complete: bool | None = None
    run: str = ""
    """Which life of the session."""
    marks: dict[str, Any] | None = field(default=None, kw_only=True)
    """Where its event stands among those of other sessions, where it shares anything with them."""
    judged: Judged | None = None
    """What a model was asked about the failure, and said."""
    changes: bool = True
    """It may have changed something."""
    elapsed_ms: int = 0
    """Age of the session."""


def complete(
    chain: Chain,
    decision: Decision,
    prepared: Prepared,
    state: SessionState,
    now_ms: int,
    plan: Plan | None = None,
    advised: Advised | None = None,
) -> tuple[Envelope, Completion]:
    """
    Settle an admitted call and make the envelope of its outcome. *advised* is what was recorded of a failure that a model
    judged: a replay goes by it.
    """
    call, outcome = decision.call, prepared.outcome
    failed = outcome.error_type is not None
    now = touch(state, now_ms)
    sig, seq = call.sig, decision.seq
    pending = state.pending.get(pending_key(call.id, sig, seq) if sig is None else (call.id, sig))
    if pending is not None and pending.seq != seq:
        pending = None
    if plan is None:
        plan = chain.plan(call.tool)
    duration = max(0, now - decision.at_ms)
    # One object for each call, since no guard keeps it.
    facts = decision.facts or Facts(now, plan.tool, decision.cost, decision.tokens, decision.turn)
    facts.now_ms, facts.duration_ms, facts.known = now, duration, chain.known
    decision.facts = None
    if failed and (chain.models.loaded or advised is not None):
        facts.retried = _retried(chain, call, outcome, state, advised)
    if outcome.retry_after_ms is not None and failed:
        _note_due(state, call.tool, outcome.retry_after_ms)
    state.n = n = state.n + 1
    errors: list[tuple[str, str]] = []
    _end(state, pending, call, prepared, plan)
    if pending is not None and plan.settles:
        errors += correct(plan, call, outcome, state, facts)
    if prepared.own is not None:
        envelope = prepared.own.copy()
    else:
        envelope = Envelope.of(outcome) if failed else Envelope("success", outcome.value)
    envelope.rendered = prepared.rendered
    for name, shape in plan.shapes if failed else plan.success_shapes:
        try:
            shaped = shape(envelope, call, outcome, state, facts)
            if shaped is not envelope and not isinstance(shaped, Envelope):
                raise TypeError(f"a shape returns the envelope, not {type(shaped).__name__}")  # noqa: TRY301
            envelope = shaped
        except Exception as error:  # noqa: BLE001
            errors.append((name, f"{type(error).__name__}: {error}"))
    for hint in hints_of(decision.nudges, pending, state):
        envelope.nudge(hint)
    if failed and pending is not None:
        _note_retry(pending.entry, envelope, state)
    limit = pending.limit if pending is not None else None
    if limit is None and (state.exhausted is not None or chain.far is None or not chain.far(state, now, 0)):
        limit = _limit(chain, state, now)
    if limit is not None:
        envelope.limit_message = limit[1]
        envelope.hint(FINISH)
    envelope.left_out = chain.left_out
    if chain.merged:
        envelope.merged = True
    elif "progress" not in chain.left_out:
        envelope.progress = progress(chain, state, now)
    return envelope, Completion(
        n,
        now,
        pending is None,
        duration,
        None if limit is None else limit[0],
        tuple(errors) if errors else (),
        envelope.retryable,
        envelope.retry_after_ms,
        envelope.max_retries_remaining,
        envelope.is_complete,
        state.run,
        envelope.judged,
        plan.changes,
        state.elapsed_ms,
    )


def _end(state: SessionState, pending: Pending | None, call: ToolCall, prepared: Prepared, plan: Plan) -> None:
    # While a tool fails, its values are noted too; what was cancelled tells nothing.
    if pending is None:
        if plan.changes:
            outdate(state)
        return
    outcome, rendered, what, entry = prepared.outcome, prepared.rendered, prepared.told, pending.entry
    settle(state, pending, outcome, prepared.result_hash, prepared.steady, prepared.empty)
    if (outcome.error_type is None and not state.failing) or outcome.error_type == "cancelled":
        return
    failed, oldest = outcome.error_type is not None, state.window[0].seq
    if what is None:
        said = outcome.error_message.encode(errors="replace") if rendered is None else rendered.payload
        what = told(call, said, failed=failed)
    note_ended(state.failing, entry.tool, entry.seq, failed=failed, what=what, oldest=oldest)


def _limit(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    The limit that what a call really took has used up.
    """
    # What no call can bring about is asked only once the session is over anyway.
    cause = first_cause(chain, chain.call_spenders if state.exhausted is None else chain.spenders, state, now_ms)
    if cause is None:
        return None
    exhaust(state, cause)
    return None if cause.code == "budget.max_calls" else (cause.code, cause.message)


def _retried(chain: Chain, call: ToolCall, outcome: Outcome, state: SessionState, advised: Advised | None) -> Retried:
    failure = Settled(call.tool, call.sig, outcome.error_type, state.now_ms)
    left = time_left(state.meters.get(DUE + call.tool), state.now_ms, outcome.retry_after_ms)
    return Retried(chain.models.loaded, tuple(state.trail), failure, state.elapsed_ms, left, advised)


def _note_due(state: SessionState, tool: str, retry_after_ms: int) -> None:
    key = DUE + tool
    due = due_of(state.meters.get(key), state.now_ms, retry_after_ms)
    if due is not None and (key in state.meters or sum(one.startswith(DUE) for one in state.meters) < DUE_TOOLS):
        set_meter(state, key, due)


def _note_retry(entry: Entry, envelope: Envelope, state: SessionState) -> None:
    if envelope.retryable:
        entry.retries_left = envelope.max_retries_remaining or 0
        entry.retry_at_ms = state.now_ms + (envelope.retry_after_ms or 0)
        entry.explored = envelope.judged is not None and envelope.judged.explored
    elif envelope.retryable is None and entry.error_type in TRANSIENT:
        # Nobody judges it: a few more tries are no repeats, and later on it is another matter.
        earlier = state.earlier(entry.sig, len(state.window))
        run = next((at for at, each in enumerate(earlier) if each.status != "error"), len(earlier))
        entry.retries_left = max(0, UNJUDGED_RETRIES + 1 - run)
        entry.retry_at_ms = 0 if entry.retries_left else state.now_ms + UNJUDGED_WAIT_MS


def correct(
    plan: Plan, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts
) -> Iterator[tuple[str, str]]:
    """
    Let guards correct their counters by what the call really used; (name, what it raised) of those that fail.
    """
    for name, correct in plan.settles:
        try:
            for key, value in correct(call, outcome, state, facts).items():
                set_meter(state, key, value)
        except Exception as error:  # noqa: BLE001
            yield name, f"{type(error).__name__}: {error}"
