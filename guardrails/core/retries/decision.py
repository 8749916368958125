"""
The decision after a failure: whether, when and how often to repeat the call, by expected value.

A success is worth 1. A retry costs, waiting costs, the tool costs; the rest decides. The choices are to repeat the same
call, to repair something first, to correct the arguments, or to do none of them.
"""

from bisect import bisect_left
from typing import Final, NamedTuple

from guardrails.core.result.kinds import follows
from guardrails.core.values.types import ERROR_TYPES, MICRO, ErrorType, NextAction

from .context import Context, Settled, candidates, context_of
from .model import RetryModel, action_levels
from .scoring import probability
from .shrinkage import ENOUGH


CACHED: Final = 4_096
"""Decisions that are kept; a model serves about as many contexts, and tools with made-up names must not fill the memory."""
AHEAD: Final = 8
"""Further tries that are looked at: by then the levels of a context do not change any more, and what pays goes on so."""
TRANSIENT: Final[frozenset[ErrorType]] = frozenset(
    {"rate_limit", "timeout", "connection", "unavailable", "server_error"}
)
"""Kinds of failure that may pass by themselves: nothing is there to be repaired or corrected."""
INSTEAD: Final[dict[ErrorType, NextAction]] = {
    kind: step for kind in ERROR_TYPES if (step := follows(kind)) is not None
}
"""The next step if repeating the call does not pay; transient kinds, and what is not known: give up."""
CORRECTABLE: Final[frozenset[str]] = frozenset(
    {"validation", "not_found", "invalid_path", "too_large", "code_error", "other", "validation_error"}
)
"""
Kinds of failure that other arguments mend. The next call of the tool is then nearly always the same one corrected: 22 of 26 that
were looked at in public agents' sessions, 3 of 10 after a command that failed or was cancelled.
"""
UNLIKELY: Final = 2.0
"""A try that works less often than so many times its price, waiting left out, is made once: the next would say nothing new."""


class Stakes(NamedTuple):
    """
    The costs of a try by a policy; a success is worth 1.
    """

    retry_cost: float = 0.1
    wait_cost_per_s: float = 0.002
    fix_cost: float = 0.2
    """Of repairing something or correcting the arguments, beside the retry itself."""
    success_usd: float = 1.0
    """The worth of a success in money, to weigh the cost of the tool by."""
    max_wait_ms: int = 60_000
    within: float = 0.1
    """The advised wait is the smallest whose success is at most this share below the best."""


class Advice(NamedTuple):
    """
    The advice after a failure.
    """

    retryable: bool
    wait_ms: int
    """After which the same call has the probability *p*, whether that pays or not."""
    p: float
    retries: int
    """How many more tries would pay if each failed like this one; 0 if *retryable* is False."""
    next_action: NextAction
    corrected: float | None = None
    """How likely a call with other arguments works, if enough calls of this very tool say so."""


class _Try(NamedTuple):
    wait_ms: int
    p: float
    value: float


