"""
The two pure functions every shell calls: `decide` before a tool runs, `complete` after it.

Both take a state, change nothing but that state, and read no clock: the shells wait, lock and tell the time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .chain import Chain, Plan
from .envelope import Envelope
from .guards.base import Facts
from .guards.budget import FINISH
from .guards.duplicates import in_flight
from .signature import result_hashes
from .state import Pending, SessionState, admit, deny, exhaust, expire, number, set_meter, settle, touch
from .truncation import Rendered, render
from .types import Denial, Nudge, Outcome, ToolCall


@dataclass(slots=True)
class Decision:
    """
    What the chain says of one call, and everything that said it.
    """

    call: ToolCall
    n: int
    """Number of its event in the session."""
    at_ms: int
    turn: int
    envelope: Envelope | None = None
    """The refusal; None: the call may run."""
    denials: tuple[Denial, ...] = ()
    """All of them, the one that the envelope shows first."""
    observed: tuple[Denial, ...] = ()
    """What guards in observe mode would have denied."""
    nudges: tuple[tuple[str, str], ...] = ()
    """(code, hint)"""
    errors: tuple[tuple[str, str], ...] = ()
    """(guard, what it raised)"""
    seq: int | None = None
    """Position among the executed calls; None: denied."""
    cost: int = 0
    tokens: int = 0
    claimed: bool = False
    """The caller asked in order to run it at once."""
    repeated: bool = False
    """The same question was asked before and is not settled: no new charge, no new `call` event."""
    claim_n: int = 0
    """Number of the `claim` event, where an admission that was decided before is now run."""
    expired: tuple[tuple[int, Pending], ...] = ()
    """(event number, admission) given up on the way."""

    @property
    def allowed(self) -> bool:
        """
        The call may run.
        """
        return self.envelope is None

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


def decide(
    chain: Chain, call: ToolCall, state: SessionState, now_ms: int, *, claim: bool = False, plan: Plan | None = None
) -> Decision:
    """
    Let every guard look at a call, then charge it or refuse it.

    Idempotent on (id, signature) while the call is unsettled. With *claim* the caller is about to run it: a second
    claim of one admission is refused.
    """
    now = touch(state, now_ms)
    expired = give_up(state) if state.pending else ()
    pending = state.pending.get((call.id, call.sig)) if state.pending else None
    if pending is not None:
        if not claim:
            return _again(call, pending, expired, 0)
        if not pending.claimed:
            pending.claimed = True
            return _again(call, pending, expired, number(state))
        return _refuse(chain, call, state, (in_flight(call),), claim=claim, expired=expired)
    if plan is None:
        plan = chain.plan(call.tool)
    facts = Facts(now, plan.tool, plan.cost, 0, state.turn, 0, chain.known)
    denials: list[Denial] = []
    if state.exhausted is not None:
        denials.append(_over(state.exhausted))
    observed: list[Denial] = []
    nudges: list[tuple[str, str]] = []
    errors: list[tuple[str, str]] = []
    for name, enforced, check in plan.checks:
        try:
            verdict = check(call, state, facts)
            if verdict is None:
                continue
            if isinstance(verdict, Denial):
                (denials if enforced else observed).append(verdict)
                continue
            if not isinstance(verdict, Nudge):
                raise TypeError(f"a check returns a Denial, a Nudge or None, not {type(verdict).__name__}")  # noqa: TRY301
            if enforced:
                nudges.append((verdict.code, chain.worded_hint(verdict)))
        except Exception as error:  # noqa: BLE001
            errors.append((name, f"{type(error).__name__}: {error}"))
            if plan.deny_on_error and enforced:
                denials.append(_broken(name))
    if denials:
        return _refuse(
            chain, call, state, tuple(denials), observed=observed, errors=errors, claim=claim, expired=expired
        )
    pending = admit(
        state,
        call,
        cost=facts.cost,
        tokens=facts.tokens,
        timeout_ms=plan.timeout_ms,
        changes=plan.changes,
        claimed=claim,
        window=chain.window,
    )
    for charge in plan.charges:
        for key, value in charge(call, state, facts).items():
            set_meter(state, key, value)
    pending.hints = tuple(nudges)
    pending.limit = _used_up(chain, state, now)
    return Decision(
        call,
        pending.n,
        now,
        state.turn,
        None,
        (),
        tuple(observed),
        pending.hints,
        tuple(errors),
        pending.seq,
        pending.cost,
        pending.tokens,
        claim,
        expired=expired,
    )


def give_up(state: SessionState) -> tuple[tuple[int, Pending], ...]:
    """
    Expire what is overdue; (event number, admission) of each.
    """
    return tuple((number(state), pending) for pending in expire(state))


def _again(call: ToolCall, pending: Pending, expired: tuple[tuple[int, Pending], ...], claim_n: int) -> Decision:
    return Decision(
        call,
        pending.n,
        pending.at_ms,
        pending.turn,
        nudges=pending.hints,
        seq=pending.seq,
        cost=pending.cost,
        tokens=pending.tokens,
        claimed=pending.claimed,
        repeated=True,
        claim_n=claim_n,
        expired=expired,
    )


def _refuse(
    chain: Chain,
    call: ToolCall,
    state: SessionState,
    denials: tuple[Denial, ...],
    *,
    observed: Iterable[Denial] = (),
    errors: Iterable[tuple[str, str]] = (),
    claim: bool,
    expired: tuple[tuple[int, Pending], ...] = (),
) -> Decision:
    ordered = sorted(denials, key=lambda denial: not denial.ends_session)
    shown = chain.worded(ordered[0])
    n = deny(state, call, shown)
    envelope = Envelope.refusal(shown)
    envelope.left_out = chain.left_out
    if state.turn_expects and state.turn_decided == state.turn_expects and envelope.limit_message is None:
        cause = _turn_cause(chain, state, state.now_ms)
        if cause is not None:
            envelope.limit_message = chain.worded(cause).message
    return Decision(
        call,
        n,
        state.now_ms,
        state.turn,
        envelope,
        (shown, *ordered[1:]),
        tuple(observed),
        errors=tuple(errors),
        claimed=claim,
        expired=expired,
    )


def _over(exhausted: tuple[str, str]) -> Denial:
    code, message = exhausted
    return Denial(code=code, status="limit_reached", message=message, hint=FINISH, ends_session=True)


def _broken(name: str) -> Denial:
    return Denial(
        code=f"{name}.error",
        message=f"The guard `{name}` failed, so the call was not made.",
        hint="Use another tool, or tell the user.",
        strike=False,
    )


def spent(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    """
    The cause that ends the session now, in the policy's words.
    """
    for look in chain.spenders:
        cause = look(state, now_ms)
        if cause is not None:
            return chain.worded(cause)
    return None


def _turn_cause(chain: Chain, state: SessionState, now_ms: int) -> Denial | None:
    for look in chain.turn_spenders:
        cause = look(state, now_ms)
        if cause is not None:
            return chain.worded(cause)
    return None


def _used_up(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    The limit that the call just admitted uses up.
    """
    cause = spent(chain, state, now_ms)
    if cause is not None:
        exhaust(state, cause)
        return cause.code, cause.message
    cause = _turn_cause(chain, state, now_ms)
    if cause is None or state.turn_decided < state.turn_expects:
        return None
    return cause.code, cause.message


