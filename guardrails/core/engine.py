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
from typing import Any, Final, TypeVar

from guardrails.core.chain import Chain, Plan, first_cause
from guardrails.core.decision import Completion, Decision, Expired
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Event, Facts
from guardrails.core.prepare import Prepared
from guardrails.core.question import binds, question_of
from guardrails.core.refusals import Found, failure, over, unbound, uncertain
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.retries.serving import Advised
from guardrails.core.scopes import (
    Scope,
    hold_in,
    marks,
    move_in,
    opened,
    progress,
    seen,
    settle_in,
    time_left,
)
from guardrails.core.state import (
    GRACE_MS,
    Entry,
    Pending,
    SessionState,
    admit,
    ask,
    begin_implied,
    claim,
    exhaust,
    expire,
    goes_on,
    hold,
    join,
    note_refused,
    note_retry,
    note_uncertain,
    overdue,
    park,
    part,
    pending_key,
    settle,
    time_of,
    touch,
)
from guardrails.core.values.types import Denial, Outcome, ToolCall
from guardrails.core.words import finish, in_flight, names_turns


T = TypeVar("T")
Limit = tuple[str, str, str]
"""Its code, message and hint."""
Voice = tuple[SessionState, Plan, Chain, Scope | None, int, str]
"""Who has a say in a call, and by what: the session first, then each of its scopes. Its own time, and whose call it is; `""`: its own."""

_IMPLIED: Final = {"calls": 0}
UNJUDGED_RETRIES: Final = 3
"""Retries of a failure that may pass, where no guard judges it."""
UNJUDGED_WAIT_MS: Final = 60_000
"""From the last of them on until another."""


class Engine:
    """
    The chain of the session *id*, and those of its *scopes*, each (name, id, chain).

    *child* says that the session belongs to a family, whose root's state is given last. *life* draws the name of a new
    life. Without *life* nobody records, and lives have no names.
    """

    __slots__ = ("chain", "child", "id", "life", "scopes")

    def __init__(
        self,
        chain: Chain,
        id: str = "",
        *,
        scopes: Sequence[tuple[str, str, Chain]] = (),
        child: bool = False,
        life: Callable[[], str] | None = None,
    ) -> None:
        self.chain = chain
        self.id = id
        self.scopes = tuple(scopes)
        self.child = child
        self.life = life

    def of(self, chain: Chain) -> "Engine":
        """
        Returns the same of another *chain*.
        """
        return Engine(chain, self.id, scopes=self.scopes, child=self.child, life=self.life)

    def within(self, scopes: Sequence[tuple[str, str, Chain]]) -> "Engine":
        """
        Returns the same in no *scopes* but these.
        """
        return Engine(self.chain, self.id, scopes=scopes, child=self.child, life=self.life)

    def apply(
        self,
        event: Callable[..., T],
        now_ms: int,
        states: Sequence[SessionState],
        clocks: Sequence[int] | None = None,
        *values: Any,
    ) -> T:
        """
        Let *event*, a function of an engine, a state, scopes and *values*, happen in *states*: the session's, those of its scopes where
        they are given, and its family's root's.

        *clocks* are the times of the scopes, if each has its own.
        """
        state = states[0]
        if self.life is not None and not state.run:
            # One that was forgotten may live again, and counts from 1 then.
            state.run = self.life()
        if len(states) == 1:
            return event(self, state, (), *values)
        shared = states[1 : len(states) - self.child]
        if self.life is not None:
            for each in shared:
                each.run = each.run or self.life()
        scopes = opened(self.scopes, shared, clocks or [now_ms] * len(shared)) if shared else ()
        if not self.child:
            return event(self, state, scopes, *values)
        names, n = self.chain.family, state.n
        join(state, states[-1], names, self.id)
        try:
            return event(self, state, scopes, *values)
        finally:
            part(state, states[-1], names, event=state.n != n)

    def look(
        self, look: Callable[[SessionState, int, Sequence[Scope]], T], states: Sequence[SessionState], now_ms: int
    ) -> T:
        """
        Returns the answer of *look* to the states of all that the session is in, at *now_ms* of its clock. It changes
        no state.
        """
        state, now = states[0], time_of(states[0], now_ms)
        scopes = seen(self.scopes, states[1 : 1 + len(self.scopes)], now_ms)
        if not self.child:
            return look(state, now, scopes)
        join(state, states[-1], self.chain.family, self.id)
        try:
            return look(state, now, scopes)
        finally:
            part(state, states[-1], self.chain.family, event=False)

    def marks(self, state: SessionState, scopes: Sequence[Scope]) -> dict[str, Any] | None:
        """
        Returns the place of the event that was just numbered among those of other sessions, if anybody records.
        """
        return marks(state, scopes) if (scopes or state.family is not None) and self.life is not None else None

    def decide(
        self,
        call: ToolCall,
        plan: Plan,
        now_ms: int,
        claims: bool,
        stop: Denial | None,
        states: Sequence[SessionState],
        clocks: Sequence[int] | None = None,
    ) -> Decision:
        """
        Returns whether *call* may run. *claims*: who asks runs it. *stop*: an operator has stopped all calls.
        """
        if len(states) == 1 and (states[0].run or self.life is None):
            # Nothing is shared, and it has its name: so it is with most.
            return _decide(self, states[0], (), call, plan, now_ms, claims, stop)
        return self.apply(_decide, now_ms, states, clocks, call, plan, now_ms, claims, stop)

    def complete(
        self,
        decision: Decision,
        prepared: Prepared,
        plan: Plan,
        now_ms: int,
        advised: Advised | None,
        states: Sequence[SessionState],
        clocks: Sequence[int] | None = None,
    ) -> tuple[Envelope, Completion]:
        """
        Returns what the model reads of a call that is over, and what is recorded of it.
        """
        if len(states) == 1 and (states[0].run or self.life is None):
            return _complete(self, states[0], (), decision, prepared, plan, now_ms, advised)
        return self.apply(_complete, now_ms, states, clocks, decision, prepared, plan, now_ms, advised)