class Decider:
    """
    The decisions of a model at certain stakes, kept by what they depend on. Safe in any number of threads.
    """

    __slots__ = ("_kept", "_turns", "model", "stakes")

    def __init__(self, model: RetryModel, stakes: Stakes) -> None:
        self.model = model
        self.stakes = stakes
        self._kept: dict[object, Advice] = {}
        reach = model.spec.by_name.get("reach")
        # Where the level of `reach` changes for one of the waits that may be advised.
        edges = () if reach is None else reach.edges
        self._turns = sorted({edge - wait + 1 for edge in edges for wait in model.spec.delays_ms if edge >= wait})

    def advise(
        self,
        tool: str,
        error: ErrorType,
        context: Context,
        *,
        declared: bool | None = None,
        cost: int = 0,
        left: int = 1,
        tried: bool = False,
    ) -> Advice:
        """
        Returns the advice after *error* of *tool* in *context*, with at most *left* more tries allowed.

        The tool's own `retryable` is *declared*, and a call of it costs *cost* micro-dollars. If *tried*, this was a
        retry already: one that works seldom is not made twice.
        """
        code, since, after = context
        ahead = min(left, AHEAD)
        # A header is an exact wait, so it is part of the key, and moves where levels change.
        place = since if since is None or after is not None else bisect_left(self._turns, since + 1)
        key = (tool, error, code, place, after, declared, cost, ahead, tried)
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= CACHED:
                self._kept.clear()
            known = self._kept[key] = self._decide(tool, error, context, declared, cost, left=ahead, tried=tried)
        return known if known.retries < AHEAD else known._replace(retries=left)

    def _decide(
        self,
        tool: str,
        error: ErrorType,
        context: Context,
        declared: bool | None,
        cost: int,
        *,
        left: int,
        tried: bool,
    ) -> Advice:
        price = self.stakes.retry_cost + cost / (self.stakes.success_usd * MICRO)
        shift = self.model.declared.shift(declared, self.model.evidence.get((tool, error), 0.0))
        best = self._best(self._tries(tool, error, context, shift, price, repaired=False))
        instead, value = self._instead(tool, error, context, price)
        seldom = best.p < UNLIKELY * price
        if left < 1 or (seldom and tried) or best.value <= 0 or best.value < value:
            return Advice(False, best.wait_ms, best.p, 0, instead, self._corrected(tool, error, context))
        further = 0
        if left > 1 and not seldom:
            later = self._after(context, best.wait_ms)
            further = self.advise(tool, error, later, declared=declared, cost=cost, left=left - 1, tried=True).retries
        return Advice(True, best.wait_ms, best.p, 1 + further, "retry")

    def _tries(
        self, tool: str, error: str, context: Context, shift: float, price: float, *, repaired: bool
    ) -> list[_Try]:
        """
        Every wait that may be advised, with its probability and value; one at least.
        """
        model, stakes = self.model, self.stakes
        levels = model.levels(tool, error, context.code)
        base = model.scorer.context(levels) + shift
        waits = candidates(model.spec, context.since_ms, context.retry_after_ms, repaired)
        allowed = [wait for wait in waits if wait.wait_ms <= stakes.max_wait_ms] or waits[:1]
        made = []
        for wait_ms, action in allowed:
            levels.update(action_levels(model.spec, action))
            p = probability(base + model.scorer.action(levels))
            made.append(_Try(wait_ms, p, p - price - stakes.wait_cost_per_s * wait_ms / 1000))
        return made

    def _best(self, tries: list[_Try]) -> _Try:
        """
        Returns the smallest wait within reach of the best among those that pay; of what never pays, the most likely.
        """
        paying = [one for one in tries if one.value > 0] or tries
        least = (1 - self.stakes.within) * max(one.p for one in paying)
        return next(one for one in paying if one.p >= least)

    def _instead(self, tool: str, error: ErrorType, context: Context, price: float) -> tuple[NextAction, float]:
        """
        Returns the other next step, and its value; to do nothing is worth 0.
        """
        if error in TRANSIENT:
            return "give_up", 0.0
        default = INSTEAD.get(error, "give_up")
        options: list[tuple[float, NextAction]] = []
        if default in ("fix_precondition", "fix_arguments"):
            repaired = max(self._tries(tool, error, context, 0.0, price, repaired=True), key=lambda one: one.p)
            options.append((repaired.p - price - self.stakes.fix_cost, "fix_precondition"))
        corrected = self.model.correction(tool, error, context.code)
        if corrected is not None and error in CORRECTABLE:
            options.append((corrected - price - self.stakes.fix_cost, "fix_arguments"))
        value, action = max(options, key=lambda option: option[0], default=(0.0, default))
        if value > 0:
            return action, value
        return ("ask_user" if default in ("fix_arguments", "ask_user") else default if not options else "give_up"), 0.0

    def _corrected(self, tool: str, error: ErrorType, context: Context) -> float | None:
        known = error in CORRECTABLE and self.model.corrections.seen(tool, error) >= ENOUGH
        return self.model.correction(tool, error, context.code) if known else None

    def _after(self, context: Context, wait_ms: int) -> Context:
        """
        Returns the context if the call, repeated after *wait_ms*, fails like this once more, without a header.
        """
        spec = self.model.spec
        levels = spec.decode_context(context.code)
        for name in ("attempt", "err_run", "tool_run"):
            if name in levels:
                levels[name] = min(levels[name] + 1, spec.by_name[name].radix - 1)
        if "prev" in levels:
            levels["prev"] = spec.by_name["prev"].level(1)
        if "ra" in levels:
            levels["ra"] = spec.by_name["ra"].level(None)
        since = None if context.since_ms is None else context.since_ms + wait_ms
        if "since" in levels:
            levels["since"] = spec.by_name["since"].level(since)
        return Context(spec.encode_context(levels), since, None)


def decider_of(model: RetryModel, stakes: Stakes) -> Decider:
    """
    Returns the decisions of *model* at *stakes*, the same object each time.
    """
    known: Decider | None = model.deciders.get(stakes)
    if known is None:
        known = model.deciders.setdefault(stakes, Decider(model, stakes))
    return known


def curve_of(model: RetryModel, tool: str, error: str) -> list[tuple[int, float]]:
    """
    Returns how likely the same call works after each wait that may be advised, in milliseconds. The failure is the
    first of a session that is a minute old.
    """
    context = context_of(model.spec, (), Settled("", -1, error, 0), 60_000, None)
    levels = model.levels(tool, error, context.code)
    made = []
    for wait_ms, action in candidates(model.spec, context.since_ms, None):
        levels.update(action_levels(model.spec, action))
        made.append((wait_ms, round(probability(model.scorer.logit(levels)), 6)))
    return made
