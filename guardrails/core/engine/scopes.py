"""
Sessions that share limits: what a user, a tenant or everyone uses together.

A scope is a state of its own with guards of its own. A call is decided by its session's guards and by those of its
scopes in one step: it is admitted in all of them, or in none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Facts
from guardrails.core.guards.limits.budget import FINISH
from guardrails.core.state.scope_state import claim as claim_held
from guardrails.core.state.scope_state import hold, open_step
from guardrails.core.state.scope_state import settle as settle_held
from guardrails.core.state.state import SessionState, number, set_meter, time_of
from guardrails.core.values.types import Denial, Nudge, ToolCall, pending_key

from .chain import Chain, Plan
from .complete import Completion, Prepared, complete, correct
from .decide import Decision, decide
from .exhaustion import exhaustion, first_cause, spent
from .exhaustion import progress as own_progress
from .found import Found


GLOBAL: Final = "global"
"""The scope that everyone is in: its id need not be said."""
Cause = tuple[str, str]
"""(code, message)"""


@dataclass(slots=True)
class Scope:
    """
    One scope of a session, for one step.
    """

    name: str
    id: str
    chain: Chain
    state: SessionState
    clock_ms: int | None = None
    """What its clock says; None: the same as its session's. A record has each by itself."""
    now_ms: int = 0
    """Its own time: each state's is clamped by itself."""
    charges: dict[str, int] = field(default_factory=dict)
    """What its counters become if the call is admitted."""

    def open(self, clock_ms: int) -> None:
        """
        Let time pass.
        """
        self.clock_ms = clock_ms if self.clock_ms is None else self.clock_ms
        self.now_ms = open_step(self.state, self.clock_ms)

    def says(self, said: Denial) -> Denial:
        """
        *said* as an objection of this scope: by its code, and in its message.
        """
        code = f"{self.name}.{said.code}"
        worded = self.chain.worded(said)
        if "message" not in self.chain.messages.get(said.code, {}):
            whose = (
                "shared by all sessions"
                if self.name == GLOBAL
                else f"that of the {self.name}, shared by all of its sessions"
            )
            worded = replace(worded, message=f"{said.message} The limit is {whose}.")
        return replace(worded, code=code, scope=self.name)


def named(scopes: Sequence[tuple[str, str, Chain]], states: Sequence[SessionState]) -> list[Scope]:
    """
    *scopes*, each (name, id, chain), with their *states*.
    """
    return [Scope(name, id_, own, state) for (name, id_, own), state in zip(scopes, states, strict=True)]


def decide_shared(
    chain: Chain,
    call: ToolCall,
    state: SessionState,
    now_ms: int,
    claim: bool,  # noqa: FBT001
    plan: Plan,
    scopes: Sequence[Scope],
    holder: str,
) -> Decision:
    """
    `decide`, with what *scopes* have against it; *holder* is the id of the session.
    """
    found = Found()
    for scope in scopes:
        scope.open(now_ms)
        _look(scope, call, state, plan, found)
    decision = decide(chain, call, state, now_ms, claim, plan, found)
    if decision.repeated and not decision.claim_n:
        return decision
    for scope in scopes:
        if decision.repeated:
            claim_held(scope.state, holder, decision.seq or 0)
            continue
        number(scope.state)
        if decision.seq is None:
            continue
        pending = state.pending[pending_key(call.id, call.sig, decision.seq)]
        hold(scope.state, holder, pending)
        for key, value in scope.charges.items():
            set_meter(scope.state, key, value)
        if pending.limit is None:
            pending.limit = _cause(scope, scope.chain.call_spenders)
    return decision


def _look(scope: Scope, call: ToolCall, session: SessionState, plan: Plan, found: Found) -> None:
    own = scope.chain.plan(call.tool)
    facts = Facts(scope.now_ms, plan.tool, plan.cost, 0, session.turn, 0, scope.chain.known)
    for name, enforced, check in own.checks:
        try:
            verdict = check(call, scope.state, facts)
            if isinstance(verdict, Denial):
                (found.denials if enforced else found.observed).append(scope.says(verdict))
            elif isinstance(verdict, Nudge):
                hint = scope.chain.worded_hint(verdict)
                if enforced:
                    found.nudges.append((f"{scope.name}.{verdict.code}", hint))
                else:
                    found.observed.append(replace(verdict, code=f"{scope.name}.{verdict.code}"))
            elif verdict is not None:
                raise TypeError(f"a check returns a Denial, a Nudge or None, not {type(verdict).__name__}")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001
            found.fails(f"{scope.name}.{name}", error, deny=own.deny_on_error and enforced)
    for name, enforced, charge in own.charges:
        try:
            # Tried first, while nobody is charged yet: a counter that is none fails here and not half-way.
            made, tried = charge(call, scope.state, facts), SessionState()
            for key, value in made.items():
                set_meter(tried, key, value)
            scope.charges.update(made)
        except Exception as error:  # noqa: BLE001
            found.fails(f"{scope.name}.{name}", error, deny=own.deny_on_error and enforced)