def exhaustion(chain: Chain, state: SessionState, now_ms: int) -> tuple[str, str] | None:
    """
    (code, message) of what has ended the session, as a model request that starts now would find it.
    """
    if state.exhausted is not None:
        return state.exhausted
    cause = spent(chain, state, max(now_ms, state.now_ms)) or _turn_cause(chain, state, now_ms)
    return None if cause is None else (cause.code, cause.message)


@dataclass(slots=True)
class Prepared:
    """
    An outcome with all that costs time already done: rendered and hashed, outside of any lock.
    """

    outcome: Outcome
    rendered: Rendered | None
    plain_hash: int
    masked_hash: int
    own: Envelope | None
    """The envelope that the tool itself made."""


def prepare(outcome: Outcome, max_bytes: int) -> Prepared:
    """
    Render and hash an outcome; the work is bounded by *max_bytes* and 64 KB.
    """
    own = outcome.value if isinstance(outcome.value, Envelope) else None
    if own is not None:
        outcome = _spoken(outcome, own)
    rendered = None
    if outcome.error_type is None or outcome.value is not None:
        rendered = render(outcome.value, max_bytes)
        # A cut result is told apart from another by how long it really was.
        text, size = rendered.payload, rendered.original_bytes
    else:
        text = f"{outcome.error_type}: {outcome.error_message}".encode(errors="replace")
        size = len(text)
    plain, masked = result_hashes(text, size)
    return Prepared(outcome, rendered, plain, masked, own)


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
    A settled call.
    """

    envelope: Envelope
    n: int
    at_ms: int
    late: bool
    """Its admission had expired or was settled before: only recorded."""
    duration_ms: int
    limit: str | None = None
    """Code of the limit that the call used up."""
    errors: tuple[tuple[str, str], ...] = ()


def complete(
    chain: Chain, decision: Decision, prepared: Prepared, state: SessionState, now_ms: int, plan: Plan | None = None
) -> Completion:
    """
    Settle an admitted call and make the envelope of its outcome.
    """
    call, outcome = decision.call, prepared.outcome
    now = touch(state, now_ms)
    pending = state.pending.get((call.id, call.sig))
    if pending is not None and pending.seq != decision.seq:
        pending = None
    if plan is None:
        plan = chain.plan(call.tool)
    duration = max(0, now - decision.at_ms)
    facts = Facts(now, plan.tool, decision.cost, decision.tokens, decision.turn, duration, chain.known)
    if pending is not None:
        settle(state, pending, outcome, prepared.plain_hash if outcome.error_type is None else prepared.masked_hash)
        for charge in plan.settles:
            for key, value in charge(call, outcome, state, facts).items():
                set_meter(state, key, value)
    envelope = Envelope.of(outcome) if prepared.own is None else prepared.own.copy()
    envelope.rendered = prepared.rendered
    errors: list[tuple[str, str]] = []
    for name, shape in plan.success_shapes if outcome.error_type is None else plan.shapes:
        try:
            shaped = shape(envelope, call, outcome, state, facts)
            if not isinstance(shaped, Envelope):
                raise TypeError(f"a shape returns the envelope, not {type(shaped).__name__}")  # noqa: TRY301
            envelope = shaped
        except Exception as error:  # noqa: BLE001
            errors.append((name, f"{type(error).__name__}: {error}"))
    for _, hint in decision.nudges:
        envelope.nudge(hint)
    if pending is not None and envelope.retryable and outcome.error_type is not None:
        pending.entry.retries_left = envelope.max_retries_remaining or 0
        pending.entry.retry_at_ms = now + (envelope.retry_after_ms or 0)
    limit = pending.limit if pending is not None else None
    if limit is None:
        cause = spent(chain, state, now)
        if cause is not None:
            exhaust(state, cause)
            if cause.code != "budget.max_calls":
                limit = (cause.code, cause.message)
    if limit is not None:
        envelope.limit_message = limit[1]
        envelope.hint(FINISH)
    envelope.left_out = chain.left_out
    if chain.merged:
        envelope.merged = True
    elif "progress" not in chain.left_out:
        envelope.progress = progress(chain, state)
    used_up = None if limit is None else limit[0]
    return Completion(envelope, number(state), now, pending is None, duration, used_up, tuple(errors))


def progress(chain: Chain, state: SessionState) -> dict[str, object]:
    """
    What is used and what is left of the session's limits; money in USD, time in seconds.
    """
    shown: dict[str, object] = {"calls_used": state.calls}
    budget = chain.budget
    if budget is None:
        return shown
    for name, left in (
        ("calls_left", budget.max_calls is not None and budget.calls_left(state)),
        ("turns_left", budget.max_turns is not None and budget.turns_left(state)),
        ("tokens_left", budget.max_tokens is not None and budget.tokens_left(state)),
    ):
        if left is not False and left is not None:
            shown[name] = max(0, left)
    if budget.max_cost_usd is not None and (cost := budget.cost_left(state)) is not None:
        shown["cost_left_usd"] = max(0, cost) / 1_000_000
    if budget.max_elapsed is not None and (elapsed := budget.elapsed_left_ms(state)) is not None:
        shown["seconds_left"] = max(0, elapsed) // 1000
    return shown
