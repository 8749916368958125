"""
A call that was admitted and worked, entered into the state in one step.

Most recorded calls are that, and nobody looks at the state while they run. The step is the sum of `admit` and `settle`,
which a test holds it to; what it spares is the admission between them.
"""

from ..retries.context import Settled
from ..retries.spec import MAX_LOOKBACK
from ..state import Entry, SessionState, touch
from ..types import ToolCall


def pass_by(
    state: SessionState,
    call: ToolCall,
    cost: int,
    changes: bool,  # noqa: FBT001  hot path
    window: int,
    ended_ms: int,
    result_hash: int,
) -> None:
    """
    Charge *call*, which began at the state's time, and settle it at *ended_ms*, a success; *window* is how many executed
    calls are remembered.
    """
    tool, sig = call.tool, call.sig
    state.n += 2
    state.seq = seq = state.seq + 1
    state.calls += 1
    state.turn_decided += 1
    if state.turn_admitted == 0:
        state.turns += 1
    state.turn_admitted += 1
    state.denied_turns = 0
    if tool == state.streak_tool:
        state.streak += 1
    else:
        state.streak_tool, state.streak = tool, 1
    state.streak_failures = 0
    if changes:
        state.changed_seq = seq
    state.window.append(Entry(seq, tool, sig, state.now_ms, changes, "ok", None, result_hash))
    state.latest[sig] = seq
    if len(state.window) > window:
        oldest = state.window.pop(0)
        if state.latest.get(oldest.sig) == oldest.seq:
            del state.latest[oldest.sig]
    state.cost += cost
    state.trail.append(Settled(tool, sig, None, touch(state, ended_ms)))
    if len(state.trail) > MAX_LOOKBACK:
        del state.trail[0]