def _beside(own: Voice, scopes: Sequence[Scope], engine: Engine, tool: str) -> tuple[Voice, ...]:
    return (own, *((each.state, each.chain.plan(tool), each.chain, each, each.now_ms, engine.id) for each in scopes))


# Before a call runs


def _decide(
    engine: Engine,
    state: SessionState,
    scopes: Sequence[Scope],
    call: ToolCall,
    plan: Plan,
    now_ms: int,
    claims: bool,
    stop: Denial | None,
) -> Decision:
    sig = call.sig
    expired: Expired = ()
    if state.pending:
        twin = state.pending.get((call.id, sig)) if stop is None else None
        if twin is not None and _only_told(twin, call, time_of(state, now_ms), claims=claims):
            # It waits for a person, or for its host, and nothing has happened.
            return Decision.again(call, twin, session=engine.id, run=state.run)
    now = touch(state, now_ms)
    if state.pending:
        expired = _expire(engine, state, now)
        twin = _open_twin(state, call) if stop is None else None
        if twin is not None:
            return _again(engine, call, plan, twin, state, scopes, expired, claims=claims)
    if state.turn == 0 and stop is None and not goes_on(state, sig):
        begin_implied_turn(engine, state)
    facts = Facts.__new__(Facts)
    facts.tool, facts.turn, facts.cost, facts.tokens = plan.tool, state.turn, plan.cost, plan.tokens
    own: Voice = (state, plan, engine.chain, None, now, "")
    voices = _beside(own, scopes, engine, call.tool) if scopes else (own,)
    found = _looked(call, voices, facts) if stop is None else Found([stop])
    if found is not None and found.questions and not found.denials and sig is None:
        # Nothing could ever be the same call.
        found.denials.append(unbound(call.tool))
    parks = found is not None and bool(found.questions)
    if found is None or not found.denials:
        found = _admitted(call, voices, facts, found, claims=claims and not parks)
    if found is not None and found.denials:
        return _refused(engine, call, plan, found, state, scopes, expired, claims=claims)
    return _opened(engine, call, plan, found, facts, state, scopes, voices, expired, claims=claims and not parks)


