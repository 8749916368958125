"""
After a tool ran: settle the call and make the envelope of its outcome.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Facts
from guardrails.core.guards.evidence import brought_news, moved
from guardrails.core.guards.limits.budget_words import finish, names
from guardrails.core.retries.context import Settled
from guardrails.core.retries.context import time_left as named_left
from guardrails.core.retries.serving import Advised, Judged, Retried
from guardrails.core.state.admissions import settle, settle_late
from guardrails.core.state.entries import pending_key
from guardrails.core.state.family import note_moved
from guardrails.core.state.parking import resume
from guardrails.core.state.scope_state import settle as settle_held
from guardrails.core.state.state import Pending, SessionState
from guardrails.core.state.totals import exhaust, number, set_meters, touch
from guardrails.core.state.turns import note_again

from .chain import Chain
from .decision import Decision
from .engine import Engine, Event
from .events.retries import DUE, UNKNOWN_MS, afford, again_ms, budgets_of, lacking, note_due, note_tries
from .exhaustion import first_cause
from .plan import Plan
from .prepare import Prepared
from .scopes import Cause, Scope, free_all, note_all, progress, time_left


@dataclass(slots=True, kw_only=True)
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
    no_retry: str | None = None
    """Code of the retry budget for lack of which it is not to be repeated."""
    again_ms: int | None = None
    """The library makes the call again by itself, after this wait at least; None: it does not."""
    run: str = ""
    """Which life of the session."""
    judged: Judged | None = None
    """The question to a model about a failure, and its answer."""
    changes: bool = True
    """The call may have changed something."""
    elapsed_ms: int = 0
    """From the first event of the session to this one."""
    marks: dict[str, Any] | None = None
    """The place of its event among those of other sessions, if it shares anything with them."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        event: tuple[int, int, bool, int],
        envelope: Envelope,
        codes: tuple[str | None, str | None],
        errors: tuple[tuple[str, str], ...],
        where: tuple[str, int, dict[str, Any] | None],
    ) -> Self:
        """
        Returns the event for a call by *plan* that ended in *envelope*. *event* is its number, its time, whether it is
        late, and its duration. *codes* are those of the limit that it used up and of the retry budget that was empty.
        *where* is the life of the session, its length so far, and its marks.
        """
        made = cls.__new__(cls)
        made.n, made.at_ms, made.late, made.duration_ms = event
        made.limit, made.no_retry = codes
        made.errors = errors
        made.retryable = envelope.retryable
        made.wait_ms = envelope.retry_after_ms
        made.retries = envelope.max_retries_remaining
        made.is_complete = envelope.is_complete
        made.again_ms = envelope.again_ms
        made.judged = envelope.judged
        made.changes = plan.changes
        made.run, made.elapsed_ms, made.marks = where
        return made


