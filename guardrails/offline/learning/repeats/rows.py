"""
Recorded calls as labelled rows: the features that serving would have computed, and whether the call brought anything new.

Records go through the same state and the same function as live calls. Nothing is denied, for the result of a denied
call would not be known.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, cast

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.complete import Settle
from guardrails.core.engine.decide import Ask
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.events.admissions import Lose
from guardrails.core.engine.events.turns import Turn
from guardrails.core.guards.base import Facts, Guard, guard
from guardrails.core.repetition.learned.features import Levels, features
from guardrails.core.repetition.patterns import same_end
from guardrails.core.repetition.sketch import alike, sketch_of
from guardrails.core.state.state import Entry, SessionState
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.types import Nudge, ToolCall
from guardrails.offline.judge.evidence import Past, Worth, evidence_of, outcome_of_call, shown_by
from guardrails.offline.judge.files.inputs import Input, calls_of
from guardrails.offline.readers import RecordedCall, Report
from guardrails.policy.policy import Policy


STEP_MS: Final = 1 << 32
"""From one call to the next where there are no times; features tell it from a time."""
LONG: Final = 200
"""Characters from which on a result that only reads is seen again whatever was asked."""
OPEN: Final = 2_000
"""Sessions that are followed at a time; the one that began first is forgotten."""


@guard
class Looking(Guard):
    """
    Notes the features of every call, as `Loops` takes them, and has nothing against it.
    """

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Nudge:
        tool = facts.tool
        levels = features(call, state, read_only=bool(tool.read_only), polling=tool.polling)
        return Nudge(code="looking", hint="", values={"levels": levels})


LOOKING: Final = Engine(Chain([Looking(mode="observe")]))


class Row(NamedTuple):
    """
    One call.
    """

    source: str
    levels: Levels | None
    """None: nothing suggested that it might bring nothing."""
    label: bool | None
    """It brought nothing new; None: nobody can say."""
    worth: Worth
    """Of an exact repeat, by the definition that denials are judged by."""
    earlier: int
    """Identical calls that are remembered."""


@dataclass(slots=True)
class _Session:
    state: SessionState = field(default_factory=SessionState)
    past: Past = field(default_factory=Past)
    turn: int | None = None
    sketches: dict[int, int] = field(default_factory=dict)
    """Of every call in the window, by `seq`: what it is labelled by does not depend on whether serving looked."""


def rows_of(calls: Iterable[RecordedCall], chain: Chain | None = None) -> Iterator[Row]:
    """
    Returns the rows of *calls*, which may be of several sessions at once. The tools are declared by *chain*, by default
    that of the shipped default policy.
    """
    if chain is None:
        chain = Policy.load("default").chain
    open_sessions: dict[tuple[str, str, str], _Session] = {}
    for call in calls:
        key = call.source, call.session_id, call.run
        session = open_sessions.get(key)
        if session is None:
            if len(open_sessions) >= OPEN:
                del open_sessions[next(iter(open_sessions))]
            session = open_sessions[key] = _Session()
        yield _row(call, session, chain)


def rows_in(files: Iterable[Input], report: Report | None = None) -> Iterator[Row]:
    """
    Returns the rows of all records in *files*, each call once; their source is the file, or the folder of many. Remarks
    on the way go into *report*.

    Raises OSError if a file cannot be read.
    """
    name = ""

    def told() -> Iterator[Input]:
        nonlocal name
        for file in files:
            name = file.folder or Path(file.path).name.partition(".")[0]
            yield file

    for row in rows_of(calls_of(told(), report)):
        yield row._replace(source=name)


def _row(call: RecordedCall, session: _Session, chain: Chain) -> Row:
    state, plan = session.state, chain.plan(call.tool)
    now = state.now_ms + STEP_MS if call.ts_ms is None else call.ts_ms
    states = (state,)
    if call.turn is not None and call.turn != session.turn:
        session.turn = call.turn
        LOOKING.apply(Turn(now), states)
    read_only = (not plan.changes) if call.read_only is None else call.read_only
    tool = replace(plan.tool, read_only=read_only, stable=False, polling=plan.tool.polling or call.polling)
    looked = replace(LOOKING.chain.plan(call.tool), tool=tool, changes=not read_only)
    made = _made(call, str(state.seq + 1))
    before = [each for each in reversed(state.window) if each.status in ("ok", "error")]
    decision = LOOKING.apply(Ask(now, made, looked, True), states)  # noqa: FBT003
    [levels] = [cast("Levels | None", said.values["levels"]) for said in decision.observed]
    entry = state.window[-1]
    outcome = outcome_of_call(call, plan.tool)
    evidence = evidence_of(call, outcome.error_type is not None)
    worth = session.past.add(made.sig, evidence)
    session.sketches[entry.seq] = _sketch(made)
    session.sketches.pop(entry.seq - LOOKING.chain.window - 1, None)
    earlier = sum(entry.sig == made.sig for entry in before) if made.sig is not None else 0
    if evidence is None:
        # Nobody knows how it ended: the next call gives it up.
        LOOKING.apply(Lose(now, decision), states)
        return Row(call.source, levels, None, worth, earlier)
    shown = shown_by(call, evidence, outcome, looks=True)(made, False)  # noqa: FBT003
    LOOKING.apply(Settle(now, decision, shown, looked), states)
    long = call.result is not None and len(call.result) >= LONG and read_only
    label = _label(entry, before, worth, session.sketches, long=long)
    return Row(call.source, levels, label, worth, earlier)


def _made(call: RecordedCall, call_id: str) -> ToolCall:
    if call.arguments is None and call.sig is not None:
        return ToolCall(call.tool, None, call_id, None, (call.sig + (1 << 63) & (1 << 64) - 1) - (1 << 63))
    return tool_call(call.tool, call.arguments, call_id, None)


def _sketch(call: ToolCall) -> int:
    taken = call.sketch
    sketch = sketch_of(call)
    # In the state of a live session there is one only where somebody looked.
    call.sketch = taken
    return sketch


def _label(entry: Entry, before: list[Entry], worth: Worth, sketches: Mapping[int, int], *, long: bool) -> bool | None:
    """
    Returns whether *entry* brought a result that the session had: of an equal or like call, a long text, the failure of
    a like call. An equal result after work of another tool is no evidence: that it is still so is news.
    """
    if worth == "unknown":
        return None
    if worth == "new" and any(entry.sig == other.sig for other in before):
        return False
    worked = False
    for other in before:
        if other.tool != entry.tool:
            worked |= other.changes and other.status == "ok"
        elif same_end(entry, other) and (
            other.sig == entry.sig or long or alike(sketches[other.seq], sketches[entry.seq])
        ):
            return None if worked else True
    return False