def _opened(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    found: Found | None,
    facts: Facts,
    state: SessionState,
    scopes: Sequence[Scope],
    voices: Sequence[Voice],
    expired: Expired,
    *,
    claims: bool,
) -> Decision:
    """
    Open the admission of a call that every guard has counted.
    """
    chain, parks = engine.chain, found is not None and bool(found.questions)
    lasts_ms = plan.lasts_ms + GRACE_MS if claims else plan.lasts_ms
    pending = admit(state, call, timeout_ms=lasts_ms, changes=plan.changes, window=chain.window)
    if plan.cost or plan.tokens:
        hold(state, pending, plan.cost, plan.tokens)
    if plan.once:
        pending.once = True
    if claims:
        pending.stage = "running"
    made = Decision.__new__(Decision)
    made.call, made.n, made.at_ms, made.turn, made.seq = call, pending.n, state.now_ms, pending.turn, state.seq
    made.cost, made.tokens, made.claimed = pending.cost, pending.tokens, claims
    made.session, made.run, made.expired = engine.id, state.run, expired
    if facts.failed is not None:
        made.retry_source = "explore" if facts.failed.explored else "policy" if facts.failed.advised else "agent"
    if found is not None:
        made.observed, made.errors = tuple(found.observed), tuple(found.errors)
        made.nudges = pending.hints = tuple(found.nudges)
    if found is not None and parks:
        _park(engine, pending, call, found.questions[0], made, state)
    for scope in scopes:
        hold_in(scope.state, engine.id, pending)
    if not parks:
        pending.limit = _used_up(voices, facts)
    if scopes or state.family is not None:
        made.marks = engine.marks(state, scopes)
    if scopes or state.limits or state.now_ms - state.started_ms >= chain.soon_ms:
        made.left_ms = time_left(chain, state, scopes)
    return made


def _looked(call: ToolCall, voices: Sequence[Voice], facts: Facts) -> Found | None:
    """
    Returns what the guards of a session and of its scopes say of a call; None: nothing.
    """
    state, sig, own = voices[0][0], call.sig, voices[0][2]
    found = None if state.exhausted is None else Found([over(own, state.exhausted)])
    known = sig in state.latest
    if known:
        last = state.last(sig)
        if last is not None and last.status == "error":
            facts.failed = last
    if call.problems:
        facts.models = own.models.loaded
    known = known or bool(state.pending)
    for its, plan, chain, scope, facts.now_ms, facts.holder in voices:
        facts.known, kept = chain.known, its.own
        for name, key, enforced, check in (
            plan.unfit_checks if call.problems else plan.checks if known else plan.fresh_checks
        ):
            try:
                verdict = check(call, its, kept.get(key), facts)
                if verdict is None:
                    continue
                found = found or Found()
                found.hear(verdict, chain, scope, enforced=enforced)
            except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
                found = found or Found()
                found.fail(error, name, chain, scope, deny=plan.deny_on_error and enforced)
    if sig in state.uncertain and not (found is not None and found.questions):
        found = found or Found()
        said = own.worded(uncertain(call.tool, state.uncertain[sig].reason))
        (found.denials if own.mode == "enforce" else found.observed).insert(0, said)
    return found


def _admitted(
    call: ToolCall, voices: Sequence[Voice], facts: Facts, found: Found | None, *, claims: bool
) -> Found | None:
    """
    Let guards count a call, in all states or, if one that is needed fails, in none.
    """
    state, plan = voices[0][0], voices[0][1]
    facts.seq = state.seq + 1
    facts.expires_ms = state.now_ms + plan.lasts_ms + GRACE_MS * claims
    counted = []
    for its, applied, chain, scope, facts.now_ms, facts.holder in voices:
        own = its.own
        new: dict[str, Any] = {}
        for name, key, enforced, hook in applied.admits:
            try:
                new[key] = hook(call, its, new[key] if key in new else own.get(key), facts)
            except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
                found = found or Found()
                found.fail(error, name, chain, scope, deny=applied.deny_on_error and enforced)
        counted.append((own, new))
    if found is None or not found.denials:
        for own, new in counted:
            for key, mine in new.items():
                _keep(own, key, mine)
    return found


