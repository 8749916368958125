"""
The fuse of `growth` for calls and responses that do not blow it, looked at and counted in one step.

Where a policy has such a fuse every recorded call passes it, and what spares most is the counters that need not be copied
in case of another guard's failure. A test holds each step to the guard's own methods.
"""

from typing import Final

from guardrails.core.engine.chain import Chain, Plan
from guardrails.core.guards.limits.growth import Growth
from guardrails.core.state.state import SessionState, set_meter


CALLS: Final = "growth.calls"
TOKENS: Final = "growth.tokens"
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000


def call_fuse(plan: Plan) -> Growth | None:
    """
    The guard that alone counts the calls of *plan*, where that is a fuse; None: there is no such, or others count too.
    """
    if len(plan.charges) != 1:
        return None
    fuse = plan.charges[0][2].__self__  # type: ignore[attr-defined]
    return fuse if type(fuse) is Growth else None


def token_fuse(chain: Chain) -> Growth | None:
    """
    The guard that alone counts the tokens of responses, where that is a fuse.
    """
    if len(chain.usages) != 1:
        return None
    fuse = chain.usages[0].__self__  # type: ignore[attr-defined]
    return fuse if type(fuse) is Growth else None


def lets_call(fuse: Growth, state: SessionState, now_ms: int) -> bool:
    """
    Count a call at *now_ms*, the state's time; False, and nothing counted, where that is too fast for the *fuse*.
    """
    limit = fuse.max_calls_per_second
    if limit is None:
        return True
    now, meters = now_ms * limit, state.meters
    known = meters.get(CALLS)
    if known is None:
        known = state.meter(CALLS)
        if known - now > (limit - 1) * SECOND_MS:
            return False
        set_meter(state, CALLS, max(known, now) + SECOND_MS)
        return True
    if known - now > (limit - 1) * SECOND_MS:
        return False
    meters[CALLS] = (known if known > now else now) + SECOND_MS  # noqa: FURB136  hot path
    return True


def lets_tokens(fuse: Growth, state: SessionState, tokens: int, now_ms: int) -> bool:
    """
    Count the *tokens* of a response; False, and nothing counted, where that blows the *fuse*.
    """
    limit = fuse.max_tokens_per_minute
    if limit is None:
        return True
    now, meters = now_ms * limit, state.meters
    known = meters.get(TOKENS)
    before = state.meter(TOKENS) if known is None else known
    arrival = (before if before > now else now) + tokens * MINUTE_MS  # noqa: FURB136  hot path
    if arrival - now > limit * MINUTE_MS or before < 0:
        return False
    if known is None:
        set_meter(state, TOKENS, arrival)
    else:
        meters[TOKENS] = arrival
    return True
