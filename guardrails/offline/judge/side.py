"""
One recorded session as a chain decides it: its calls and responses as events of the engine, in the order of their times.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from guardrails.core.engine.complete import Settle
from guardrails.core.engine.decide import Ask
from guardrails.core.engine.decision import Decision
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.events.admissions import Lose, Unpark
from guardrails.core.engine.events.turns import Charge, Turn
from guardrails.core.engine.plan import Plan
from guardrails.core.engine.prepare import Prepared
from guardrails.core.state.state import SessionState
from guardrails.core.values.types import ToolCall


Shown = Callable[[ToolCall, bool], Prepared]
"""What a call has shown once it is over; a tool fails, or not, when it is asked for."""
Running = tuple[int, Decision, Prepared, Plan]
"""(end in ms, decision, what it has shown, plan) of a call whose recorded result has not come yet."""


@dataclass(slots=True)
class Side:
    """
    An engine and the state that it changes.
    """

    engine: Engine
    state: SessionState = field(default_factory=SessionState)
    running: list[Running] = field(default_factory=list)

    def step(self, call: ToolCall, now: int, plan: Plan, shown: Shown | None, end_ms: int) -> Decision:
        """
        Returns the decision on *call*.

        Its result *shown* (None: not recorded) is seen once *end_ms* is over, and never if it is denied.
        """
        engine, state = self.engine, self.state
        if self.running:
            self.settle(now)
        decision = engine.apply(Ask(now, call, plan, True), (state,))  # noqa: FBT003
        if decision.pending and decision.seq is not None:
            # A person is taken to say yes: what was recorded ran.
            asked = ((decision.denials[0].code, ""),)
            engine.apply(Unpark(now, decision.seq, approved=True), (state,))
            decision = replace(engine.apply(Ask(now, call, plan, True), (state,)), nudges=asked)  # noqa: FBT003
        if decision.envelope is not None:
            return decision
        if shown is None:
            # Nobody knows how it ended: its admission is given up by the next call.
            engine.apply(Lose(now, decision), (state,))
        elif end_ms > now:
            self.running.append((end_ms, decision, shown(call, bool(state.failing)), plan))
        else:
            engine.apply(Settle(now, decision, shown(call, bool(state.failing)), plan), (state,))
        return decision

    def settle(self, now: int) -> None:
        """
        Show the results that have come back by *now*.
        """
        due = [one for one in self.running if one[0] <= now]
        if due:
            self.running = [one for one in self.running if one[0] > now]
            for end_ms, decision, shown, plan in sorted(due, key=_end):
                self.engine.apply(Settle(end_ms, decision, shown, plan), (self.state,))

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool, model: str | None = None) -> None:
        """
        A model response came: a *turn* of its own, and its usage if that is known. The *model* is None if nobody asked
        for its price. Else a response without *tokens* did not say what it used.
        """
        if self.running:
            self.settle(now)
        if turn:
            self.engine.apply(Turn(now), (self.state,))
        untold = tokens is None and model is not None
        if tokens is not None or untold:
            self.engine.apply(Charge(now, cost, tokens or 0, model, untold), (self.state,))


def _end(one: Running) -> int:
    return one[0]