def _park(
    engine: Engine, pending: Pending, call: ToolCall, denial: Denial, made: Decision, state: SessionState
) -> None:
    park(pending, question_of(call, denial, state.now_ms))
    state.n += 1
    made.park_n, made.denials = state.n, (denial,)
    made.envelope = Envelope.refusal(denial, left_out=engine.chain.left_out)


def _used_up(voices: Sequence[Voice], facts: Facts) -> Limit | None:
    """
    Returns the limit that the call just admitted uses up; what ends the session at once does so.
    """
    state = voices[0][0]
    whole = state.turn_decided >= state.turn_expects
    for its, _, chain, scope, facts.now_ms, facts.holder in voices:
        facts.turn_over = whole
        cause = first_cause(chain, chain.call_spenders, its, facts)
        if cause is not None and scope is None:
            # A limit of turns lets the rest of this one run.
            facts.turn_over = False
            present = first_cause(chain, chain.call_spenders, its, facts) if whole else cause
            if present is not None:
                exhaust(state, cause := present)
        if cause is not None:
            return _limit_of(cause, scope)
    return None


def _limit_of(cause: Denial, scope: Scope | None) -> Limit:
    said = cause if scope is None else scope.says(cause)
    return said.code, said.message, said.hint


def _refused(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    found: Found,
    state: SessionState,
    scopes: Sequence[Scope],
    expired: Expired,
    *,
    claims: bool,
) -> Decision:
    chain = engine.chain
    found.in_order()
    first = found.denials[0]
    state.turn_decided += 1
    state.n += 1
    values = {"sig": call.sig, "code": first.code, "strike": first.strike, "tool": call.tool}
    tell(state, plan.on, "refusal", values, Facts(state.now_ms, plan.tool, turn=state.turn), found.errors)
    if first.strike:
        note_refused(state, call.sig)
    if first.ends_session and first.scope is None:
        exhaust(state, first)
    for scope in scopes:
        scope.state.n += 1
    last = state.turn_decided == state.turn_expects if state.turn_expects else state.turn_admitted > 0
    facts = Facts(state.now_ms, plan.tool, turn=state.turn, turn_over=True)
    cause = first_cause(chain, chain.spenders, state, facts) if last and state.exhausted is None else None
    made = Decision(call, state.n, state.now_ms, state.turn)
    message = None if cause is None else cause.message
    made.envelope = Envelope.refusal(first, message, left_out=chain.left_out)
    made.denials, made.observed, made.errors = tuple(found.denials), tuple(found.observed), tuple(found.errors)
    made.claimed, made.session, made.run, made.expired = claims, engine.id, state.run, expired
    made.marks = engine.marks(state, scopes)
    return made


# The same call again


def _only_told(twin: Pending, call: ToolCall, now: int, *, claims: bool) -> bool:
    """
    Returns whether nothing happens by asking about *twin* again.
    """
    if twin.question is None or twin.expires_ms <= now:
        return False
    if twin.stage == "parked":
        return True
    return twin.stage == "suspended" and not claims and binds(twin.question, call)


def _open_twin(state: SessionState, call: ToolCall) -> Pending | None:
    """
    Returns the open admission of *call*: by its id, or one that a person approved or a host suspended, by its arguments.
    """
    if call.sig is None:
        return None
    twin = state.pending.get((call.id, call.sig))
    waiting = () if twin is not None else state.pending.values()
    for one in waiting:
        its = one.question if one.stage in ("approved", "suspended") and one.sig == call.sig else None
        if its is not None and binds(its, call):
            return one
    return twin


