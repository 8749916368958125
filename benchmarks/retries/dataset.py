"""
Labelled failures of simulated sessions: what a model may know of each, how the retry ended, and the bound.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from guardrails.core.retries.trail import WAITS_MS, Settled, Situation, extended, failure_of
from guardrails.core.retries.trail import Failure as Failed

from .bayes import Belief, Filter
from .sessions import EPOCH_MS, Call


class Failure(NamedTuple):
    """
    One failure that was retried.
    """

    tool: str
    error: str
    failed: Failed
    delay_ms: int
    situation: Situation
    """Of the retry that was made."""
    worked: bool
    bound: float
    """The best probability that anyone in the session could give; nan where it was not asked for."""
    after: tuple[float, ...]
    """The same for each wait of `waits_ms`, nothing done in between."""


def waits_ms(failed: Failed) -> tuple[int, ...]:
    """
    The waits that may be advised, one for each of `WAITS_MS`: none is below a Retry-After.
    """
    return tuple(max(wait, failed.left_ms or 0) for wait in WAITS_MS)


WITHOUT: Final = float("nan")


def ms(seconds: float) -> int:
    """
    Milliseconds since 1970 of *seconds* since day 0.
    """
    return EPOCH_MS + round(seconds * 1000)


class _Open(NamedTuple):
    call: Call
    failed: Failed
    changes: int
    belief: Belief | None
    after: tuple[float, ...]


def failures(sessions: Iterable[Sequence[Call]], *, bound: bool = False) -> Iterator[Failure]:
    """
    The retried failures of *sessions* in the order of the retries; with *bound*, what the filter thinks of each.
    """
    for calls in sessions:
        trail = None
        thought = Filter(calls[0].start) if bound else None
        began, changes = ms(calls[0].start), 0
        waiting: dict[int, _Open] = {}
        for call in calls:
            before = waiting.pop(call.signature, None)
            if before is not None:
                yield _told(before, call, changes)
            header = None if call.header is None else round(call.header * 1000)
            ended = ms(call.end)
            trail = extended(trail, Settled(call.tool.name, call.signature, call.error, ended), header)
            belief = None if thought is None else thought.observe(call)
            changes += call.error is None and call.tool.changes_state
            if call.error is not None:
                failed = failure_of(trail, ended - began)
                chances = () if belief is None else _chances(belief, call, failed)
                waiting[call.signature] = _Open(call, failed, changes, belief, chances)


def _chances(belief: Belief, call: Call, failed: Failed) -> tuple[float, ...]:
    return tuple(belief.success(call.end + wait / 1000) for wait in waits_ms(failed))


def _told(before: _Open, call: Call, changes: int) -> Failure:
    failed = before.failed
    delay = ms(call.start) - ms(before.call.end)
    return Failure(
        failed.tool,
        failed.error,
        failed,
        delay,
        failed.retried(delay, between=changes > before.changes),
        call.error is None,
        # What other tools did since has changed the belief already.
        WITHOUT if before.belief is None else before.belief.success(call.start),
        before.after,
    )