@dataclass(slots=True)
class Settle(Event[tuple[Envelope, Completion]]):
    """
    An admitted call is over: it is settled, and its envelope is made. The cost of the call is charged to the scopes
    too.

    *advised* is the record of a failure that a model judged: a replay goes by it. A replay also goes by *again_ms*, see
    `Completion`.
    """

    now_ms: int
    decision: Decision
    prepared: Prepared
    plan: Plan
    advised: Advised | None = None
    again_ms: int | None = UNKNOWN_MS
    left_ms: int | None = None
    """What the caller has left for further attempts; None: any time."""

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> tuple[Envelope, Completion]:  # noqa: C901  one event, step after step
        chain, decision, prepared, plan = engine.chain, self.decision, self.prepared, self.plan
        call, outcome, rendered = decision.call, prepared.outcome, prepared.rendered
        failed = outcome.error_type is not None
        now = touch(state, self.now_ms)
        sig, seq = call.sig, decision.seq
        pending = state.pending.get(pending_key(call.id, sig, seq) if sig is None else (call.id, sig))
        if pending is not None and (pending.seq != seq or pending.parked is not None):
            # One that was suspended may be ended by whoever knows how.
            pending = pending if pending.seq == seq and resume(state, pending) else None
        duration = max(0, now - decision.at_ms)
        shapes = plan.shapes if failed else plan.success_shapes
        errors: list[tuple[str, str]] = []
        budgets = budgets_of(plan, state, scopes, call.tool) if failed and (scopes or plan.retry_budgets) else ()
        no_retry = lacking(chain, budgets, call.tool) if budgets else None
        facts = None
        if shapes or plan.settles:
            retried = None
            if failed and (chain.models.loaded or self.advised is not None):
                retried = self._retried(chain, state)
            facts = Facts(
                now,
                plan.tool,
                decision.cost,
                decision.tokens,
                turn=decision.turn,
                known=chain.known,
                duration_ms=duration,
                retried=retried,
                no_retry=no_retry,
            )
        if failed and outcome.retry_after_ms is not None:
            note_due(state, call.tool, outcome.retry_after_ms)
        if state.holds:
            free_all(engine.id, state, scopes, f"c{seq}")
        if pending is None:
            n = settle_late(state, changes=plan.changes)
        else:
            if outcome.cost or outcome.tokens:
                # What is declared needs no average, and a record cannot tell it from what was used.
                cost, tokens = 0 if plan.cost else outcome.cost or 0, 0 if plan.tokens else outcome.tokens or 0
                if cost or tokens:
                    note_all(chain, state, scopes, call.tool, cost, tokens)
            n = settle(state, pending, outcome, prepared.result_hash, prepared.steady, prepared.empty)
            # Where each call in the window is another there is nothing to compare.
            if len(state.latest) < len(state.window) and moved(state, pending.entry):
                note_moved(state, sig)
            if facts is not None and plan.settles:
                errors += _corrected(plan, self, state, facts)
        envelope = Envelope.of(outcome, rendered) if prepared.own is None else prepared.own.shown(rendered)
        for name, shape in shapes:
            try:
                shaped = shape(envelope, call, outcome, state, facts)
                if shaped is not envelope and not isinstance(shaped, Envelope):
                    raise TypeError(f"a shape returns the envelope, not {type(shaped).__name__}")
                envelope = shaped
            except Exception as error:  # noqa: BLE001
                errors.append((name, f"{type(error).__name__}: {error}"))
        if decision.nudges:
            # That a loop brings nothing is not said beside something new.
            news = pending is not None and brought_news(state, pending.entry)
            for code, hint in decision.nudges:
                if not (news and code.startswith(chain.repeating)):
                    envelope.nudge(hint)
        if budgets:
            afford(envelope, outcome, no_retry, budgets, call.tool)
        unafforded = no_retry is not None and envelope.code == no_retry.code
        if failed and pending is not None:
            note_tries(pending, envelope, state, unafforded=unafforded)
        limit = pending.limit if pending is not None else None
        if limit is None and (state.exhausted is not None or chain.far is None or not chain.far(state, now, 0)):
            limit = _limit(chain, state, now)
        if scopes:
            spent, raised = self._shared(engine, scopes, pending, duration)
            limit = limit or spent
            errors += raised
        if limit is not None:
            code = limit[0]
            envelope.limit(limit[1], finish(code), code if names(code) else None)
        if call.attempt and pending is not None:
            over = limit is not None or state.exhausted is not None
            wait_ms = self.again_ms
            if wait_ms == UNKNOWN_MS:
                left, named = time_left(chain, state, scopes), outcome.retry_after_ms is not None
                if self.left_ms is not None:
                    left = self.left_ms if left is None else min(left, self.left_ms)
                wait_ms = None if over else again_ms(plan, envelope, call, duration, left, named=named)
            envelope.attempted(call.attempt, wait_ms)
            if wait_ms is not None:
                note_again(state, pending)
        shown = None
        if chain.form != "merged" and "progress" not in chain.left_out:
            shown = progress(chain, state, now, scopes, near=True)
        envelope.close(chain.left_out, shown, chain.form)
        marks = engine.marks(state, scopes) if scopes or state.family is not None else None
        made = Completion.of(
            plan,
            (n, now, pending is None, duration),
            envelope,
            (None if limit is None else limit[0], no_retry.code if unafforded and no_retry is not None else None),
            tuple(errors) if errors else (),
            (state.run, state.elapsed_ms, marks),
        )
        return envelope, made

    def _shared(
        self,
        engine: Engine,
        scopes: Sequence[Scope],
        pending: Pending | None,
        duration: int,
    ) -> tuple[Cause | None, list[tuple[str, str]]]:
        """
        Charge *scopes* too. Returns the limit of one that is used up, and (guard, what it raised).
        """
        errors: list[tuple[str, str]] = []
        decision, outcome = self.decision, self.prepared.outcome
        limit: Cause | None = None
        for scope in scopes:
            number(scope.state)
            if pending is not None:
                estimate = decision.cost, decision.tokens
                settle_held(scope.state, engine.id, pending.seq, estimate, outcome)
                applied = scope.chain.plan(decision.call.tool)
                if applied.settles:
                    facts = Facts(
                        scope.now_ms,
                        self.plan.tool,
                        *estimate,
                        turn=decision.turn,
                        known=scope.chain.known,
                        duration_ms=duration,
                    )
                    said = _corrected(applied, self, scope.state, facts)
                    errors += [(f"{scope.name}.{name}", raised) for name, raised in said]
            limit = limit or scope.cause(scope.chain.call_spenders)
        # The call that uses up a number of calls says so itself; it knew at its admission.
        known = limit is None or limit[0].endswith(".budget.max_calls")
        return None if known else limit, errors

    def _retried(self, chain: Chain, state: SessionState) -> Retried:
        call, outcome = self.decision.call, self.prepared.outcome
        failure = Settled(call.tool, call.sig, outcome.error_type, state.now_ms)
        left = named_left(state.meters.get(DUE + call.tool), state.now_ms, outcome.retry_after_ms)
        return Retried(chain.models.loaded, tuple(state.trail), failure, state.elapsed_ms, left, self.advised)


def _limit(chain: Chain, state: SessionState, now_ms: int) -> Cause | None:
    """
    Returns the limit that what a call really took has used up.
    """
    # What no call can bring about is asked only once the session is over anyway.
    cause = first_cause(chain, chain.call_spenders if state.exhausted is None else chain.spenders, state, now_ms)
    if cause is None:
        return None
    exhaust(state, cause)
    return None if cause.code == "budget.max_calls" else (cause.code, cause.message)


def _corrected(plan: Plan, over: Settle, state: SessionState, facts: Facts) -> Iterator[tuple[str, str]]:
    """
    Let guards correct their counters by what the call really used; (name, what it raised) of those that fail.
    """
    for name, correct in plan.settles:
        try:
            set_meters(state, correct(over.decision.call, over.prepared.outcome, state, facts))
        except Exception as error:  # noqa: BLE001
            yield name, f"{type(error).__name__}: {error}"