def _again(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    twin: Pending,
    state: SessionState,
    scopes: Sequence[Scope],
    expired: Expired,
    *,
    claims: bool,
) -> Decision:
    """
    Returns the same decision again: a claim of it if *claims*, for there is one; an approved call is made as if it were asked for now.
    """
    waited = twin.stage in ("approved", "suspended")
    if (claims and twin.stage == "running") or (twin.question is not None and not binds(twin.question, call)):
        found = Found([engine.chain.worded(in_flight(call.tool))])
        return _refused(engine, call, plan, found, state, scopes, expired, claims=claims)
    made = Decision.again(call, twin, session=engine.id, run=state.run)
    made.left_ms, made.expired = time_left(engine.chain, state, scopes), expired
    if twin.stage == "parked" or not (claims or waited):
        made.marks = engine.marks(state, ())
        return made
    if waited:
        del state.pending[twin.key]
        twin.id, twin.entry.changes = call.id, plan.changes
        state.pending[twin.key] = twin
        if call.sig is not None:
            state.uncertain.pop(call.sig, None)
    (claim if claims else ask)(state, twin, timeout_ms=plan.lasts_ms)
    state.n += 1
    if waited:
        facts = Facts(state.now_ms, plan.tool, turn=state.turn)
        own: Voice = (state, plan, engine.chain, None, state.now_ms, "")
        twin.limit = _used_up(_beside(own, scopes, engine, call.tool), facts) or twin.limit
    for scope in scopes:
        move_in(scope.state, engine.id, twin, "claim" if claims else "ask", state.now_ms)
    made.envelope, made.denials, made.claimed = None, (), claims
    made.at_ms, made.claim_n, made.park_n = state.now_ms, state.n, state.n if waited else 0
    made.marks = engine.marks(state, scopes)
    return made


def _expire(engine: Engine, state: SessionState, now: int) -> Expired:
    """
    Give up the admissions whose time is over, as events of the session.
    """
    return tuple((give_up(engine, state, pending), pending) for pending in overdue(state, now))


def give_up(engine: Engine, state: SessionState, pending: Pending) -> int:
    """
    Give up one admission. Returns the number of the event.
    """
    plan = engine.chain.plan(pending.tool)
    ran = expire(state, pending)
    if ran and pending.once:
        note_uncertain(state, pending)
    state.n += 1
    tell_of(state, plan, pending, "expire", waited=not ran)
    if not ran:
        tell_of(state, plan, pending, "withdraw")
    return state.n


def tell_of(state: SessionState, plan: Plan, pending: Pending, name: str, *, holder: str = "", **more: Any) -> None:
    """
    Let the guards of a call know of an event of its admission.
    """
    facts = Facts(state.now_ms, plan.tool, pending.cost, pending.tokens, pending.turn, seq=pending.seq, holder=holder)
    values = {"sig": pending.sig, "tool": pending.tool, "seq": pending.seq, "id": pending.id, **more}
    tell(state, plan.on, name, values, facts, None)


def tell(
    state: SessionState,
    on: Any,
    name: str,
    values: Any,
    facts: Facts,
    errors: list[tuple[str, str]] | None,
) -> tuple[str, ...]:
    """
    Let the hooks of *on* know of the event *name*. Returns the names of enforced guards that failed.
    """
    hooks = on.get(name)
    failed: tuple[str, ...] = ()
    if hooks:
        own, event = state.own, Event(name, values)
        for guard, key, enforced, hook in hooks:
            try:
                mine = hook(event, state, own.get(key), facts)
            except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
                failed += (guard,) if enforced else ()
                if errors is not None:
                    errors.append(failure(error, guard))
            else:
                _keep(own, key, mine)
    return failed


def _keep(own: dict[str, Any], key: str, mine: Any) -> None:
    if mine is not None:
        own[key] = mine
    elif key in own:
        del own[key]


def begin_implied_turn(engine: Engine, state: SessionState) -> None:
    """
    Open the next turn of a host that announces none, and end a session whose refusals are enough.
    """
    chain = engine.chain
    facts = Facts.__new__(Facts)
    facts.now_ms, facts.turn_over = state.now_ms, True
    tell(state, chain.on, "turn", _IMPLIED, facts, None)
    begin_implied(state)
    if chain.turn_spenders:
        cause = first_cause(chain, chain.turn_spenders, state, facts)
        if cause is not None:
            exhaust(state, cause)


# After it has run


