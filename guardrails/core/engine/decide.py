"""
Before a tool runs: every guard looks at the call, then it is charged or refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Facts, latest
from guardrails.core.guards.duplicates import in_flight
from guardrails.core.state.admissions import admit, deny, give_up, note_limit, take_up, use_approval
from guardrails.core.state.holds import NOTHING, average, lapse
from guardrails.core.state.parking import approved, fits, forget_expired, park, waits
from guardrails.core.state.scope_state import claim as claim_held
from guardrails.core.state.scope_state import hold
from guardrails.core.state.state import Entry, Pending, SessionState
from guardrails.core.state.totals import fork_meters, number, put_back, set_meters, touch
from guardrails.core.values.types import Denial, RetrySource, ToolCall

from .chain import Chain
from .decision import Decision
from .engine import Engine, Event
from .exhaustion import tell_turn, turn_cause, undo, used_up
from .plan import Plan
from .refusals import Found, over
from .scopes import Scope, hold_all, time_left


Voice = tuple[Scope | None, Plan, SessionState, Facts, tuple[Any, ...]]
"""Who has a say in a call, the session (None) or a scope: what it applies, looks at, knows and asks."""


@dataclass(slots=True)
class Ask(Event[Decision]):
    """
    A call is to be decided: by every guard of the session and of its scopes. It is charged in all of them, or refused.

    Idempotent on (id, signature) while the call is unsettled; one that cannot be signed is new each time. With *claim* the
    caller is about to run it: a second claim of one admission is refused.
    """

    now_ms: int
    call: ToolCall
    plan: Plan
    claim: bool = False
    guess: tuple[int, int] | None = None
    """The guess of the call's use by its record. None: it is worked out from the states."""
    stop: Denial | None = None
    """Why every call is refused, also one that was admitted or approved and has not begun."""

    shared = True

    def happen(self, engine: Engine, state: SessionState, scopes: Sequence[Scope]) -> Decision:  # noqa: C901  one event, step after step
        chain, call, plan = engine.chain, self.call, self.plan
        if state.parked and self.stop is None:
            question = waits(state, call, self.now_ms, claim=self.claim)
            if question is not None:
                # No event, so no time passes either: a replay does not know of it.
                return Decision.again(call, question, (engine.id, state.run, None, (), None))
        now, sig = touch(state, self.now_ms), call.sig
        expired: tuple[tuple[int, Pending], ...] = ()
        if state.holds:
            lapse(state, now)
        if state.pending:
            expired = give_up(state)
            for _, lapsed in expired:
                if lapsed.parked is not None:
                    undo(chain, state, lapsed)
            # What cannot be signed is never the same call.
            running = state.pending.get((call.id, sig)) if sig is not None else None
            if running is None and state.parked and sig is not None:
                running = approved(state, call)
            if running is not None and self.stop is None:
                return self._again(engine, state, scopes, running, expired)
        if self.stop is not None:
            return self._refused(engine, state, scopes, Found([self.stop]), expired)
        if state.turn == 0 and call.attempt <= 1:
            tell_turn(chain, state, sig)
        cost, tokens = plan.cost, plan.tokens
        guess = _guess(self, state, scopes) if state.used or scopes or self.guess else NOTHING
        found = None if state.exhausted is None else Found([over(chain, state.exhausted)])
        far, failed = False, _failed(call, state) if sig in state.latest else None
        if sig in state.latest or state.pending or call.problems:
            checks = plan.unfit_checks if call.problems else plan.checks
        else:
            far = chain.far is not None and not tokens and guess is NOTHING and chain.far(state, now, cost)
            checks = plan.far_checks if far else plan.fresh_checks
        known = Facts(now, plan.tool, cost, tokens, state.turn, chain.known, guess=guess, failed=failed)
        if call.problems:
            known.models = chain.models.loaded
        own: Voice = (None, plan, state, known, checks)
        voices = (*(_voice(scope, call.tool, known) for scope in scopes), own) if scopes else (own,)
        for scope, applied, looked, facts, asked in voices:
            for name, enforced, check in asked:
                try:
                    verdict = check(call, looked, facts)
                    if verdict is not None:
                        found = found or Found()
                        found.hear(verdict, chain if scope is None else scope.chain, scope, enforced=enforced)
                except Exception as error:  # noqa: BLE001
                    found = found or Found()
                    deny = applied.deny_on_error and enforced
                    found.fail(error, name, chain if scope is None else scope.chain, scope, deny=deny)
        source: RetrySource | None = None
        if failed is not None:
            source = "explore" if failed.explored else "policy" if failed.advised else "agent"
        parks = found is not None and found.parks(call)
        if found is None or not found.denials:
            found = _charged(chain, call, voices, found)
        if found is not None and found.denials:
            return self._refused(engine, state, scopes, found, expired)
        pending = admit(
            state,
            call,
            cost=cost,
            tokens=tokens,
            timeout_ms=plan.timeout_ms,
            changes=plan.changes and not parks,
            claimed=self.claim and not parks,
            window=chain.window,
            hints=() if found is None else tuple(found.nudges),
            before=failed if call.attempt > 1 else None,
        )
        park_n = park(state, pending, call, found.parking[0]) if found is not None and parks else 0
        limit = None if far or parks else used_up(chain, state, now)
        for scope in scopes:
            number(scope.state)
            hold(scope.state, engine.id, pending)
            limit = limit or scope.cause(scope.chain.call_spenders)
        if guess is not NOTHING:
            hold_all(engine.id, state, scopes, f"c{pending.seq}", guess, lasts_ms=pending.expires_ms - now)
        if limit is not None:
            note_limit(pending, limit)
        marks = engine.marks(state, scopes) if scopes or state.family is not None else None
        soon = now - state.started_ms >= chain.soon_ms or scopes or state.limits
        left_ms = time_left(chain, state, scopes) if soon else None
        where = engine.id, state.run, marks, expired, left_ms
        made = Decision.admitted(call, pending, found, source, where)
        return made.parked(found.parking[0], park_n, chain.left_out) if found is not None and parks else made

    def _again(
        self,
        engine: Engine,
        state: SessionState,
        scopes: Sequence[Scope],
        pending: Pending,
        expired: tuple[tuple[int, Pending], ...],
    ) -> Decision:
        at_ms, claim_n, yes = None, 0, pending.parked
        # An approval is used by whoever asks first, though it only asks: it is good for one.
        takes = self.claim if yes is None else yes.approved
        if (takes and pending.claimed) or (yes is not None and not fits(yes, self.call)):
            found = Found([engine.chain.worded(in_flight(self.call))])
            return self._refused(engine, state, scopes, found, expired)
        if takes:
            at_ms = state.now_ms
            claim_n = take_up(state, pending) if yes is None else self._approved(engine.chain, state, pending)
            for scope in scopes:
                claim_held(scope.state, engine.id, pending, at_ms)
        # Only an event has a place: the same question again is none in a scope.
        left_ms = time_left(engine.chain, state, scopes)
        where = engine.id, state.run, engine.marks(state, scopes if claim_n else ()), expired, left_ms
        approved_n = 0 if yes is None else claim_n
        return Decision.again(self.call, pending, where, at_ms=at_ms, claim_n=claim_n, park_n=approved_n)

    def _approved(self, chain: Chain, state: SessionState, pending: Pending) -> int:
        """
        Let the call be the one that was approved, or suspended. Returns the number of the event.
        """
        plan = self.plan
        n = use_approval(
            state, pending, self.call, timeout_ms=plan.timeout_ms, changes=plan.changes, claimed=self.claim
        )
        limit = used_up(chain, state, state.now_ms)
        if limit is not None:
            note_limit(pending, limit)
        return n

    def _refused(
        self,
        engine: Engine,
        state: SessionState,
        scopes: Sequence[Scope],
        found: Found,
        expired: tuple[tuple[int, Pending], ...],
    ) -> Decision:
        chain, call = engine.chain, self.call
        if state.answers:
            # That the time of its question was over is said once; then it is asked again.
            forget_expired(state, call.sig)
        found.in_order()
        first = found.denials[0]
        n = deny(state, call, first)
        for scope in scopes:
            number(scope.state)
        last = state.turn_decided == state.turn_expects if state.turn_expects else state.turn_admitted > 0
        cause = turn_cause(chain, state, state.now_ms) if last and call.attempt <= 1 else None
        envelope = Envelope.refusal(first, None if cause is None else cause.message, left_out=chain.left_out)
        where = engine.id, state.run, engine.marks(state, scopes), expired, None
        event = n, state.now_ms, state.turn
        return Decision.refused(call, event, found, envelope, where, claimed=self.claim)


