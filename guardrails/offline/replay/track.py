"""
One recorded session while it is judged: its state, the calls that still run, and what was really new.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from guardrails.core.chain import Plan
from guardrails.core.decision import Decision
from guardrails.core.engine import Engine
from guardrails.core.events import event, lose
from guardrails.core.guards.base import Facts
from guardrails.core.guards.denials import Denials
from guardrails.core.packing import pack, unpack
from guardrails.core.prepare import Prepared
from guardrails.core.state import SessionState
from guardrails.core.text.signature import low64, sign
from guardrails.core.tools.tool_call import tool_call, unlabelled
from guardrails.core.values.types import ToolCall
from guardrails.offline.transcripts.calls import RecordedCall

from .evidence import Past
from .lacking import Held
from .lens import Lens
from .result import Tally


SIGN: Final = 1 << 63
SIG_BITS: Final = (1 << 64) - 1

Shown = Callable[[ToolCall, Plan], Prepared]
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
        decision = engine.decide(call, plan, now, True, None, (state,))
        if decision.pending and decision.seq is not None:
            # A person is taken to say yes: what was recorded ran.
            asked = ((decision.denials[0].code, ""),)
            yes = {"seq": decision.seq, "sig": call.sig, "approved": True, "reason": ""}
            engine.apply(event("unpark", yes, now), now, (state,))
            decision = engine.decide(call, plan, now, True, None, (state,))
            decision.nudges = asked
        if decision.envelope is not None:
            return decision
        if shown is None:
            # Nobody knows how it ended: its admission is given up by the next call.
            engine.apply(partial(lose, seq=decision.seq, now_ms=now), now, (state,))
        elif end_ms > now:
            self.running.append((end_ms, decision, shown(call, plan), plan))
        else:
            engine.complete(decision, shown(call, plan), plan, now, None, (state,))
        return decision

    def settle(self, now: int) -> None:
        """
        Show the results that have come back by *now*.
        """
        due = [one for one in self.running if one[0] <= now]
        if due:
            self.running = [one for one in self.running if one[0] > now]
            for end_ms, decision, shown, plan in sorted(due, key=_end):
                self.engine.complete(decision, shown, plan, end_ms, None, (self.state,))

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool, model: str | None = None) -> None:
        """
        A model response came: a *turn* of its own, and its usage if that is known. The *model* is None if nobody asked
        for its price. Else a response without *tokens* did not say what it used.
        """
        if self.running:
            self.settle(now)
        if turn:
            self.engine.apply(event("turn", {"calls": 0}, now), now, (self.state,))
        untold = tokens is None and model is not None
        if tokens is not None or untold:
            charged = {"cost": cost, "tokens": tokens or 0, "model": model, "untold": untold, "unasked": model is None}
            self.engine.apply(event("charge", charged, now), now, (self.state,))


def _end(one: Running) -> int:
    return one[0]


@dataclass(slots=True)
class Response:
    """
    The calls of one model response so far.
    """

    number: int | None = 0
    """0: before the first; None: nobody says which response made a call."""
    tool: str = ""
    """Of its first call; the figures of the response are added to that tool's."""
    tokens: int = 0
    cost: int = 0
    """Micro-dollars."""
    admitted: bool = False
    stopped: bool = False
    """It has calls, all of which were stopped, and is counted as saved."""

    def begin(self, number: int | None, tool: str) -> None:
        """
        Another response, whose first call is of *tool*.
        """
        self.number, self.tool = number, tool
        self.tokens = self.cost = 0
        self.admitted = self.stopped = False


@dataclass(slots=True)
class Track:
    """
    One open session.
    """

    lens: Lens
    main: Side
    held: Held
    tallies: dict[str, Tally]
    """Of its source, by tool."""
    free: Side | None = None
    """The same session with the cap on refused turns off, since the cap struck."""
    past: Past = field(default_factory=Past)
    turn: Response = field(default_factory=Response)
    calls: int = 0
    refused: bool = False
    """The exhausted session has refused a call already."""
    free_refused: bool = False

    def tally(self, tool: str) -> Tally:
        """
        Returns the figures of *tool*.
        """
        found = self.tallies.get(tool)
        if found is None:
            found = self.tallies[tool] = Tally(tool)
        return found

    def saved(self, sign: int) -> None:
        """
        Count the latest response, all of whose calls were stopped, or take it back.
        """
        turn = self.turn
        tally = self.tallies[turn.tool]
        tally.saved_responses += sign
        tally.saved_tokens += sign * turn.tokens
        tally.saved_micro_usd += sign * turn.cost
        turn.stopped = sign > 0

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool, model: str | None = None) -> None:
        """
        A response of *model* (None: nobody asked for its price) came. If the cap on refused turns strikes now, the
        session goes on without it beside.
        """
        main, cap = self.main, self.lens.cap
        if main.running:
            main.settle(now)
        if self.free is None and (cap is None or cap.key not in main.state.own):
            main.respond(now, cost, tokens, turn=turn, model=model)
            return
        if self.free is not None:
            self.free.respond(now, cost, tokens, turn=turn, model=model)
        elif turn and cap is not None and _strikes(cap, main, now):
            other = _fork(main, self.lens)
            main.respond(now, cost, tokens, turn=turn, model=model)
            if main.state.exhausted is not None and main.state.exhausted[0].startswith(cap.name):
                other.respond(now, cost, tokens, turn=turn, model=model)
                self.free, self.free_refused = other, self.refused
            return
        main.respond(now, cost, tokens, turn=turn, model=model)


def _fork(side: Side, lens: Lens) -> Side:
    """
    Another session in the same state, without the cap.
    """
    return Side(lens.uncapped, unpack(pack(side.state)), list(side.running))


def _strikes(cap: Denials, side: Side, now: int) -> bool:
    state = side.state
    return state.exhausted is None and cap.spent(state, state.own.get(cap.key), Facts(now, turn_over=True)) is not None


def made_of(call: RecordedCall, call_id: str, plan: Plan) -> ToolCall:
    """
    Returns *call* under the id *call_id*. Its signature is the recorded one if arguments are not to be checked.
    """
    tool, arguments, sig = call.tool, call.arguments, call.sig
    if plan.arguments is None or arguments is None:
        if sig is not None:
            return ToolCall(tool, arguments, call_id, None, (sig + SIGN & SIG_BITS) - SIGN)
        if type(arguments) is dict:
            labels = (*plan.tool.labels, *call.labels)
            bare = unlabelled(arguments, labels) if labels else arguments
            signature, canonical = (bare is arguments and call.signed) or sign(tool, bare)
            signed = signature, None if signature is None else low64(signature), canonical
            return ToolCall.signed(tool, arguments, call_id, signed, (), None)
    return tool_call(tool, arguments, call_id, plan.arguments, (*plan.tool.labels, *call.labels))
