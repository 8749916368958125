"""
Take one recorded call through a chain: what `decide` and `complete` do, and for the plain case only as much of it.

Most calls are fresh, meet no objection and succeed. Nobody reads their envelope here, so for them the same transitions are
made without a `Decision` and an envelope; every other call goes through the two functions themselves. Both ways leave equal
states: a test holds them to it.
"""

from dataclasses import dataclass, field
from typing import Final

from ..chain import Chain, Plan
from ..complete import Prepared, complete
from ..decide import Decision, decide
from ..exhaustion import first_cause, used_up
from ..guards.base import Facts
from ..state import Pending, SessionState, admit, exhaust, pending_key, set_meter, settle, touch
from ..transitions import charge_response, open_turn
from ..types import Outcome, ToolCall


SUCCESS: Final = Outcome()
Running = tuple[int, Pending, ToolCall, Outcome, int, Plan]
"""(end in ms, admission, call, outcome, evidence, plan) of a call whose recorded result has not come yet."""


@dataclass(slots=True)
class Side:
    """
    A chain and the state that it decides by.
    """

    chain: Chain
    state: SessionState = field(default_factory=SessionState)
    running: list[Running] = field(default_factory=list)

    def step(
        self, call: ToolCall, now: int, plan: Plan, outcome: Outcome | None, evidence: int, end_ms: int
    ) -> Decision | None:
        """
        What is decided of *call*, None where it simply passes.

        Its *outcome* (None: not recorded) and *evidence* are seen once *end_ms* is over, and never where it is denied.
        """
        state = self.state
        if self.running:
            self.settle(now)
        decision: Decision | None = None
        admission = passed(self.chain, call, state, now, plan)
        if admission is None:
            decision = decide(self.chain, call, state, now, True, plan)  # noqa: FBT003
            if decision.envelope is not None:
                return decision
            admission = state.pending[pending_key(call.id, call.sig, decision.seq)]
        if outcome is None:
            # Nobody knows how it ended: its admission is given up by the next call.
            admission.expires_ms = now
        elif end_ms > now:
            self.running.append((end_ms, admission, call, outcome, evidence, plan))
        else:
            self._finish(admission, call, outcome, evidence, plan, now)
        return decision

    def settle(self, now: int) -> None:
        """
        Show what has come back by *now*.
        """
        if len(self.running) == 1:
            end_ms, admission, call, outcome, evidence, plan = self.running[0]
            if end_ms <= now:
                self.running.clear()
                self._finish(admission, call, outcome, evidence, plan, end_ms)
            return
        due = [one for one in self.running if one[0] <= now]
        if due:
            self.running = [one for one in self.running if one[0] > now]
            for end_ms, admission, call, outcome, evidence, plan in sorted(due, key=_end):
                self._finish(admission, call, outcome, evidence, plan, end_ms)

    def _finish(
        self, admission: Pending, call: ToolCall, outcome: Outcome, evidence: int, plan: Plan, now: int
    ) -> None:
        if outcome is not SUCCESS or not finished(self.chain, admission, self.state, evidence, plan, now):
            complete(self.chain, decided(call, admission), Prepared(outcome, None, evidence), self.state, now, plan)

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool) -> None:
        """
        A model response came: a *turn* of its own, and its usage where that is known.
        """
        if self.running:
            self.settle(now)
        if turn:
            open_turn(self.chain, self.state, now, 0)
        if tokens is not None:
            charge_response(self.chain, self.state, now, cost, tokens)


def passed(chain: Chain, call: ToolCall, state: SessionState, now_ms: int, plan: Plan) -> Pending | None:
    """
    Admit a fresh call that no guard has anything to say of, as `decide` does.

    None where it is not that plain; nothing is changed then, and `decide` is to be asked.
    """
    if state.exhausted is not None or state.pending or call.sig in state.latest or call.problems:
        return None
    before = state.started_ms, state.now_ms
    now = touch(state, now_ms)
    facts = Facts(now, plan.tool, plan.cost, 0, state.turn, 0, chain.known)
    meters = state.meters
    try:
        for _, _, check in plan.fresh_checks:
            if check(call, state, facts) is not None:
                state.started_ms, state.now_ms = before
                return None
        if plan.charges:
            state.meters = meters.copy()
            for _, _, charge in plan.charges:
                for key, value in charge(call, state, facts).items():
                    set_meter(state, key, value)
    except Exception:  # noqa: BLE001  a guard that fails is for `decide` to judge
        state.started_ms, state.now_ms, state.meters = *before, meters
        return None
    admission = admit(state, call, plan.cost, 0, plan.timeout_ms, plan.changes, True, chain.window)  # noqa: FBT003
    admission.limit = used_up(chain, state, now)
    return admission


def finished(chain: Chain, admission: Pending, state: SessionState, evidence: int, plan: Plan, now_ms: int) -> bool:
    """
    Settle a success of which no guard has anything to say, as `complete` does.

    False where it is not that plain; nothing is changed then, and `complete` is to be asked.
    """
    if (
        plan.settles
        or plan.success_shapes
        or state.pending.get(pending_key(admission.id, admission.sig, admission.seq)) is not admission
    ):
        return False
    now = touch(state, now_ms)
    state.n += 1
    settle(state, admission, SUCCESS, evidence)
    if admission.limit is None:
        looks = chain.call_spenders if state.exhausted is None else chain.spenders
        cause = first_cause(chain, looks, state, now)
        if cause is not None:
            exhaust(state, cause)
    return True


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
