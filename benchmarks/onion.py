"""
The same guards as nested closures, for comparison: what a chain costs whose members call each other.

Each guard wraps the next one, looks before it and shapes after it. What stands around the guards is the same (the call is
signed, charged and settled, its result rendered, its envelope made); there is no store, lock, record or kept result.
"""

import itertools

from collections.abc import Callable
from typing import Any

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.exhaustion import progress
from guardrails.core.engine.prepare import prepare
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.base import Facts, Guard, overrides
from guardrails.core.outcome import outcome_of
from guardrails.core.state.admissions import admit, settle
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import set_meters, touch
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.types import Denial, Outcome, ToolCall


Shaped = tuple[Envelope, Outcome | None]
Step = Callable[[ToolCall, SessionState, Facts], Shaped]
Execute = Callable[[str, Any], Any]
ANY = Tool(name="*", paths=("*",), commands=("*",))


def onion(chain: Chain, execute: Execute) -> Callable[[str, Any, int], Envelope]:
    """
    A function of (tool, arguments, time in ms) that calls *execute* through the guards of *chain*; it has one session.
    """
    state, numbers = SessionState(), itertools.count()

    def run(call: ToolCall, state: SessionState, facts: Facts) -> Shaped:
        plan = chain.plan(call.tool)
        pending = admit(
            state, call, cost=plan.cost, timeout_ms=plan.timeout_ms, changes=plan.changes, window=chain.window
        )
        prepared = prepare(outcome_of(execute(call.tool, call.arguments)), plan.max_bytes)
        settle(state, pending, prepared.outcome, prepared.result_hash)
        envelope = Envelope.of(prepared.outcome)
        envelope.rendered = prepared.rendered
        envelope.progress = progress(chain, state, facts.now_ms)
        return envelope, prepared.outcome

    step: Step = run
    for guard in reversed(chain.guards):
        if guard.applies(ANY):
            step = _around(guard, step)

    def call(tool: str, arguments: Any, now_ms: int) -> Envelope:
        plan = chain.plan(tool)
        made = tool_call(tool, arguments, str(next(numbers)), plan.arguments)
        now = touch(state, now_ms)
        return step(made, state, Facts(now, plan.tool, plan.cost, 0, state.turn, chain.known))[0]

    return call


def _around(guard: Guard, inner: Step) -> Step:
    checks, charges, shapes = (overrides(guard, method) for method in ("check", "charge", "shape"))

    def step(call: ToolCall, state: SessionState, facts: Facts) -> Shaped:
        if checks:
            verdict = guard.check(call, state, facts)
            if isinstance(verdict, Denial):
                return Envelope.refusal(verdict), None
        if charges:
            for key, value in guard.charge(call, state, facts).items():
                set_meters(state, {key: value})
        envelope, outcome = inner(call, state, facts)
        if shapes and outcome is not None:
            envelope = guard.shape(envelope, call, outcome, state, facts)
        return envelope, outcome

    return step
