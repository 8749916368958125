"""
Recorded calls as labelled rows: the features that serving would have computed, and whether the call brought anything new.

Records go through the same state and the same function as live calls; nothing is denied, for what a denied call would have
brought is not known.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from guardrails.core.engine.chain import Chain
from guardrails.core.repetition.learned.features import Levels, features
from guardrails.core.repetition.patterns import same_end
from guardrails.core.repetition.sketch import alike, sketch_of
from guardrails.core.repetition.together import imply_turn
from guardrails.core.state.state import Entry, SessionState, admit, begin_turn, end_turn, expire, settle, touch
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.types import ToolCall
from guardrails.offline.judge.evidence import Past, Worth, closer, evidence_of, outcome_of_call, seen_of
from guardrails.offline.judge.inputs import Input, calls_of
from guardrails.offline.readers import RecordedCall, Report
from guardrails.policy.policy import Policy


STEP_MS: Final = 1 << 32
"""From one call to the next where there are no times; features tell it from a time."""
LONG: Final = 200
"""Characters from which on a result that only reads is seen again whatever was asked."""
OPEN: Final = 2_000
"""Sessions that are followed at a time; the one that began first is forgotten."""


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
    The rows of *calls*, which may be of several sessions at once; what tools are is declared by *chain* (the shipped
    default policy's where none is given).
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
    The rows of all records in *files*, each call once; their source is the file, or the folder of many. What is met on the
    way goes into *report*.

    Raises OSError where a file cannot be read.
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
    now = touch(state, state.now_ms + STEP_MS if call.ts_ms is None else call.ts_ms)
    if call.turn is not None and call.turn != session.turn:
        session.turn = call.turn
        end_turn(state)
        begin_turn(state, 0)
    read_only = (not plan.changes) if call.read_only is None else call.read_only
    polling = plan.tool.polling or call.polling
    made = _made(call, str(state.seq + 1))
    expire(state)
    if state.turn == 0:
        imply_turn(state, made.sig)
    levels = features(made, state, read_only=read_only, polling=polling)
    before = [entry for entry in reversed(state.window) if entry.status in ("ok", "error")]
    outcome = outcome_of_call(call, plan.tool)
    evidence = evidence_of(call, outcome.error_type is not None)
    worth = session.past.add(made.sig, evidence)
    pending = admit(state, made, 0, 0, None, not read_only, True, chain.window)  # noqa: FBT003
    session.sketches[state.seq] = _sketch(made)
    session.sketches.pop(state.seq - chain.window - 1, None)
    earlier = sum(entry.sig == made.sig for entry in before) if made.sig is not None else 0
    if evidence is None:
        # Nobody knows how it ended: the next call gives it up.
        pending.expires_ms = now
        return Row(call.source, levels, None, worth, earlier)
    seen = seen_of(call, evidence, outcome)
    if made.sketch is not None and outcome.error_type is None and call.result is not None:
        seen = closer(seen, call.result)
    settle(state, pending, outcome, *seen)
    long = call.result is not None and len(call.result) >= LONG and read_only
    label = _label(pending.entry, before, worth, session.sketches, long=long)
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
    Whether *entry* brought what the session had already: the same to an identical or a like call, the same long text, the
    same failure of a like call. What is the same after work of another tool is no evidence: that it is still so is news.
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
