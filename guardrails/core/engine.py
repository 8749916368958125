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

from guardrails.core.chain import Chain, Hook, Plan, first_cause
from guardrails.core.decision import Completion, Decision, Expired
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Event, Facts
from guardrails.core.prepare import Prepared
from guardrails.core.question import binds, question_of
from guardrails.core.refusals import Found, over, unbound, uncertain
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
    begin_life,
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
        event: Callable[["Engine", SessionState, Sequence[Scope]], T],
        now_ms: int,
        states: Sequence[SessionState],
        clocks: Sequence[int] | None = None,
    ) -> T:
        """
        Let *event* happen in *states*: the session's, those of its scopes where they are given, and its family's root's.

        *clocks* are the times of the scopes, if each has its own.
        """
        state = states[0]
        if self.life is not None:
            for each in states[: 1 + len(self.scopes)]:
                begin_life(each, self.life)
        if len(states) == 1:
            return event(self, state, ())
        shared = states[1 : len(states) - self.child]
        scopes = opened(self.scopes, shared, clocks or [now_ms] * len(shared)) if shared else ()
        if not self.child:
            return event(self, state, scopes)
        names, n = self.chain.family, state.n
        join(state, states[-1], names, self.id)
        try:
            return event(self, state, scopes)
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
        if len(states) == 1:
            state = states[0]
            if self.life is not None and not state.run:
                state.run = self.life()
            return _decide(self, call, plan, now_ms, claims, stop, state, ())
        return self.apply(
            lambda engine, state, scopes: _decide(engine, call, plan, now_ms, claims, stop, state, scopes),
            now_ms,
            states,
            clocks,
        )

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
        if len(states) == 1:
            return _complete(self, decision, prepared, plan, now_ms, advised, states[0], ())
        return self.apply(
            lambda engine, state, scopes: _complete(engine, decision, prepared, plan, now_ms, advised, state, scopes),
            now_ms,
            states,
            clocks,
        )


# Before a call runs


def _decide(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    now_ms: int,
    claims: bool,
    stop: Denial | None,
    state: SessionState,
    scopes: Sequence[Scope],
) -> Decision:
    chain, sig = engine.chain, call.sig
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
    facts.now_ms, facts.tool, facts.turn, facts.known = now, plan.tool, state.turn, chain.known
    facts.cost, facts.tokens = plan.cost, plan.tokens
    found = _looked(engine, call, plan, stop, state, scopes, facts)
    if found is not None and found.questions and not found.denials and sig is None:
        # Nothing could ever be the same call.
        found.denials.append(unbound(call.tool))
    parks = found is not None and bool(found.questions)
    if found is None or not found.denials:
        found = _admitted(engine, call, plan, state, scopes, facts, found, claims=claims and not parks)
    if found is not None and found.denials:
        return _refused(engine, call, plan, found, state, scopes, expired, claims=claims)
    return _opened(engine, call, plan, found, facts, state, scopes, expired, claims=claims and not parks)


