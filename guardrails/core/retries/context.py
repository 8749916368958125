"""
The online feature computer: the context code of a failure from the calls that settled before it.

It is incremental and bounded. All it needs of a session are its latest `lookback` settled calls, oldest first, as
`Settled` values.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .spec import FeatureSpec


SHARED: Final = "unavailable"
"""Stands for the kinds of failure by which one and the same outage shows."""
OUTAGE: Final = frozenset({"unavailable", "server_error", "timeout", "connection"})


class Settled(NamedTuple):
    """
    A call that ran and is over, as later contexts see it.
    """

    tool: str
    sig: int | None
    """None: it cannot be signed, and is the same as no other."""
    error_type: str | None
    """None: it worked."""
    ended_ms: int | None


class Context(NamedTuple):
    """
    The facts of a failure before anything is done about it.
    """

    code: int
    """Packed by the specification; `FeatureSpec.decode_context` tells it apart."""
    since_ms: int | None
    """Since the first failure of the present run, 0 if this is it; None if times are unknown."""
    retry_after_ms: int | None


class Candidate(NamedTuple):
    """
    A wait that may be advised, and the code of the action that a retry after it would be.
    """

    wait_ms: int
    action: int


def context_of(
    spec: FeatureSpec,
    trail: Sequence[Settled],
    failure: Settled,
    elapsed_ms: int | None,
    retry_after_ms: int | None,
) -> Context:
    """
    Returns the context of *failure* after *trail*, the calls of its session that settled before it, oldest first.

    *elapsed_ms* is the session's age when it settled, *retry_after_ms* how long the tool asks to be left alone. Only the last `spec.lookback`
    of the trail are looked at.
    """
    tool, sig, error, ended = failure
    outage = error in OUTAGE
    attempt = run = same = failed = tool_run = 0
    running = in_tool_run = True
    first = ended
    for earlier in trail[-1 : -spec.lookback - 1 : -1]:
        if earlier[0] != tool:
            in_tool_run = False
            continue
        same += 1
        if in_tool_run:
            tool_run += 1
        other = earlier[2]
        if other is not None:
            failed += 1
        if running:
            if other == error or (outage and other in OUTAGE):
                run += 1
                first = earlier[3]
            else:
                running = False
        if earlier[1] == sig and sig is not None:
            attempt += 1
    since = None if first is None or ended is None else max(0, ended - first)
    values = (
        attempt,
        run,
        100 * failed / same if same else None,
        retry_after_ms,
        tool_run,
        elapsed_ms,
        (trail[-1][2] is not None) if trail else None,
        since,
    )
    code = 0
    for place, edges, nullable, stride in spec.context_steps:
        value = values[place]
        if value is not None:
            code += (bisect_left(edges, value) + nullable) * stride
    return Context(code, since, retry_after_ms)


def due_of(due_ms: int | None, ended_ms: int | None, retry_after_ms: int | None) -> int | None:
    """
    Returns until when the tool has asked to be left alone, after a call that ended at *ended_ms* with that Retry-After.
    It is the latest time that any of its answers in the session has named. Returns None if no answer has named one.
    """
    if retry_after_ms is None or ended_ms is None:
        return due_ms
    named = ended_ms + retry_after_ms
    return named if due_ms is None else max(due_ms, named)


def action_of(spec: FeatureSpec, context: Context, delay_ms: int | None, between: bool) -> int:
    """
    Returns the code of repeating the same call *delay_ms* after the failure of *context*, with a state-changing call
    that worked *between* them or not.
    """
    _, since, after = context
    values = (
        delay_ms,
        delay_ms - after if delay_ms is not None and after is not None else None,
        between,
        delay_ms + since if delay_ms is not None and since is not None else None,
    )
    code = 0
    for place, edges, nullable, stride in spec.action_steps:
        value = values[place]
        if value is not None:
            code += (bisect_left(edges, value) + nullable) * stride
    return code


@lru_cache(maxsize=4096)
def candidates(
    spec: FeatureSpec,
    since_ms: int | None,
    retry_after_ms: int | None,
    between: bool = False,
) -> tuple[Candidate, ...]:
    """
    Returns the waits that may be advised after a failure of this context, ascending: `spec.delays_ms`, none below
    Retry-After.

    A decision depends on (tool, error type, `Context.code`, the actions in here): this is a good key for a cache.
    """
    context = Context(0, since_ms, retry_after_ms)
    waits = sorted({max(delay, retry_after_ms or 0) for delay in spec.delays_ms})
    return tuple(Candidate(wait, action_of(spec, context, wait, between)) for wait in waits)