def _complete(
    engine: Engine,
    state: SessionState,
    scopes: Sequence[Scope],
    decision: Decision,
    prepared: Prepared,
    plan: Plan,
    now_ms: int,
    advised: Advised | None,
) -> tuple[Envelope, Completion]:
    chain, call, outcome = engine.chain, decision.call, prepared.outcome
    failed, seq = outcome.error_type is not None, decision.seq
    now = touch(state, now_ms)
    pending = state.pending.get((call.id, call.sig) if call.sig is not None else pending_key(call.id, None, seq))
    if pending is not None and (pending.entry.seq != seq or pending.stage in ("parked", "approved")):
        pending = None
    facts = Facts.__new__(Facts)
    facts.now_ms, facts.tool, facts.turn, facts.known = now, plan.tool, decision.turn, chain.known
    facts.cost, facts.tokens, facts.seq = decision.cost, decision.tokens, seq or 0
    facts.duration_ms = now - decision.at_ms if now > decision.at_ms else 0
    if failed:
        facts.models, facts.advised = chain.models.loaded, advised
    errors: list[tuple[str, str]] = []
    own: Voice = (state, plan, engine.chain, None, now, "")
    voices = _beside(own, scopes, engine, call.tool) if scopes else (own,)
    unknown = _settled(engine, pending, prepared, plan, decision, voices, facts, errors)
    envelope = (
        Envelope.of(outcome, prepared.rendered) if prepared.own is None else prepared.own.shown(prepared.rendered)
    )
    code_before = envelope.code
    envelope = _shaped(envelope, call, outcome, voices, facts, errors)
    if decision.nudges:
        # That a repeat brings nothing is not said beside something new.
        news = pending is not None and chain.brought_news(state, pending.entry)
        for code, hint in decision.nudges:
            if not (news and code.startswith(chain.repeating)):
                envelope.nudge(hint)
    unafforded = failed and envelope.code != code_before
    if failed and pending is not None:
        _note_tries(pending.entry, envelope, state, unafforded=unafforded)
    limit = _limit(pending, voices, facts)
    if limit is not None:
        envelope.limit(limit[1], finish(limit[0]), limit[0] if names_turns(limit[0]) else None)
    shown = None
    if chain.form != "merged" and "progress" not in chain.left_out:
        shown = progress(chain, state, now, scopes, near=True)
    envelope.close(chain.left_out, shown, chain.form)
    made = Completion.__new__(Completion)
    made.n, made.at_ms, made.late, made.duration_ms = state.n, now, pending is None, facts.duration_ms
    made.limit = None if limit is None else limit[0]
    made.errors, made.run, made.changes, made.uncertain = tuple(errors), state.run, plan.changes, unknown
    made.retryable, made.wait_ms, made.is_complete = envelope.retryable, envelope.retry_after_ms, envelope.is_complete
    made.retries, made.judged, made.elapsed_ms = envelope.max_retries_remaining, envelope.judged, now - state.started_ms
    made.no_retry = envelope.code if unafforded else None
    if scopes or state.family is not None:
        made.marks = engine.marks(state, scopes)
    return envelope, made


def _shaped(
    envelope: Envelope,
    call: ToolCall,
    outcome: Outcome,
    voices: Sequence[Voice],
    facts: Facts,
    errors: list[tuple[str, str]],
) -> Envelope:
    """
    Let guards change what the model reads of an outcome, and all know of a failure that is called retryable.
    """
    failed = outcome.error_type is not None
    for its, plan, _, scope, facts.now_ms, facts.holder in voices:
        own, code = its.own, envelope.code
        for name, key, _, shape in plan.shapes if failed else plan.success_shapes:
            try:
                shaped = shape(envelope, call, outcome, its, own.get(key), facts)
                if shaped is not envelope and not isinstance(shaped, Envelope):
                    raise TypeError(f"a shape returns the envelope, not {type(shaped).__name__}")
                envelope = shaped
            except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
                errors.append(failure(error, name, scope))
        if scope is not None and envelope.code != code:
            envelope.code = f"{scope.name}.{envelope.code}"
    for its, plan, _, _, facts.now_ms, facts.holder in voices if failed and envelope.retryable else ():
        tell(its, plan.on, "advised", {"tool": call.tool, "sig": call.sig}, facts, None)
    return envelope