def _guess(ask: Ask, state: SessionState, scopes: Sequence[Scope]) -> tuple[int, int]:
    """
    Returns the guessed usage of the call of *ask*, if its tool declares none: its average in the session, else in a
    scope.
    """
    tool, plan = ask.call.tool, ask.plan
    if ask.guess is not None:
        return ask.guess
    known = state
    for scope in scopes:
        known = known if tool in known.used else scope.state
    cost, tokens = average(known, tool)
    guess = 0 if plan.cost else cost, 0 if plan.tokens else tokens
    if guess == NOTHING:
        return NOTHING
    ask.call.note_guess(guess)
    return guess


def _voice(scope: Scope, tool: str, known: Facts) -> Voice:
    """
    The voice of *scope* in a call of *tool*. *known* is what the session knows of the call.
    """
    own = scope.chain.plan(tool)
    facts = Facts(
        scope.now_ms,
        known.tool,
        known.cost,
        known.tokens,
        known.turn,
        scope.chain.known,
        guess=known.guess,
        failed=known.failed,
    )
    return scope, own, scope.state, facts, own.checks


def _charged(chain: Chain, call: ToolCall, voices: Sequence[Voice], found: Found | None) -> Found | None:
    """
    Let guards count the call: all of them, or none if one that fails denies it; what is found then.
    """
    forked = []
    for scope, applied, looked, facts, _ in voices:
        if not applied.charges:
            continue
        # One that fails has set none: there is something to undo only if another went before it.
        if len(voices) > 1 or len(applied.charges) > 1:
            forked.append((looked, fork_meters(looked)))
        for name, enforced, charge in applied.charges:
            try:
                set_meters(looked, charge(call, looked, facts))
            except Exception as error:  # noqa: BLE001
                found = found or Found()
                deny = applied.deny_on_error and enforced
                found.fail(error, name, chain if scope is None else scope.chain, scope, deny=deny)
    if found is not None and found.denials:
        for looked, meters in forked:
            put_back(looked, meters)
    return found


def _failed(call: ToolCall, state: SessionState) -> Entry | None:
    """
    Returns the latest same call as *call*, if that failed.
    """
    entry = latest(state, call.sig)
    return None if entry is None or entry.status != "error" else entry
