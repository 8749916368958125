"""
Before a tool runs: every guard looks at the call, then it is charged or refused.

`decide` here and `complete` after it are the two pure functions that every shell calls. They take a state, change nothing
but that state, and read no clock: the shells wait, lock and tell the time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Facts, latest
from guardrails.core.guards.repeats.duplicates import in_flight
from guardrails.core.state.state import Pending, SessionState, admit, deny, expire, number, set_meter, take_up, touch
from guardrails.core.values.types import Denial, Nudge, RetrySource, ToolCall

from .chain import Chain, Plan
from .exhaustion import tell_turn, turn_cause, used_up
from .found import Found, broken, said
from .refusals import over


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
    observed: tuple[Denial | Nudge, ...] = ()
    """What guards in observe mode would have said."""
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
    session: str = ""
    """Id of the session that it is of; the shell's."""
    run: str = ""
    """Which life of that session."""
    marks: dict[str, Any] | None = field(default=None, kw_only=True)
    """Where its event stands among those of other sessions, where it shares anything with them."""
    retry_source: RetrySource | None = None
    """Who caused it, where the same call failed before: the caller by itself, or what it was advised."""
    facts: Facts | None = field(default=None, repr=False, compare=False)
    """Those that the guards saw, until the call is completed; None: to be made again."""

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
    chain: Chain,
    call: ToolCall,
    state: SessionState,
    now_ms: int,
    claim: bool = False,  # noqa: FBT001, FBT002
    plan: Plan | None = None,
    found: Found | None = None,
) -> Decision:
    """
    Let every guard look at a call, then charge it or refuse it.

    Idempotent on (id, signature) while the call is unsettled; one that cannot be signed is new each time. With *claim*
    the caller is about to run it: a second claim of one admission is refused. *found* is what others have against it.
    """
    now = touch(state, now_ms)
    sig = call.sig
    expired: tuple[tuple[int, Pending], ...] = ()
    if state.pending:
        expired = give_up(state)
        # What cannot be signed is never the same call.
        running = state.pending.get((call.id, sig)) if sig is not None else None
        if running is not None:
            return _asked_before(chain, call, state, running, claim, expired)
    if state.turn == 0:
        tell_turn(chain, state, sig)
    if plan is None:
        plan = chain.plan(call.tool)
    cost = plan.cost
    facts = Facts(now, plan.tool, cost, 0, state.turn, 0, chain.known)
    denials, observed, nudges, errors = said(found)
    if state.exhausted is not None:
        denials.append(over(chain, state.exhausted))
    far = False
    if sig in state.latest or state.pending or call.problems:
        checks = plan.checks
    else:
        far = chain.far is not None and chain.far(state, now, cost)
        checks = plan.far_checks if far else plan.fresh_checks
    for name, enforced, check in checks:
        try:
            verdict = check(call, state, facts)
            if verdict is not None:
                _hear(chain, verdict, observed, denials if enforced else None, nudges)
        except Exception as error:  # noqa: BLE001
            errors.append((name, f"{type(error).__name__}: {error}"))
            if plan.deny_on_error and enforced:
                denials.append(chain.worded(broken(name)))
    source = _retry_source(call, state)
    meters = state.meters
    if not denials and plan.charges:
        state.meters = meters.copy()
        failed = _charge(plan, call, state, facts)
        if failed:
            errors += [(name, raised) for name, _, raised in failed]
            denials += [chain.worded(broken(name)) for name, enforced, _ in failed if enforced and plan.deny_on_error]
    if denials:
        state.meters = meters
        return _refuse(
            chain, call, state, tuple(denials), observed=observed, errors=errors, claim=claim, expired=expired
        )
    pending = admit(state, call, cost, 0, plan.timeout_ms, plan.changes, claim, chain.window)
    if nudges:
        pending.hints = tuple(nudges)
    if not far:
        pending.limit = used_up(chain, state, now)
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
        cost,
        0,
        claim,
        False,  # noqa: FBT003
        0,
        expired,
        "",
        state.run,
        source,
        facts,
    )


def _hear(
    chain: Chain,
    verdict: object,
    observed: list[Denial | Nudge],
    denials: list[Denial] | None,
    nudges: list[tuple[str, str]],
) -> None:
    """
    Note what a guard said; *denials* is None where it only observes.
    """
    if isinstance(verdict, Denial):
        (observed if denials is None else denials).append(chain.worded(verdict))
    elif not isinstance(verdict, Nudge):
        raise TypeError(f"a check returns a Denial, a Nudge or None, not {type(verdict).__name__}")
    elif denials is None:
        observed.append(verdict)
    else:
        nudges.append((verdict.code, chain.worded_hint(verdict)))


def _charge(plan: Plan, call: ToolCall, state: SessionState, facts: Facts) -> list[tuple[str, bool, str]]:
    """
    Let guards count the call; (name, enforced, what it raised) of those that fail.
    """
    failed = []
    for name, enforced, charge in plan.charges:
        try:
            for key, value in charge(call, state, facts).items():
                set_meter(state, key, value)
        except Exception as error:  # noqa: BLE001
            failed.append((name, enforced, f"{type(error).__name__}: {error}"))
    return failed


def _retry_source(call: ToolCall, state: SessionState) -> RetrySource | None:
    entry = latest(state, call.sig)
    if entry is None or entry.status != "error":
        return None
    return "explore" if entry.explored else "policy" if entry.advised else "agent"


def give_up(state: SessionState) -> tuple[tuple[int, Pending], ...]:
    """
    Expire what is overdue; (event number, admission) of each.
    """
    return tuple((number(state), pending) for pending in expire(state))


def _asked_before(
    chain: Chain,
    call: ToolCall,
    state: SessionState,
    pending: Pending,
    claim: bool,  # noqa: FBT001
    expired: tuple[tuple[int, Pending], ...],
) -> Decision:
    at_ms, claim_n = pending.at_ms, 0
    if claim:
        if pending.claimed:
            return _refuse(chain, call, state, (chain.worded(in_flight(call)),), claim=claim, expired=expired)
        at_ms, claim_n = state.now_ms, take_up(state, pending)
    return Decision(
        call,
        pending.n,
        at_ms,
        pending.turn,
        nudges=pending.hints,
        seq=pending.seq,
        cost=pending.cost,
        tokens=pending.tokens,
        claimed=pending.claimed,
        repeated=True,
        claim_n=claim_n,
        expired=expired,
        run=state.run,
    )


def _refuse(
    chain: Chain,
    call: ToolCall,
    state: SessionState,
    denials: tuple[Denial, ...],
    *,
    observed: Iterable[Denial | Nudge] = (),
    errors: Iterable[tuple[str, str]] = (),
    claim: bool,
    expired: tuple[tuple[int, Pending], ...] = (),
) -> Decision:
    ordered = sorted(denials, key=lambda denial: (not denial.ends_session, denial.scope is not None))
    n = deny(state, call, ordered[0])
    envelope = Envelope.refusal(ordered[0])
    envelope.left_out = chain.left_out
    last = state.turn_decided == state.turn_expects if state.turn_expects else state.turn_admitted > 0
    if last and envelope.limit_message is None:
        cause = turn_cause(chain, state, state.now_ms)
        if cause is not None:
            envelope.limit_message = cause.message
    return Decision(
        call,
        n,
        state.now_ms,
        state.turn,
        envelope,
        tuple(ordered),
        tuple(observed),
        errors=tuple(errors),
        claimed=claim,
        expired=expired,
        run=state.run,
    )
