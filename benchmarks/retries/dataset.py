"""
Labelled failures of simulated sessions: what a model may know of each, how the retry ended, and the bound.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from guardrails.core.retries.context import Context, Settled, action_of
from guardrails.core.retries.spec import FeatureSpec
from guardrails.offline.learning.labels import SessionFeatures

from .bayes import Belief, Filter
from .sessions import EPOCH_MS, Call


class Failure(NamedTuple):
    """
    One failure that was retried.
    """

    tool: str
    error: str
    context: Context
    elapsed_ms: int
    delay_ms: int
    between: bool
    action: int
    worked: bool
    bound: float
    """The best probability that anyone in the session could give; nan where it was not asked for."""
    after: tuple[float, ...]
    """The same for each wait of `waits_ms`, nothing done in between."""


def waits_ms(spec: FeatureSpec, context: Context) -> tuple[int, ...]:
    """
    The waits that may be advised, one for each of `spec.delays_ms`: none is below a Retry-After.
    """
    return tuple(max(delay, context.retry_after_ms or 0) for delay in spec.delays_ms)


WITHOUT: Final = float("nan")


def ms(seconds: float) -> int:
    """
    Milliseconds since 1970 of *seconds* since day 0.
    """
    return EPOCH_MS + round(seconds * 1000)


class _Open(NamedTuple):
    call: Call
    context: Context
    changes: int
    elapsed_ms: int
    belief: Belief | None
    after: tuple[float, ...]


def failures(spec: FeatureSpec, sessions: Iterable[Sequence[Call]], *, bound: bool = False) -> Iterator[Failure]:
    """
    The retried failures of *sessions* in the order of the retries; with *bound*, what the filter thinks of each.
    """
    for calls in sessions:
        features = SessionFeatures(spec)
        thought = Filter(calls[0].start) if bound else None
        began, changes = ms(calls[0].start), 0
        waiting: dict[int, _Open] = {}
        for call in calls:
            before = waiting.pop(call.signature, None)
            if before is not None:
                yield _told(spec, before, call, changes)
            header = None if call.header is None else round(call.header * 1000)
            ended = ms(call.end)
            settled = Settled(call.tool.name, call.signature, call.error, ended)
            context = features.settle(settled, ended - began, header)
            belief = None if thought is None else thought.observe(call)
            changes += call.error is None and call.tool.changes_state
            if context is not None:
                chances = () if belief is None else _chances(spec, belief, call, context)
                waiting[call.signature] = _Open(call, context, changes, ended - began, belief, chances)


def _chances(spec: FeatureSpec, belief: Belief, call: Call, context: Context) -> tuple[float, ...]:
    return tuple(belief.success(call.end + wait / 1000) for wait in waits_ms(spec, context))


def _told(spec: FeatureSpec, before: _Open, call: Call, changes: int) -> Failure:
    failed = before.call
    delay = ms(call.start) - ms(failed.end)
    between = changes > before.changes
    return Failure(
        failed.tool.name,
        failed.error or "",
        before.context,
        before.elapsed_ms,
        delay,
        between,
        action_of(spec, before.context, delay, between),
        call.error is None,
        # What other tools did since has changed the belief already.
        WITHOUT if before.belief is None else before.belief.success(call.start),
        before.after,
    )
