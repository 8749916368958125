"""
What loops cost: the tokens and the time of calls that brought nothing.
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
    if not idle:
        trail.looping.discard(sig)
        if trail.spent is not None:
            charged, spent = trail.spent
            charged.loop_tokens -= spent
            charged.loop_told -= 1
            trail.spent = None
        return
    if sig is None or sig not in trail.looping:
        tally.loops += 1
        if len(trail.looping) < WINDOW:
            trail.looping.add(sig)
    if call.decision != "deny" and call.duration_ms is not None and 0 <= call.duration_ms < MAX_DURATION_MS:
        tally.loop_ms += call.duration_ms
        tally.loop_timed += 1
    if begins and 0 < tokens < MAX_TOKENS:
        tally.loop_tokens += tokens
        tally.loop_told += 1
        trail.spent = tally, tokens
