"""
Measures the cost of loops: the tokens and the time of calls that brought no news.
"""

from typing import Final

from guardrails.offline.judge.evidence import WINDOW
from guardrails.offline.readers import RecordedCall

from .tally import MAX_DURATION_MS, Tally
from .trail import Trail


MAX_TOKENS: Final = 1 << 40
"""Of one response; what is more is no number of tokens."""


def count_loop(tally: Tally, trail: Trail, call: RecordedCall, sig: int | None, *, idle: bool) -> None:
    """
    Note whether *call*, the next of its session, was *idle*: it brought nothing new, or was refused as one that would not.

    The tokens of a model response count if all its calls were idle: else it was worth making.
    """
    tokens = (call.tokens_in or 0) + (call.tokens_out or 0)
    begins = tokens > 0 or call.turn is None or call.turn != trail.turn
    trail.turn = call.turn
    if begins:
        trail.spent = None
        trail.told = 0 < tokens < MAX_TOKENS
    if not idle:
        trail.looping.pop(sig, None)
        if trail.spent is not None:
            charged, spent = trail.spent
            charged.loop_tokens -= spent
            trail.spent = None
        return
    told, timed = trail.looping.pop(sig) if sig in trail.looping else _began(tally, trail)
    if trail.told and not told:
        tally.loops_told += 1
    if begins and trail.told:
        tally.loop_tokens += tokens
        trail.spent = tally, tokens
    took = None if call.decision == "deny" else call.duration_ms
    if took is not None and 0 <= took < MAX_DURATION_MS:
        tally.loop_ms += took
        tally.loops_timed += not timed
        timed = True
    if sig is not None:
        trail.looping[sig] = told or trail.told, timed


def _began(tally: Tally, trail: Trail) -> tuple[bool, bool]:
    tally.loops += 1
    if len(trail.looping) >= WINDOW:
        del trail.looping[next(iter(trail.looping))]
    return False, False