def complete_shared(
    chain: Chain,
    decision: Decision,
    prepared: Prepared,
    state: SessionState,
    now_ms: int,
    plan: Plan,
    scopes: Sequence[Scope],
    holder: str,
    **recorded: Any,
) -> tuple[Envelope, Completion]:
    """
    `complete`, with what the call cost charged to *scopes* too.
    """
    envelope, completion = complete(chain, decision, prepared, state, now_ms, plan, **recorded)
    limit: Cause | None = None
    for scope in scopes:
        scope.open(now_ms)
        number(scope.state)
        if not completion.late and decision.seq is not None:
            estimate = decision.cost, decision.tokens
            settle_held(scope.state, holder, decision.seq, estimate, prepared.outcome)
            own = scope.chain.plan(decision.call.tool)
            facts = Facts(scope.now_ms, plan.tool, *estimate, decision.turn, completion.duration_ms, scope.chain.known)
            failures = correct(own, decision.call, prepared.outcome, scope.state, facts) if own.settles else ()
            completion.errors += tuple((f"{scope.name}.{name}", said) for name, said in failures)
        limit = limit or _cause(scope, scope.chain.call_spenders)
    # The call that uses up a number of calls says so itself; it knew at its admission.
    if completion.limit is None and limit is not None and not limit[0].endswith(".budget.max_calls"):
        completion.limit, envelope.limit_message = limit
        envelope.hint(FINISH)
    if envelope.progress is not None:
        envelope.progress = progress(chain, state, now_ms, scopes)
    return envelope, completion


def apply(scopes: Iterable[Scope], now_ms: int, step: Callable[[Chain, SessionState, int], object]) -> None:
    """
    Let an event of a session, such as a charge, change its *scopes* too.
    """
    for scope in scopes:
        scope.open(now_ms)
        step(scope.chain, scope.state, scope.now_ms)
        scope.state.exhausted = None


def exhausted_by(chain: Chain, state: SessionState, now_ms: int, scopes: Iterable[Scope]) -> Cause | None:
    """
    What has ended the session, by its own limits or by those of its scopes, when its clock says *now_ms*.
    """
    cause = exhaustion(chain, state, time_of(state, now_ms))
    if cause is not None:
        return cause
    for scope in scopes:
        said = spent(scope.chain, scope.state, time_of(scope.state, now_ms))
        if said is not None:
            said = scope.says(said)
            return said.code, said.message
    return None


def _cause(scope: Scope, looks: tuple[Callable[[SessionState, int], Denial | None], ...]) -> Cause | None:
    cause = first_cause(scope.chain, looks, scope.state, scope.now_ms)
    if cause is None:
        return None
    said = scope.says(cause)
    return said.code, said.message


def progress(chain: Chain, state: SessionState, now_ms: int, scopes: Iterable[Scope]) -> dict[str, Any]:
    """
    What is used by the session, and what is left of whatever limit is the nearest, its own or that of a scope.
    """
    shown = own_progress(chain, state, time_of(state, now_ms))
    for scope in scopes:
        others = own_progress(scope.chain, scope.state, time_of(scope.state, now_ms))
        for key, left in others.items():
            if key != "calls_used":
                present: Any = shown.get(key)
                shown[key] = left if present is None else min(present, left)
    return shown


def marks(state: SessionState, scopes: Iterable[Scope]) -> dict[str, Any]:
    """
    Where the event that was just numbered stands among those of other sessions: what a record adds so that they can be
    replayed together. For each scope its id, life, number and time; of a child, the place in its family.
    """
    made: dict[str, Any] = {}
    shared = {scope.name: [scope.id, scope.state.run, scope.state.n, scope.state.now_ms] for scope in scopes}
    if shared:
        made["scopes"] = shared
    if state.family is not None:
        made["family"] = list(state.family)
    return made
