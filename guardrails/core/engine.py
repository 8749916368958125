"""
Decide and complete: the two functions that a live session, a replay of records, a judge of transcripts and a case of a policy share.

Pure: a call and the states that it concerns go in, an answer comes out. Callers read the clock, keep the states and write the
records. No guard is named here: a chain has their hooks, and a state what they remember.

Promises, each with a test:

* All guards look at a call, none stops another. It is charged in its session and all of its scopes, or in none.
* The same call asked about again, by id and signature, is the same decision and one charge, until it is settled. To run it is a claim,
  and a second claim is refused.
* A guard that fails is no denial: it is an error, and what follows is the policy's `on_error`.
* What is decided depends on the states, the call and recorded facts alone.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from guardrails.core.chain import Chain, Hook, Hooks, Plan, least_of
from guardrails.core.decision import Completion, Decision, Expired
from guardrails.core.envelope import Envelope
from guardrails.core.guards.base import Event, Facts
from guardrails.core.refusals import (
    UNCERTAIN,
    Verdicts,
    failure,
    finish,
    in_flight,
    late,
    names_turns,
    over,
    unbound,
    uncertain,
)
from guardrails.core.retries.serving import Advice
from guardrails.core.scopes import Place, first_cause, hold_in, marks, move_in, opened, progress, settle_in, time_left
from guardrails.core.state import (
    ASKED,
    GRACE_MS,
    Entry,
    Pending,
    Question,
    SessionState,
    admit,
    exhaust,
    expire,
    goes_on,
    join,
    note_refused,
    note_uncertain,
    overdue,
    park,
    part,
    settle,
    take_up,
    time_of,
    touch,
)
from guardrails.core.values.types import Denial, End, Outcome, ToolCall


T = TypeVar("T")
Limit = tuple[str, str, str]
"""Its code, message and hint."""
States = Sequence[SessionState]
Failures = tuple[tuple[str, bool, Exception], ...]
"""(guard, enforced, what it raised)"""


class Engine(NamedTuple):
    """
    The chain of the session *id*, and those of its *scopes*, each (name, id, chain).

    *child* says that the session belongs to a family, whose root's state is given last. *life* draws the name of a new
    life. Without *life* nobody records, and lives have no names.
    """

    chain: Chain
    id: str = ""
    scopes: Sequence[tuple[str, str, Chain]] = ()
    child: bool = False
    life: Callable[[], str] | None = None

    def apply(
        self, event: Callable[..., T], values: Sequence[Any], now_ms: int, states: States, clocks: Sequence[int] = ()
    ) -> T:
        """
        Let *event*, a function of a `Moment` and *values*, happen in *states*: the session's, those of its scopes where they are given,
        and its family's root's.

        *clocks* are the times of the scopes, if each has its own.
        """
        shared = states[1 : len(states) - self.child]
        for each in (states[0], *shared):
            if not each.run and self.life is not None:
                # One that was forgotten may live again, and counts from 1 then.
                each.run = self.life()
        scopes = opened(self.scopes, shared, clocks or [now_ms] * len(shared), self.id) if shared else ()
        moment = Moment(self, states[0], scopes)
        return self._in_family(states, partial(event, moment, *values)) if self.child else event(moment, *values)

    def look(self, look: Callable[[Sequence[Place]], T], states: States, now_ms: int) -> T:
        """
        Returns the answer of *look* to the session, and to the scopes it is in, at *now_ms* of its clock. It changes no state.
        """
        owners = (("", self.id, self.chain), *self.scopes)
        places = [Place(*owner, state, time_of(state, now_ms)) for owner, state in zip(owners, states, strict=False)]
        return self._in_family(states, partial(look, places)) if self.child else look(places)

    def _in_family(self, states: States, step: Callable[[], T]) -> T:
        state, names = states[0], self.chain.family
        n = state.n
        join(state, states[-1], names, self.id)
        try:
            return step()
        finally:
            part(state, states[-1], names, event=state.n != n)


class Moment(Place):
    """
    One moment of a session, in which an event happens there and in its *scopes*.
    """

    name = holder = ""
    expired: Expired = ()
    """Admissions that were given up by the way."""
    errors: tuple[tuple[str, str], ...] = ()
    """(guard, what it raised), once a call is over."""

    def __init__(self, engine: Engine, state: SessionState, scopes: Sequence[Place]) -> None:
        self.id, self.chain, self.state, self.now_ms = engine.id, engine.chain, state, state.now_ms
        self.engine, self.scopes, self.places = engine, scopes, (self, *scopes)

    def marks(self) -> dict[str, Any] | None:
        """
        Returns the place of the event that was just numbered among those of other sessions, if anybody records.
        """
        shares = self.scopes or self.state.family is not None
        return marks(self.state, self.scopes) if shares and self.engine.life is not None else None

    def go_by(self, plan: Plan) -> None:
        """
        Let *plan*, the session's of a tool, hold in the session, and in each scope what its chain has for that tool.
        """
        self.plan = plan
        for scope in self.scopes:
            scope.plan = scope.chain.plan(plan.tool.name)

    def answer(self, made: Decision, verdicts: Verdicts | None = None) -> Decision:
        """
        Returns the decision *made* with what else is recorded of it: the *verdicts* of guards, and its place.
        """
        if verdicts is not None:
            made.observed, made.errors = tuple(verdicts.observed), tuple(verdicts.errors)
        if self.expired:
            made.expired = self.expired
        made.marks = self.marks()
        return made

    def give_up(self, pending: Pending) -> tuple[int, Pending, dict[str, Any]]:
        """
        Give up one admission. Returns the number of the event, the admission, and its place in the scopes.
        """
        state = self.state
        ran = expire(state, pending)
        if ran and pending.once:
            note_uncertain(state, pending)
        state.n += 1
        for place in self.places:
            tell_of(place, place.chain.plan(pending.tool), pending, "expire", waited=not ran)
        self.let_go(pending, "expire" if ran else "refuse")
        scopes = (self.marks() or {}).get("scopes")
        return state.n, pending, {"scopes": scopes} if scopes else {}

    def let_go(self, pending: Pending, event: str) -> None:
        """
        Let *event* of an admission happen in the scopes too; guards take back what they counted of a call that never ran.
        """
        for place in self.places:
            if place.name:
                move_in(place.state, pending, event)
            if event in ("refuse", "withdraw"):
                tell_of(place, place.chain.plan(pending.tool), pending, "withdraw")


# Before a call runs


def decide(at: Moment, call: ToolCall, plan: Plan, now_ms: int, claims: bool, stop: Denial | None) -> Decision:
    """
    Returns whether *call* may run. *claims*: who asks runs it. *stop*: an operator has stopped all calls.
    """
    state = at.state
    if state.pending and stop is None:
        twin = _twin(state, call)
        if twin is not None and _is_no_event(twin, call, time_of(state, now_ms), claims=claims):
            # It waits for a person, or for its host, and nothing has happened.
            return Decision.again(call, twin, at.engine.id, state.run)
    now = at.now_ms = touch(state, now_ms)
    if state.pending:
        at.expired = tuple(at.give_up(one) for one in overdue(state, now))
        twin = _open_twin(state, call) if stop is None else None
        if twin is not None:
            return _again(at, call, plan, twin, claims=claims)
    at.go_by(plan)
    facts = Facts(now, plan.tool, plan.cost, plan.tokens, state.present.number)
    if facts.turn == 0 and stop is None and not goes_on(state, call.sig):
        begin_implied_turn(at, facts)
    verdicts = _verdicts(at, call, facts) if stop is None else Verdicts([stop])
    if verdicts is not None and verdicts.questions:
        claims_now = False
        if call.sig is None and not verdicts.denials:
            # Nothing could ever be the same call.
            verdicts.denials.append(unbound(call.tool))
    else:
        claims_now = claims
    if verdicts is None or not verdicts.denials:
        facts.seq, facts.expires_ms = state.seq + 1, now + plan.lasts_ms + GRACE_MS * claims_now
        verdicts = _count(at, call, facts, verdicts)
    if verdicts is not None and verdicts.denials:
        return _refuse(at, call, plan, verdicts, claims=claims)
    return _open(at, call, plan, facts, verdicts, claims=claims_now)


def _verdicts(at: Moment, call: ToolCall, facts: Facts) -> Verdicts | None:
    """
    Returns what the guards of a session and of its scopes say of a call; None: nothing.
    """
    state, sig, verdicts = at.state, call.sig, None
    if state.exhausted is not None:
        verdicts = Verdicts([over(at.chain, state.exhausted)])
    fresh = not (state.pending or call.problems)
    if sig in state.latest:
        last, fresh = state.last(sig), False
        if last is not None and last.status == "error":
            facts.failed = last
    facts.models = at.chain.models.loaded
    for place in at.places:
        its, own = place.state, place.plan
        facts.now_ms, facts.holder, facts.known, mine = place.now_ms, place.holder, place.chain.known, its.own.get
        checks = own.fresh_checks if fresh else own.checks
        for name, key, enforced, check in checks:
            try:
                verdict = check(call, its, mine(key), facts)
                if verdict is None:
                    continue
                verdicts = verdicts or Verdicts()
                verdicts.note(verdict, place, enforced=enforced)
            except Exception as error:  # a guard that fails is decided by `on_error`
                verdicts = verdicts or Verdicts()
                verdicts.fail(error, name, place, deny=own.deny_on_error and enforced)
    if sig in state.uncertain and not (verdicts is not None and verdicts.questions):
        verdicts = verdicts or Verdicts()
        one = state.uncertain[sig]
        denial = at.chain.worded(late(call.tool) if one.came else uncertain(call.tool, one.reason))
        (verdicts.denials if at.chain.mode == "enforce" else verdicts.observed).insert(0, denial)
    return verdicts


def _count(at: Moment, call: ToolCall, facts: Facts, verdicts: Verdicts | None) -> Verdicts | None:
    """
    Let guards count a call, in all states or, if one that is needed fails, in none.
    """
    before = []
    for place in at.places:
        its, own = place.state, place.plan
        before.append(its.own.copy())
        facts.now_ms, facts.holder = place.now_ms, place.holder
        hooks = own.family_admits if its.reserved or its.family is not None else own.admits
        for name, enforced, error in remember(hooks, its, facts, call):
            verdicts = verdicts or Verdicts()
            verdicts.fail(error, name, place, deny=own.deny_on_error and enforced)
    if verdicts is not None and verdicts.denials:
        for place, remembered in zip(at.places, before, strict=True):
            place.state.own = remembered
    return verdicts


def _open(at: Moment, call: ToolCall, plan: Plan, facts: Facts, verdicts: Verdicts | None, *, claims: bool) -> Decision:
    """
    Open the admission of a call that every guard has counted.
    """
    chain, state, failed = at.chain, at.state, facts.failed
    pending = admit(state, call, plan, chain.window, claims=claims)
    now = state.now_ms
    made = Decision(
        call, pending.n, now, facts.turn, at.engine.id, state.run, claims, state.seq, plan.cost, plan.tokens
    )
    if failed is not None:
        made.retry_source = "policy" if failed.retries_left else "agent"
    if verdicts is not None:
        made.nudges = pending.hints = tuple(verdicts.nudges)
        if verdicts.questions:
            park(pending, Question.about(call, verdicts.questions[0], now))
            made.park_n = state.n = state.n + 1
            made.refuse(verdicts.questions[0], left_out=chain.left_out)
    for scope in at.scopes:
        hold_in(scope.state, pending)
    if made.envelope is None:
        pending.limit = _used_up(at, facts, chain.call_spenders, whole=state.present.is_whole)
    if at.scopes or state.limits or now - state.started_ms >= chain.soon_ms:
        made.left_ms = time_left(at.places)
    return at.answer(made, verdicts)


def _used_up(at: Moment, facts: Facts, own: tuple[Hook, ...], *, whole: bool) -> Limit | None:
    """
    Returns the limit that a call, just admitted or over, uses up, as the hooks *own* of its session or those of a scope find; what ends the
    session at once does so. *whole*: no call of the present turn is to come.
    """
    for place in at.places:
        facts.now_ms, facts.holder, facts.turn_over = place.now_ms, place.holder, whole
        spenders = place.chain.call_spenders if place.name else own
        cause = first_cause(place, spenders, facts)
        if cause is None:
            continue
        if not place.name:
            # A limit of turns lets the rest of this one run.
            facts.turn_over = False
            present = first_cause(place, spenders, facts) if whole else cause
            if present is not None:
                exhaust(at.state, cause := present)
        return cause.code, cause.message, cause.hint
    return None


def _refuse(at: Moment, call: ToolCall, plan: Plan, verdicts: Verdicts, *, claims: bool) -> Decision:
    chain, state, turn = at.chain, at.state, at.state.present
    # First what ends the session, and its own before those of scopes.
    verdicts.denials.sort(key=lambda denial: (not denial.ends_session, denial.scope is not None))
    first = verdicts.denials[0]
    turn.decided += 1
    state.n += 1
    facts = Facts(state.now_ms, plan.tool, turn=turn.number)
    values = {"sig": call.sig, "code": first.code, "strike": first.strike, "tool": call.tool}
    verdicts.errors += [failure(error, name) for name, _, error in tell(state, plan.on, "refusal", values, facts)]
    if first.strike:
        note_refused(state, call.sig)
    if first.code == UNCERTAIN and not first.running and call.sig is not None:
        # The model reads now what came of it: asked for again, it is another call.
        state.uncertain.pop(call.sig, None)
    if first.ends_session and first.scope is None:
        exhaust(state, first)
    for scope in at.scopes:
        scope.state.n += 1
    cause = None
    if turn.number and turn.is_whole and (turn.expects or turn.admitted) and state.exhausted is None:
        facts.turn_over = True
        cause = first_cause(at, chain.spenders, facts)
    made = Decision(call, state.n, state.now_ms, turn.number, at.engine.id, state.run, claims)
    made.refuse(*verdicts.denials, limit=None if cause is None else cause.message, left_out=chain.left_out)
    return at.answer(made, verdicts)


# The same call again


def _twin(state: SessionState, call: ToolCall) -> Pending | None:
    """
    Returns the open admission of the very same call, by id and signature.
    """
    same = (one for one in state.pending.values() if one.entry.sig == call.sig and one.id == call.id)
    return None if call.sig is None else next(same, None)


def _is_no_event(twin: Pending, call: ToolCall, now: int, *, claims: bool) -> bool:
    """
    Returns whether nothing happens by asking about *twin* again.
    """
    if twin.question is None or twin.expires_ms <= now:
        return False
    if twin.stage == "parked":
        return True
    return twin.stage == "suspended" and not claims and twin.question.binds(call)


def _open_twin(state: SessionState, call: ToolCall) -> Pending | None:
    """
    Returns the open admission of *call*: by its id, or one that a person approved or a host suspended, by its arguments.
    """
    twin = _twin(state, call)
    for one in state.pending.values() if twin is None and call.sig is not None else ():
        its = one.question if one.stage in ("approved", "suspended") and one.sig == call.sig else None
        if its is not None and its.binds(call):
            return one
    return twin


def _again(at: Moment, call: ToolCall, plan: Plan, twin: Pending, *, claims: bool) -> Decision:
    """
    Returns the same decision again: a claim of it if *claims*, for there is one; an approved call is made as if it were asked for now.
    """
    state, own = at.state, at.engine.id
    waited = twin.stage in ("approved", "suspended")
    if (claims and twin.stage == "running") or (twin.question is not None and not twin.question.binds(call)):
        return _refuse(at, call, plan, Verdicts([at.chain.worded(in_flight(call.tool))]), claims=claims)
    left_ms = time_left(at.places)
    if twin.stage == "parked" or not (claims or waited):
        at.scopes, at.places = (), (at,)
        made = Decision.again(call, twin, own, state.run)
    else:
        if waited:
            twin.id, twin.entry.changes = call.id, plan.changes
            if call.sig is not None:
                state.uncertain.pop(call.sig, None)
        taken: Literal["claim", "ask"] = "claim" if claims else "ask"
        take_up(twin, taken, state.now_ms + plan.lasts_ms + GRACE_MS * claims)
        state.n += 1
        if waited:
            facts = Facts(state.now_ms, plan.tool, turn=state.present.number)
            twin.limit = _used_up(at, facts, at.chain.call_spenders, whole=state.present.is_whole) or twin.limit
        for scope in at.scopes:
            move_in(scope.state, twin, taken)
        made = Decision.again(call, twin, own, state.run)
        made.at_ms, made.claim_n, made.park_n = state.now_ms, state.n, state.n if waited else 0
    made.left_ms = left_ms
    return at.answer(made)


def tell_of(place: Place, plan: Plan, pending: Pending, name: str, **more: Any) -> None:
    """
    Let the guards of a call know of an event of its admission.
    """
    state, cost, tokens = place.state, pending.cost, pending.tokens
    facts = Facts(state.now_ms, plan.tool, cost, tokens, pending.turn, seq=pending.seq, holder=place.holder)
    values = {"sig": pending.sig, "tool": pending.tool, "seq": pending.seq, "id": pending.id, **more}
    tell(state, plan.on, name, values, facts)


def tell(state: SessionState, on: Hooks, name: str, values: Any, facts: Facts) -> Failures:
    """
    Let the hooks of *on* know of the event *name*.
    """
    hooks = on.get(name)
    return remember(hooks, state, facts, Event(name, values)) if hooks else ()


def remember(
    hooks: tuple[Hook, ...], state: SessionState, facts: Facts, what: Any, outcome: Outcome | None = None
) -> Failures:
    """
    Let guards remember *what* happened, a call or an event, each by its hook; of a call that is over its *outcome*. One that fails
    remembers what it did before.
    """
    own = state.own
    failures: Failures = ()
    for name, key, enforced, hook in hooks:
        mine = own.get(key)
        try:
            # To unpack what differs would take as long as a small hook.
            made = hook(what, state, mine, facts) if outcome is None else hook(what, outcome, state, mine, facts)
        except Exception as error:  # a guard that fails is decided by `on_error`
            failures += ((name, enforced, error),)
        else:
            if made is mine:
                continue
            if made is None:
                own.pop(key, None)
            else:
                own[key] = made
    return failures


def begin_implied_turn(own: Place, facts: Facts) -> None:
    """
    Open the next turn of a host that announces none, and end a session whose refusals are enough. The turns that a budget counts are
    those that are announced: they stay what they are.
    """
    state, chain = own.state, own.chain
    turn = state.present
    facts.turn_over = True
    tell(state, chain.on, "turn", {}, facts)
    turn.implied += 1
    turn.refused, turn.since_ms = [], state.now_ms
    for hook in chain.turn_spenders:
        # Without a memory of turns a guard knows of none.
        if hook[1] in state.own and (cause := first_cause(own, (hook,), facts)) is not None:
            exhaust(state, cause)
    facts.turn_over = False


# After it has run


def complete(
    at: Moment, decision: Decision, end: End, plan: Plan, now_ms: int, advised: Advice | None
) -> tuple[Envelope, Completion]:
    """
    Returns what the model reads of a call that is over, and what is recorded of it.
    """
    chain, state, own = at.chain, at.state, end.own
    now = at.now_ms = touch(state, now_ms)
    failed, at_ms = end.error_type is not None, decision.at_ms
    took = now - at_ms if now > at_ms else 0
    facts = Facts(now, plan.tool, decision.cost, decision.tokens, decision.turn)
    facts.known, facts.seq, facts.duration_ms, facts.hints = chain.known, decision.seq or 0, took, decision.nudges
    if failed:
        facts.models, facts.advised = chain.models.loaded, advised
    at.go_by(plan)
    pending = _running(state, decision)
    facts.unknown = _settle(at, plan, pending, end, decision, facts)
    envelope = Envelope.of(end, end.rendered) if own is None else own.shown(end.rendered)
    code = envelope.code
    envelope = _shape(at, envelope, decision.call, end, facts)
    for _, hint in facts.hints:
        envelope.nudge(hint)
    # A guard withholds a retry by a code.
    withheld = envelope.code if failed and envelope.code != code else None
    if failed and pending is not None:
        _note_advice(pending.entry, envelope, now, withheld=withheld is not None)
    facts.over = True
    limit = None if pending is None else pending.limit
    if limit is None:
        changed = end.cost is not None or end.tokens is not None or decision.cost or decision.tokens or at.scopes
        spenders = chain.call_spenders if changed or now - state.started_ms >= chain.soon_ms else chain.end_spenders
        limit = _used_up(at, facts, spenders, whole=False) if spenders else None
    if limit is not None:
        envelope.limit(limit[1], finish(limit[0]), limit[0] if names_turns(limit[0]) else None)
    shows = chain.form != "merged" and "progress" not in chain.left_out
    envelope.close(chain.left_out, progress(at.places, near=True) if shows else None, chain.form)
    since, whole = now - state.started_ms, envelope.is_complete
    made = Completion(state.n, now, pending is None, took, since, state.run, plan.changes, whole, facts.unknown)
    made.marks = at.marks()
    if limit is not None:
        made.limit = limit[0]
    if facts.hints is not decision.nudges:
        made.warnings = tuple(one for one in facts.hints if one not in decision.nudges)
    if at.errors:
        made.errors = at.errors
    if failed or own is not None:
        made.advise(envelope, withheld)
    return envelope, made


def _running(state: SessionState, decision: Decision) -> Pending | None:
    """
    Returns the admission that *decision* opened, if it is open still.
    """
    pending, call = state.pending.get(decision.seq or 0), decision.call
    if pending is None or pending.sig != call.sig or pending.id != call.id or pending.stage in ASKED:
        # It is none any more, or of another life of the session.
        return None
    return pending


def _settle(at: Moment, plan: Plan, pending: Pending | None, end: End, decision: Decision, facts: Facts) -> bool:
    """
    Settle an admission, if there is one still. Returns whether nobody knows how a call ended that is not to be made twice.
    """
    state, call = at.state, decision.call
    # Whoever ends it may know less of its tool than who began it.
    unknown = end.unknown and (plan.once or (pending is not None and pending.once))
    if decision.n and decision.run != state.run:
        # Of a life of the session that was forgotten: no guard of this one knows of it, nor does a replay.
        for place in at.places:
            place.state.n += 1
        return unknown
    if call.sig in state.uncertain and not unknown:
        if end.unread and end.error_type is None:
            state.uncertain[call.sig] = state.uncertain[call.sig]._replace(came=True)
        else:
            del state.uncertain[call.sig]
    if pending is None:
        facts.late = True
    else:
        settle(state, pending, end, "ok" if end.error_type is None else "error")
        entry = facts.entry = pending.entry
        entry.result_hash, entry.steady, entry.came = end.hash, end.steady, end.came
        if unknown:
            note_uncertain(state, pending)
    for place in at.places:
        its, own = place.state, place.plan
        its.n += 1
        if place.name:
            if pending is None:
                continue
            settle_in(its, (decision.cost, decision.tokens), end)
        facts.now_ms, facts.holder = place.now_ms, place.holder
        hooks = own.family_settles if its.reserved or its.family is not None else own.settles
        for name, enforced, error in remember(hooks, its, facts, call, end):
            at.errors += (failure(error, place.code(name)),)
            # What it counts is not known any more, so that its limit would hold nothing.
            if enforced and own.deny_on_error and (cause := place.broken(name)) is not None:
                exhaust(state, cause)
    return unknown


def _shape(at: Moment, envelope: Envelope, call: ToolCall, outcome: Outcome, facts: Facts) -> Envelope:
    """
    Let guards change what the model reads of an outcome, and all know of a failure that is called retryable.
    """
    failed = outcome.error_type is not None
    for place in at.places:
        its, own, code, hints = place.state, place.plan, envelope.code, facts.hints
        facts.now_ms, facts.holder, mine = place.now_ms, place.holder, its.own.get
        for name, key, _, shape in own.shapes if failed else own.success_shapes:
            try:
                shaped = shape(envelope, call, outcome, its, mine(key), facts) or envelope
                if shaped is not envelope and not isinstance(shaped, Envelope):
                    raise TypeError(f"a shape returns the envelope, not {type(shaped).__name__}")
                envelope = shaped
            except Exception as error:  # a guard that fails is decided by `on_error`
                at.errors += (failure(error, place.code(name)),)
        if place.name and envelope.code != code:
            envelope.code = place.code(envelope.code or "")
        if facts.hints is not hints:
            facts.hints = tuple(one if one in hints else (place.code(one[0]), one[1]) for one in facts.hints)
    for place in at.places if failed and envelope.retryable else ():
        facts.now_ms, facts.holder = place.now_ms, place.holder
        values = {"tool": call.tool, "sig": call.sig}
        tell(place.state, place.plan.on, "advised", values, facts)
    return envelope


def _note_advice(entry: Entry, envelope: Envelope, now: int, *, withheld: bool) -> None:
    """
    Keep what *envelope* says of making a call that failed again; *withheld*: it says no only because it cannot be afforded.
    """
    if envelope.retryable:
        entry.retries_left = envelope.max_retries_remaining or 0
        entry.retry_at_ms = now + (envelope.retry_after_ms or 0)
    else:
        entry.lasting = envelope.retryable is False and not withheld


def exhausted_by(places: Sequence[Place], **more: Any) -> tuple[str, str] | None:
    """
    Returns (code, message) of what has ended the session, by its own limits or by those of its scopes, as a model request would find it
    now.
    """
    own = places[0].state
    if own.exhausted is not None:
        return own.exhausted[:2]
    facts = Facts(places[0].now_ms, turn=own.present.number, turn_over=True, ahead=True, **more)
    facts.least = least_of(*(place.chain for place in places))
    for place in places:
        facts.now_ms = place.now_ms
        cause = first_cause(place, place.chain.spenders, facts)
        if cause is not None:
            return cause.code, cause.message
    return None
