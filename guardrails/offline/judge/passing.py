"""
What happens far from every limit, entered into the state in one step: a call that was admitted and worked, a turn, a response.

Most recorded calls are that, and nobody looks at the state while they run. Each step is the sum of transitions, which a test
holds it to: that of a call is `admit` and `settle`, without the admission between them.
"""

from typing import Final

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.exhaustion import spent
from guardrails.core.guards.limits.growth import Growth
from guardrails.core.guards.limits.unpriced import BLOWN
from guardrails.core.repetition.results import NOTHING, UNFINISHED
from guardrails.core.retries.context import Settled
from guardrails.core.retries.spec import MAX_LOOKBACK
from guardrails.core.state.failing import Told, note_ended, told
from guardrails.core.state.state import Entry, SessionState, exhaust, set_meter, touch
from guardrails.core.values.session_time import LEAP_MS, MEND_MS
from guardrails.core.values.types import Outcome, ToolCall

from .fuse import lets_tokens


SUCCESS: Final = Outcome()

_new: Final = tuple.__new__
"""What the constructor of a named tuple does, without a frame of its own."""

Seen = tuple[int, int, int] | tuple[int, int, int, Told]
"""(result hash, steady part, emptiness) of what came back; while a tool fails, its values too."""


def pass_by(
    state: SessionState,
    call: ToolCall,
    cost: int,
    changes: bool,  # noqa: FBT001  hot path
    window: int,
    ended_ms: int,
    seen: Seen,
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
    state.denied_turns = state.refused_turns = 0
    if tool == state.streak_tool:
        state.streak += 1
    else:
        state.streak_tool, state.streak = tool, 1
    state.streak_failures = 0
    result_hash, steady, empty = seen[:3]
    entry = Entry(seq, tool, sig, state.now_ms, changes, "ok", None, result_hash)
    entry.turn, entry.steady = state.mark, steady
    if call.sketch is not None:
        entry.sketch = call.sketch
    if empty == NOTHING:
        entry.empty, state.dull_seq = True, seq
    entry.unfinished = empty == UNFINISHED
    state.window.append(entry)
    state.latest[sig] = seq
    if len(state.window) > window:
        oldest = state.window.pop(0)
        if state.latest.get(oldest.sig) == oldest.seq:
            del state.latest[oldest.sig]
        if state.results.get(oldest.result_hash) == oldest.seq:
            del state.results[oldest.result_hash]
    if result_hash in state.results:
        state.dull_seq = seq
    state.results[result_hash] = seq
    state.cost += cost
    now = ended_ms + state.behind_ms
    if 0 <= now - state.now_ms <= LEAP_MS and state.behind_ms <= MEND_MS:
        state.now_ms = now
    else:
        now = touch(state, ended_ms)
    state.trail.append(_new(Settled, (tool, sig, None, now)))
    if len(state.trail) > MAX_LOOKBACK:
        del state.trail[0]
    if state.failing:
        follow(state, call, seq, seen)


def follow(state: SessionState, call: ToolCall, seq: int, seen: Seen) -> None:
    """
    Note the values of a *call* that worked, while a tool fails.
    """
    if state.failing:
        what = seen[3] if len(seen) == 4 else told(call, b"", failed=False)
        note_ended(state.failing, call.tool, seq, failed=False, what=what, oldest=state.window[0].seq)


def answer(
    chain: Chain,
    fuse: Growth | None,
    state: SessionState,
    now_ms: int,
    cost: int | None,
    tokens: int | None,
    turn: bool,  # noqa: FBT001  hot path
) -> None:
    """
    Open the next *turn*, after one without refusals, and charge the model response, where it told *tokens*; the session
    ends where that blows a fuse. *fuse* is the only one of *chain*, if there is one.
    """
    now = touch(state, now_ms)
    if turn:
        state.turn += 1
        state.turn_expects = state.turn_decided = state.turn_admitted = 0
        state.n += 1
    if tokens is None:
        return
    state.n += 1
    state.tokens += tokens
    if cost is None:
        state.unpriced += 1
    else:
        state.cost += cost
    if fuse is not None and lets_tokens(fuse, state, tokens, now):
        return
    for usage in chain.usages:
        for key, value in usage(state, tokens, now).items():
            set_meter(state, key, value)
    if BLOWN in state.meters.values():
        cause = spent(chain, state, now)
        if cause is not None:
            exhaust(state, cause)