def _opened(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    found: Found | None,
    facts: Facts,
    state: SessionState,
    scopes: Sequence[Scope],
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
    else:
        pending.limit = _used_up(chain, state, facts)
    if scopes:
        _hold_in_scopes(engine, pending, scopes, facts)
    if scopes or state.family is not None:
        made.marks = engine.marks(state, scopes)
    if scopes or state.limits or state.now_ms - state.started_ms >= chain.soon_ms:
        made.left_ms = time_left(chain, state, scopes)
    return made


def _hold_in_scopes(engine: Engine, pending: Pending, scopes: Sequence[Scope], facts: Facts) -> None:
    for scope in scopes:
        hold_in(scope.state, engine.id, pending)
        facts.now_ms = scope.now_ms
        cause = scope.cause(scope.chain.call_spenders, facts) if pending.limit is None else None
        if cause is not None:
            pending.limit = cause.code, cause.message, cause.hint


def _looked(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    stop: Denial | None,
    state: SessionState,
    scopes: Sequence[Scope],
    facts: Facts,
) -> Found | None:
    """
    Returns what the guards of a session and of its scopes say of a call; None: nothing.
    """
    if stop is not None:
        return Found([stop])
    chain, sig, own = engine.chain, call.sig, state.own
    found = None if state.exhausted is None else Found([over(chain, state.exhausted)])
    if sig in state.latest:
        last = state.last(sig)
        if last is not None and last.status == "error":
            facts.failed = last
    if call.problems:
        facts.models = chain.models.loaded
        checks = plan.unfit_checks
    else:
        checks = plan.checks if sig in state.latest or state.pending else plan.fresh_checks
    for scope in scopes:
        facts.now_ms, facts.known, facts.holder = scope.now_ms, scope.chain.known, engine.id
        applied = scope.chain.plan(call.tool)
        found = _asked(applied.checks, call, scope.state, scope.chain, scope, facts, found, applied)
    facts.now_ms, facts.known, facts.holder = state.now_ms, chain.known, ""
    for name, key, enforced, check in checks:
        try:
            verdict = check(call, state, own.get(key), facts)
            if verdict is None:
                continue
            found = found or Found()
            found.hear(verdict, chain, None, enforced=enforced)
        except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
            found = found or Found()
            found.fail(error, name, chain, None, deny=plan.deny_on_error and enforced)
    if sig in state.uncertain and not (found is not None and found.questions):
        found = found or Found()
        said = chain.worded(uncertain(call.tool, state.uncertain[sig].reason))
        (found.denials if chain.mode == "enforce" else found.observed).insert(0, said)
    return found


def _asked(
    hooks: tuple[Hook, ...],
    call: ToolCall,
    state: SessionState,
    chain: Chain,
    scope: Scope,
    facts: Facts,
    found: Found | None,
    plan: Plan,
) -> Found | None:
    for name, key, enforced, check in hooks:
        try:
            verdict = check(call, state, state.own.get(key), facts)
            if verdict is not None:
                found = found or Found()
                found.hear(verdict, chain, scope, enforced=enforced)
        except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
            found = found or Found()
            found.fail(error, name, chain, scope, deny=plan.deny_on_error and enforced)
    return found


def _admitted(
    engine: Engine,
    call: ToolCall,
    plan: Plan,
    state: SessionState,
    scopes: Sequence[Scope],
    facts: Facts,
    found: Found | None,
    *,
    claims: bool,
) -> Found | None:
    """
    Let guards count a call, in all states or, if one that is needed fails, in none.
    """
    facts.seq = state.seq + 1
    facts.expires_ms = state.now_ms + plan.lasts_ms + GRACE_MS * claims
    if not scopes:
        own = state.own
        alone: dict[str, Any] = {}
        for name, key, enforced, hook in plan.admits:
            try:
                alone[key] = hook(call, state, alone[key] if key in alone else own.get(key), facts)
            except Exception as error:  # noqa: BLE001
                found = found or Found()
                found.fail(error, name, engine.chain, None, deny=plan.deny_on_error and enforced)
        if found is None or not found.denials:
            _keep_all(own, alone)
        return found
    voices: list[tuple[SessionState, Plan, Chain, Scope | None, int]] = [
        (state, plan, engine.chain, None, state.now_ms)
    ]
    voices += [(one.state, one.chain.plan(call.tool), one.chain, one, one.now_ms) for one in scopes]
    counted = []
    for its, applied, whose, scope, now in voices:
        facts.now_ms, facts.holder, own = now, "" if scope is None else engine.id, its.own
        new: dict[str, Any] = {}
        for name, key, enforced, hook in applied.admits:
            try:
                new[key] = hook(call, its, new[key] if key in new else own.get(key), facts)
            except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
                found = found or Found()
                found.fail(error, name, whose, scope, deny=applied.deny_on_error and enforced)
        counted.append((own, new))
    facts.now_ms, facts.holder = state.now_ms, ""
    if found is None or not found.denials:
        for own, new in counted:
            _keep_all(own, new)
    return found


def _keep_all(own: dict[str, Any], new: dict[str, Any]) -> None:
    for key, mine in new.items():
        if mine is not None:
            own[key] = mine
        elif key in own:
            del own[key]


def _park(
    engine: Engine, pending: Pending, call: ToolCall, denial: Denial, made: Decision, state: SessionState
) -> None:
    park(pending, question_of(call, denial, state.now_ms))
    state.n += 1
    made.park_n, made.denials = state.n, (denial,)
    made.envelope = Envelope.refusal(denial, left_out=engine.chain.left_out)


def _used_up(chain: Chain, state: SessionState, facts: Facts) -> tuple[str, str, str] | None:
    """
    Returns the limit that the call just admitted uses up; what ends the session at once does so.
    """
    facts.turn_over = state.turn_decided >= state.turn_expects
    cause = first_cause(chain, chain.call_spenders, state, facts)
    if cause is None:
        return None
    if facts.turn_over:
        # A limit of turns lets the rest of this one run.
        facts.turn_over = False
        now = first_cause(chain, chain.call_spenders, state, facts)
        if now is None:
            return cause.code, cause.message, cause.hint
        cause = now
    exhaust(state, cause)
    return cause.code, cause.message, cause.hint


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
    if twin is None:
        for one in state.pending.values():
            if one.stage in ("approved", "suspended") and one.sig == call.sig and one.question is not None:
                return one if binds(one.question, call) else None
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
        twin.limit = _used_up(engine.chain, state, facts) or twin.limit
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
                    errors.append((guard, f"{type(error).__name__}: {error}"))
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
    decision: Decision,
    prepared: Prepared,
    plan: Plan,
    now_ms: int,
    advised: Advised | None,
    state: SessionState,
    scopes: Sequence[Scope],
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
    unknown = _settled(engine, pending, prepared, plan, call, state, facts)
    state.n += 1
    _count_end(plan, call, outcome, state, facts, errors, "")
    envelope = (
        Envelope.of(outcome, prepared.rendered) if prepared.own is None else prepared.own.shown(prepared.rendered)
    )
    own, code_before = state.own, envelope.code
    for name, key, _, shape in plan.shapes if failed else plan.success_shapes:
        try:
            shaped = shape(envelope, call, outcome, state, own.get(key), facts)
            if shaped is not envelope and not isinstance(shaped, Envelope):
                raise TypeError(f"a shape returns the envelope, not {type(shaped).__name__}")
            envelope = shaped
        except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
            errors.append((name, f"{type(error).__name__}: {error}"))
    if failed:
        envelope = _afforded(envelope, call, outcome, plan, state, scopes, facts)
    if decision.nudges:
        # That a repeat brings nothing is not said beside something new.
        news = pending is not None and chain.brought_news(state, pending.entry)
        for code, hint in decision.nudges:
            if not (news and code.startswith(chain.repeating)):
                envelope.nudge(hint)
    unafforded = failed and envelope.code != code_before
    if failed and pending is not None:
        _note_tries(pending.entry, envelope, state, unafforded=unafforded)
    limit = _limit(engine, pending, decision, outcome, state, scopes, facts, errors)
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


def _afforded(
    envelope: Envelope,
    call: ToolCall,
    outcome: Outcome,
    plan: Plan,
    state: SessionState,
    scopes: Sequence[Scope],
    facts: Facts,
) -> Envelope:
    """
    Let scopes have their say about a failure too, and all know of one that is called retryable.
    """
    voices = [(state, plan, facts.now_ms), *((one.state, one.chain.plan(call.tool), one.now_ms) for one in scopes)]
    for scope, (its, applied, facts.now_ms) in zip(scopes, voices[1:], strict=True):
        code = envelope.code
        for _, key, _, shape in applied.shapes:
            envelope = shape(envelope, call, outcome, its, its.own.get(key), facts)
        if envelope.code != code:
            envelope.code = f"{scope.name}.{envelope.code}"
    for its, applied, facts.now_ms in voices if envelope.retryable else ():
        tell(its, applied.on, "advised", {"tool": call.tool, "sig": call.sig}, facts, None)
    facts.now_ms = state.now_ms
    return envelope


def _settled(
    engine: Engine,
    pending: Pending | None,
    prepared: Prepared,
    plan: Plan,
    call: ToolCall,
    state: SessionState,
    facts: Facts,
) -> bool:
    """
    Settle an admission, if there is one still. Returns whether nobody knows how a call ended that is not to be made twice.
    """
    unknown = prepared.unknown and plan.once
    if call.sig in state.uncertain and not unknown:
        # Late, but now it is known.
        del state.uncertain[call.sig]
    if pending is None:
        facts.late = True
        return unknown
    settle(state, pending, prepared.outcome)
    entry = facts.entry = pending.entry
    entry.result_hash = prepared.result_hash
    if prepared.steady:
        entry.steady = prepared.steady
    if prepared.empty:
        entry.empty, entry.unfinished, entry.little = prepared.empty == 2, prepared.empty == 3, prepared.empty == 1
    if unknown:
        note_uncertain(state, pending)
    return unknown


def _count_end(
    plan: Plan,
    call: ToolCall,
    outcome: Outcome,
    state: SessionState,
    facts: Facts,
    errors: list[tuple[str, str]],
    prefix: str,
) -> None:
    own = state.own
    for name, key, _, hook in plan.settles:
        try:
            mine = hook(call, outcome, state, own.get(key), facts)
        except Exception as error:  # noqa: BLE001  a guard that fails is decided by `on_error`
            errors.append((f"{prefix}{name}", f"{type(error).__name__}: {error}"))
        else:
            if mine is not None:
                own[key] = mine
            elif key in own:
                del own[key]


def _limit(
    engine: Engine,
    pending: Pending | None,
    decision: Decision,
    outcome: Outcome,
    state: SessionState,
    scopes: Sequence[Scope],
    facts: Facts,
    errors: list[tuple[str, str]],
) -> tuple[str, ...] | None:
    """
    Returns the limit that a call has used up, of its session or of a scope.
    """
    chain = engine.chain
    limit: tuple[str, ...] | None = pending.limit if pending is not None else None
    facts.over = True
    if limit is None and chain.call_spenders:
        cause = first_cause(chain, chain.call_spenders, state, facts)
        if cause is not None:
            exhaust(state, cause)
            limit = cause.code, cause.message, cause.hint
    for scope in scopes:
        scope.state.n += 1
        facts.now_ms, facts.holder = scope.now_ms, engine.id
        if pending is not None:
            settle_in(scope.state, engine.id, pending.seq, (decision.cost, decision.tokens), outcome)
            applied = scope.chain.plan(decision.call.tool)
            _count_end(applied, decision.call, outcome, scope.state, facts, errors, f"{scope.name}.")
        said = scope.cause(scope.chain.call_spenders, facts) if limit is None else None
        if said is not None:
            limit = said.code, said.message, said.hint
    return limit


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
