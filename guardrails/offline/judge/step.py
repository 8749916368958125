"""
Take one recorded call through a chain: what `decide` and `complete` do, and for the plain case only as much of it.

Most calls are fresh, meet no objection and succeed. Nobody reads their envelope here, so for them the same transitions are
made without a `Decision` and an envelope; every other call goes through the two functions themselves. Both ways leave equal
states: a test holds them to it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from guardrails.core.engine.chain import Chain, Plan
from guardrails.core.engine.complete import Prepared, complete
from guardrails.core.engine.decide import Decision, decide
from guardrails.core.engine.transitions import charge_response, open_turn
from guardrails.core.guards.base import Facts
from guardrails.core.guards.limits.budget import Budget
from guardrails.core.guards.limits.growth import Growth
from guardrails.core.repetition.together import imply_turn
from guardrails.core.state.failing import told
from guardrails.core.state.state import Pending, SessionState, admit, set_meter, settle, touch
from guardrails.core.values.session_time import LEAP_MS, MEND_MS
from guardrails.core.values.types import Outcome, ToolCall, pending_key

from .evidence import closer
from .fuse import call_fuse, lets_call
from .passing import SUCCESS, Seen, answer, follow, pass_by
from .reach import Reach


@dataclass(slots=True)
class Way:
    """
    A plan, and of it what a call that simply passes needs.
    """

    plan: Plan
    checks: tuple[Callable[..., object], ...]
    """Those that may say something of a fresh call while no limit of `budget` is within reach."""
    repeat_checks: tuple[Callable[..., object], ...]
    """The same for a call that is like one in the window, or while another runs."""
    fuse: Growth | None
    """The guard that alone counts the calls; it is none of the checks."""
    silent: bool
    """Nothing is said or counted of a success."""
    facts: Facts
    """What the checks know beside the call; its times are those of the latest."""


Running = tuple[int, Pending, ToolCall, Outcome, Seen, Way]
"""(end in ms, admission, call, outcome, evidence, way) of a call whose recorded result has not come yet."""

Passing = tuple[int, ToolCall, Seen, Way]
"""(end in ms, call, evidence, way) of a call that simply passed and will work."""


def way_of(plan: Plan, known: frozenset[str] | None = None) -> Way:
    """
    The way of a tool's calls through a chain whose *known* tools are these.
    """
    fuse = call_fuse(plan)
    silent = not (plan.settles or plan.success_shapes)
    facts = Facts(0, plan.tool, plan.cost, known=known)
    return Way(plan, _asked(plan.fresh_checks, fuse), _asked(plan.checks, fuse), fuse, silent, facts)


def _asked(checks: Iterable[tuple[str, bool, Callable[..., object]]], fuse: Growth | None) -> tuple[Any, ...]:
    owners = [(check, check.__self__) for _, _, check in checks]  # type: ignore[attr-defined]
    return tuple(check for check, owner in owners if type(owner) is not Budget and owner is not fuse)


@dataclass(slots=True)
class Side:
    """
    A chain and the state that it decides by.
    """

    chain: Chain
    reach: Reach | None
    """None: its limits are not known."""
    state: SessionState = field(default_factory=SessionState)
    running: list[Running] = field(default_factory=list)
    passing: Passing | None = None
    """The latest call, where it is not in the state yet: it is entered with the next event, mostly when it is over."""

    def step(
        self,
        call: ToolCall,
        now: int,
        way: Way,
        outcome: Outcome | None,
        evidence: Seen,
        end_ms: int,
        said: str | None = None,
    ) -> Decision | None:
        """
        What is decided of *call*, None where it simply passes.

        Its *outcome* (None: not recorded) and *evidence* are seen once *end_ms* is over, and never where it is denied.
        Of what it *said* the steady part is taken where a guard looked closer at the call.
        """
        state = self.state
        if self.passing is not None or self.running:
            self.settle(now)
        failed = outcome is not None and outcome.error_type is not None
        if said is not None and (failed or state.failing):
            evidence = *evidence[:3], told(call, said.encode(errors="ignore"), failed=failed)
        decision: Decision | None = None
        if self._passes(call, state, now, way):
            plan = way.plan
            if call.sketch is not None and outcome is SUCCESS and said is not None:
                evidence = closer(evidence, said)
            if outcome is SUCCESS and way.silent and not self.running:
                if end_ms <= now:
                    pass_by(state, call, plan.cost, plan.changes, self.chain.window, now, evidence)
                else:
                    self.passing = end_ms, call, evidence, way
                return None
            admission = self._admitted(call, plan)
        else:
            decision = decide(self.chain, call, state, now, True, way.plan)  # noqa: FBT003
            if decision.envelope is not None:
                return decision
            if call.sketch is not None and outcome is SUCCESS and said is not None:
                evidence = closer(evidence, said)
            admission = state.pending[pending_key(call.id, call.sig, decision.seq)]
        if outcome is None:
            # Nobody knows how it ended: its admission is given up by the next call.
            admission.expires_ms = now
        elif end_ms > now:
            self.running.append((end_ms, admission, call, outcome, evidence, way))
        else:
            self._finish(admission, call, outcome, evidence, way, now)
        return decision

    def settle(self, now: int) -> None:
        """
        Show what has come back by *now*.
        """
        if self.passing is not None:
            end_ms, call, evidence, way = self.passing
            plan, reach = way.plan, self.reach
            if end_ms <= now and reach is not None and reach.is_far(self.state, end_ms, plan.cost, 0):
                self.passing = None
                pass_by(self.state, call, plan.cost, plan.changes, self.chain.window, end_ms, evidence)
                return
            self.enter()
        if len(self.running) == 1:
            end_ms, admission, call, outcome, evidence, way = self.running[0]
            if end_ms <= now:
                self.running.clear()
                self._finish(admission, call, outcome, evidence, way, end_ms)
            return
        due = [one for one in self.running if one[0] <= now]
        if due:
            self.running = [one for one in self.running if one[0] > now]
            for end_ms, admission, call, outcome, evidence, way in sorted(due, key=_end):
                self._finish(admission, call, outcome, evidence, way, end_ms)

    def enter(self) -> None:
        """
        Have all calls so far in the state.
        """
        if self.passing is not None:
            end_ms, call, evidence, way = self.passing
            self.passing = None
            self.running.append((end_ms, self._admitted(call, way.plan), call, SUCCESS, evidence, way))

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool, model: str | None = None) -> None:
        """
        A model response came: a *turn* of its own, and its usage where that is known. *model* is None if nobody asked for
        its price; else a response without *tokens* did not say what it used.
        """
        untold = tokens is None and model is not None
        if self.passing is not None or self.running:
            self.settle(now)
        state, reach = self.state, self.reach
        if (
            reach is not None
            and not (turn and (state.turn_refused or state.refused_turns))
            and (cost is not None or model is None or not self.chain.responses)
            and reach.is_far(state, now, cost or 0, tokens or 0)
        ):
            answer(self.chain, reach.fuse, state, now, cost, 0 if untold else tokens, turn)
            return
        if turn:
            open_turn(self.chain, state, now, 0)
        if tokens is not None or untold:
            charge_response(self.chain, state, now, cost, tokens or 0, model, untold=untold)

    def _admitted(self, call: ToolCall, plan: Plan) -> Pending:
        return admit(self.state, call, plan.cost, 0, plan.timeout_ms, plan.changes, True, self.chain.window)  # noqa: FBT003

    def _passes(self, call: ToolCall, state: SessionState, now_ms: int, way: Way) -> bool:
        """
        Whether no guard has anything to say of a call; then it is counted as `decide` does, and to be admitted.

        Where it is not that plain nothing is changed, and `decide` is to be asked.
        """
        if call.problems:
            return False
        plan, reach = way.plan, self.reach
        if reach is None or not reach.is_far(state, now_ms, plan.cost, 0):
            return False
        if state.turn_refused and state.turn == 0:
            # Where nobody tells turns this call may end one of refusals.
            return False
        started, before, meters = state.started_ms, state.now_ms, state.meters
        implied = state.implied, state.turn_n, state.turn_ms, state.call_ms
        now = now_ms + state.behind_ms
        if 0 <= now - before <= LEAP_MS and started >= 0 and state.behind_ms <= MEND_MS:
            state.now_ms = now
        else:
            now = touch(state, now_ms)
        if state.turn == 0:
            imply_turn(state, call.sig)
        facts, fuse = way.facts, way.fuse
        facts.now_ms, facts.turn = now, state.turn
        passes, checks = True, way.checks
        if state.pending:
            checks = way.repeat_checks
            overdue = any(admission.expires_ms <= now for admission in state.pending.values())
            passes = not overdue and (call.id, call.sig) not in state.pending
        elif call.sig in state.latest:
            checks = way.repeat_checks
        try:
            for check in checks if passes else ():
                if check(call, state, facts) is not None:
                    passes = False
                    break
            if passes:
                if fuse is not None:
                    passes = lets_call(fuse, state, now)
                elif plan.charges:
                    state.meters = meters.copy()
                    for _, _, charged in plan.charges:
                        for key, value in charged(call, state, facts).items():
                            set_meter(state, key, value)
        except Exception:  # noqa: BLE001  a guard that fails is for `decide` to judge
            passes = False
            state.meters = meters
        if not passes:
            state.started_ms, state.now_ms = started, before
            state.implied, state.turn_n, state.turn_ms, state.call_ms = implied
        return passes

    def _finish(
        self, admission: Pending, call: ToolCall, outcome: Outcome, evidence: Seen, way: Way, now_ms: int
    ) -> None:
        """
        Settle what came back: a success of which nobody has anything to say at once, all else by `complete`.
        """
        state, reach = self.state, self.reach
        if (
            outcome is SUCCESS
            and way.silent
            and admission.limit is None
            and reach is not None
            and reach.is_far(state, now_ms, 0, 0)
            and state.pending.get(pending_key(admission.id, admission.sig, admission.seq)) is admission
        ):
            touch(state, now_ms)
            state.n += 1
            settle(state, admission, SUCCESS, *evidence[:3])
            follow(state, call, admission.seq, evidence)
            return
        prepared = Prepared(outcome, None, evidence[0], None, *evidence[1:])
        complete(self.chain, decided(call, admission), prepared, state, now_ms, way.plan)


def decided(call: ToolCall, admission: Pending) -> Decision:
    """
    The decision that made *admission*, as far as `complete` reads it.
    """
    return Decision(
        call,
        admission.n,
        admission.at_ms,
        admission.turn,
        nudges=admission.hints,
        seq=admission.seq,
        cost=admission.cost,
        tokens=admission.tokens,
        claimed=admission.claimed,
    )


def _end(one: Running) -> int:
    return one[0]
