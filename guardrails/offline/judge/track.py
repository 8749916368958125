"""
One recorded session while it is judged: its state, the calls that still run, and what was really new.
"""

import json

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from guardrails.core.engine.decision import Decision
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.prepare import Prepared
from guardrails.core.guards.limits.denials import Denials
from guardrails.core.state.entries import pending_key
from guardrails.core.state.failing import Told
from guardrails.core.state.packing import pack, unpack
from guardrails.core.values.types import Outcome, ToolCall

from .evidence import SUCCESS, Past
from .lens import Lens
from .result import Cell
from .side import Side


MAX_STOPS: Final = 1_000
"""Stops of one session that are kept for its time line."""
MAX_LINE: Final = 5_000
"""Calls of one time line."""

LensOf = Callable[[bool, bool], Lens]
"""Of *timed* and *turned* the chain for such sessions."""


@dataclass(slots=True)
class Turn:
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
    free: Side | None = None
    """The same session with the cap on refused turns off, since the cap struck."""
    past: Past = field(default_factory=Past)
    turn: Turn = field(default_factory=Turn)
    calls: int = 0
    refused: bool = False
    """The exhausted session has refused a call already."""
    free_refused: bool = False
    first: int = 0
    """Index of the first call."""
    last: int = 0
    stops: list[Cell] = field(default_factory=list)
    """What was stopped or nudged, or would have been by guards in observe mode."""
    stop_count: int = 0

    def stop(self, cell: Cell) -> None:
        """
        Note the decision on a call that did not simply pass.
        """
        self.stop_count += 1
        if len(self.stops) < MAX_STOPS:
            self.stops.append(cell)

    def cells(self) -> list[Cell]:
        """
        Its calls, at most `MAX_LINE` of them.
        """
        stops = {cell[0]: cell for cell in self.stops}
        last = min(self.last, self.first + MAX_LINE - 1)
        return [stops.get(index, (index, "allow", "")) for index in range(self.first, last + 1)]

    def respond(self, now: int, cost: int | None, tokens: int | None, *, turn: bool, model: str | None = None) -> None:
        """
        A response of *model* (None: nobody asked for its price) came. If the cap on refused turns strikes now, the
        session goes on without it beside.
        """
        main, cap = self.main, self.lens.cap
        if main.running:
            main.settle(now)
        if self.free is None and (cap is None or not (main.state.turn_refused or main.state.refused_turns)):
            main.respond(now, cost, tokens, turn=turn, model=model)
            return
        if self.free is not None:
            self.free.respond(now, cost, tokens, turn=turn, model=model)
        elif (
            turn and cap is not None and main.state.turn_refused + main.state.refused_turns and _strikes(cap, main, now)
        ):
            other = _fork(main, self.lens)
            main.respond(now, cost, tokens, turn=turn, model=model)
            if main.state.exhausted is not None and main.state.exhausted[0].startswith(cap.name):
                other.respond(now, cost, tokens, turn=turn, model=model)
                self.free, self.free_refused = other, self.refused
            return
        main.respond(now, cost, tokens, turn=turn, model=model)

    def to_bytes(self) -> bytes:
        """
        Returns all of it; `track_of` gives an equal one.
        """
        turn = self.turn
        self.past.settle()
        rest = {
            "l": [self.lens.timed, self.lens.turned],
            "m": _side(self.main),
            "f": None if self.free is None else _side(self.free),
            "p": [self.past.sigs, self.past.evidence, self.past.said],
            "t": [turn.number, turn.tool, turn.tokens, turn.cost, turn.admitted, turn.stopped],
            "n": [self.calls, self.refused, self.free_refused, self.first, self.last, self.stop_count],
            "s": self.stops,
        }
        try:
            return orjson.dumps(rest)
        except TypeError:
            # A tool whose name has a lone surrogate, or an integer of more than 64 bits.
            return json.dumps(rest).encode()


def _fork(side: Side, lens: Lens) -> Side:
    """
    Another session in the same state, without the cap.
    """
    return Side(lens.uncapped, unpack(pack(side.state)), list(side.running))


def _strikes(cap: Denials, side: Side, now: int) -> bool:
    return side.state.exhausted is None and cap.turn_refused(side.state, now) is not None


def track_of(packed: bytes, lens_of: LensOf) -> Track:
    """
    Returns the track that `to_bytes` made these bytes of.
    """
    try:
        rest = orjson.loads(packed)
    except ValueError:
        rest = json.loads(packed)
    lens = lens_of(*rest["l"])
    calls, refused, free_refused, first, last, stop_count = rest["n"]
    return Track(
        lens,
        _opened(rest["m"], lens.engine, lens),
        None if rest["f"] is None else _opened(rest["f"], lens.uncapped, lens),
        Past(*rest["p"]),
        Turn(*rest["t"]),
        calls=calls,
        refused=refused,
        free_refused=free_refused,
        first=first,
        last=last,
        stops=[(index, decision, code) for index, decision, code in rest["s"]],
        stop_count=stop_count,
    )


def _side(side: Side) -> list[Any]:
    running = []
    for end_ms, decision, shown, plan in side.running:
        call, outcome = decision.call, shown.outcome
        # What was given up changes nothing when it comes.
        if pending_key(call.id, call.sig, decision.seq) in side.state.pending:
            error = [outcome.error_type, outcome.http_status, outcome.retry_after_ms]
            seen = [shown.result_hash, shown.steady, shown.empty, *(shown.told or ())]
            declared = [plan.tool.read_only, plan.tool.polling]
            running.append([decision.seq, end_ms, seen, error, declared])
    return [b64encode(pack(side.state)).decode(), running]


def _opened(packed: list[Any], engine: Engine, lens: Lens) -> Side:
    side = Side(engine, unpack(b64decode(packed[0])))
    admissions = {pending.seq: pending for pending in side.state.pending.values()}
    for seq, end_ms, (result_hash, steady, empty, *values), (
        error_type,
        http_status,
        retry_after_ms,
    ), declared in packed[1]:
        admission = admissions[seq]
        outcome = SUCCESS if error_type is None else Outcome(None, error_type, "", http_status, retry_after_ms)
        call = ToolCall(admission.tool, None, admission.id, None, admission.sig)
        told = Told(*values) if values else None
        shown = Prepared(outcome, None, result_hash, steady=steady, empty=empty, told=told)
        side.running.append((end_ms, Decision.again(call, admission), shown, lens.plan(admission.tool, *declared)))
    return side
