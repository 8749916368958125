"""
Retried failures of any world, as models are given them, with what they were told and what is true.
"""

import itertools

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from benchmarks.retries import sessions as windows
from benchmarks.retries.dataset import WITHOUT, Failure, failures, ms, waits_ms
from guardrails.core.retries.context import Context, SessionFeatures, Settled, action_of
from guardrails.core.retries.spec import FeatureSpec

from .agent import stream
from .base import Call, Chance, World
from .buckets import Buckets
from .hours import Hours
from .queues import Queues
from .replicas import Replicas
from .upstream import Upstream


WINDOWS: Final = "windows"
"""The world of `benchmarks.retries`, whose limit is an exact filter, which sees what a session sees."""
WORLDS: Final[Mapping[str, type[World]]] = MappingProxyType(
    {world.name: world for world in (Buckets, Queues, Replicas, Hours, Upstream)}
)
"""The others; their limit is clairvoyant."""
NAMES: Final = (WINDOWS, *WORLDS)


class Retried(NamedTuple):
    """
    One retried failure; *failure* is labelled by what was told.
    """

    failure: Failure
    flaw: str
    """What was wrong with a retry that was told to have worked."""
    chance: Chance
    """Of the retry that was made."""
    after: tuple[Chance, ...]
    """Of one after each wait that may be advised."""

    @property
    def sound(self) -> bool:
        """
        Whether the retry did work.
        """
        return self.failure.worked and not self.flaw


class _Open(NamedTuple):
    call: Call
    context: Context
    changes: int
    elapsed_ms: int


def retried(spec: FeatureSpec, calls: Sequence[Call], *, limit: bool = False) -> Iterator[Retried]:
    """
    The retried failures of one session, in the order of the retries; with *limit*, what each wait would have come to.
    """
    features = SessionFeatures(spec)
    began, changes = ms(calls[0].start), 0
    waiting: dict[int, _Open] = {}
    for call in calls:
        before = waiting.pop(call.signature, None)
        if before is not None:
            yield _told(spec, before, call, changes, limit=limit)
        header = None if call.header is None else round(call.header * 1000)
        ended = ms(call.end)
        settled = Settled(call.tool.name, call.signature, call.error, ended)
        context = features.settle(settled, ended - began, header)
        changes += call.error is None and call.tool.changes_state
        if context is not None:
            waiting[call.signature] = _Open(call, context, changes, ended - began)


def _told(spec: FeatureSpec, before: _Open, call: Call, changes: int, *, limit: bool) -> Retried:
    failed, context = before.call, before.context
    delay, between = ms(call.start) - ms(failed.end), changes > before.changes
    after = tuple(failed.later(failed.end + wait / 1000) for wait in waits_ms(spec, context)) if limit else ()
    failure = Failure(
        failed.tool.name,
        failed.error or "",
        context,
        before.elapsed_ms,
        delay,
        between,
        action_of(spec, context, delay, between),
        call.error is None,
        call.chance.told,
        tuple(one.told for one in after),
    )
    return Retried(failure, call.flaw, call.chance, after)


def rows(name: str, spec: FeatureSpec, days: range, count: int, *, seed: int = 1, limit: bool = False) -> list[Retried]:
    """
    *count* retried failures of the world *name*, from sessions of *days*.
    """
    made = (
        _windows(spec, days, seed, limit=limit)
        if name == WINDOWS
        else itertools.chain.from_iterable(
            retried(spec, calls, limit=limit) for calls in stream(WORLDS[name](seed), days)
        )
    )
    return list(itertools.islice(made, count))


def _windows(spec: FeatureSpec, days: range, seed: int, *, limit: bool) -> Iterator[Retried]:
    sessions: Iterable[Sequence[windows.Call]] = windows.stream(windows.World(seed), days)
    for failure in failures(spec, sessions, bound=limit):
        bound = failure.bound if limit else WITHOUT
        yield Retried(failure, "", Chance(bound, bound), tuple(Chance(one, one) for one in failure.after))