def _settled(
    engine: Engine,
    pending: Pending | None,
    prepared: Prepared,
    plan: Plan,
    decision: Decision,
    voices: Sequence[Voice],
    facts: Facts,
    errors: list[tuple[str, str]],
) -> bool:
    """
    Settle an admission, if there is one still. Returns whether nobody knows how a call ended that is not to be made twice.
    """
    state, call, outcome = voices[0][0], decision.call, prepared.outcome
    unknown = prepared.unknown and plan.once
    if call.sig in state.uncertain and not unknown:
        # Late, but now it is known.
        del state.uncertain[call.sig]
    if pending is None:
        facts.late = True
    else:
        settle(state, pending, outcome)
        entry = facts.entry = pending.entry
        entry.result_hash = prepared.result_hash
        if prepared.steady:
            entry.steady = prepared.steady
        if prepared.empty:
            entry.little, entry.empty, entry.unfinished, entry.brief = (prepared.empty == kind for kind in (1, 2, 3, 4))
        if unknown:
            note_uncertain(state, pending)
    for its, applied, _, scope, facts.now_ms, facts.holder in voices:
        its.n += 1
        if scope is not None:
            if pending is None:
                continue
            settle_in(its, engine.id, decision.seq or 0, (decision.cost, decision.tokens), outcome)
        own = its.own
        for name, key, _, hook in applied.settles:
            try:
                mine = hook(call, outcome, its, own.get(key), facts)
            except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
                errors.append(failure(error, name, scope))
            else:
                _keep(own, key, mine)
    return unknown


def _limit(pending: Pending | None, voices: Sequence[Voice], facts: Facts) -> Limit | None:
    """
    Returns the limit that a call has used up, of its session or of a scope.
    """
    facts.over = True
    if pending is not None and pending.limit is not None:
        return pending.limit
    for its, _, chain, scope, facts.now_ms, facts.holder in voices:
        cause = first_cause(chain, chain.call_spenders, its, facts)
        if cause is not None:
            if scope is None:
                exhaust(its, cause)
            return _limit_of(cause, scope)
    return None


def _note_tries(entry: Entry, envelope: Envelope, state: SessionState, *, unafforded: bool) -> None:
    """
    Keep how often a call that failed may be repeated, as *envelope* says.
    """
    if envelope.retryable:
        explored = envelope.judged is not None and envelope.judged.explored
        at_ms = state.now_ms + (envelope.retry_after_ms or 0)
        note_retry(entry, envelope.max_retries_remaining or 0, at_ms, explored=explored)
    elif (envelope.retryable is None or unafforded) and entry.error_type in TRANSIENT:
        # Nobody judges it, or all that lacks is a budget: a few more tries are no repeats, and later on it is another matter.
        earlier = state.earlier(entry.sig, len(state.window))
        run = next((at for at, each in enumerate(earlier) if each.status != "error"), len(earlier))
        tries = max(0, UNJUDGED_RETRIES + 1 - run)
        note_retry(entry, tries, 0 if tries else state.now_ms + UNJUDGED_WAIT_MS)


def exhausted_by(
    chain: Chain, state: SessionState, now_ms: int, scopes: Sequence[Scope] = (), **more: Any
) -> tuple[str, str] | None:
    """
    Returns (code, message) of what has ended the session, by its own limits or by those of its scopes, as a model request at its
    time *now_ms* would find it.
    """
    if state.exhausted is not None:
        return state.exhausted[:2]
    facts = Facts(max(now_ms, state.now_ms), turn=state.turn, turn_over=True, ahead=True, least=chain.least, **more)
    cause = first_cause(chain, chain.spenders, state, facts)
    for scope in scopes:
        if cause is None:
            facts.now_ms, facts.least = scope.now_ms, scope.chain.least
            cause = scope.cause(scope.chain.spenders, facts)
    return None if cause is None else (cause.code, cause.message)
