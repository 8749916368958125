"""
The decision after a failure: whether, when and how often to repeat the call, by expected value.

A success is worth 1. A retry costs, waiting costs, the tool costs; the rest decides. The choices are to repeat the same
call, to repair something first, to correct the arguments, or to do none of them.
"""

from typing import Final, NamedTuple

from guardrails.core.values.errors import CORRECTABLE, INSTEAD
from guardrails.core.values.types import MICRO, NextAction

from .model import ENOUGH, RetryModel, logistic
from .serving import Advice, Stakes
from .trail import WAITS_MS, Failure, Settled, extended, failure_of


UNLIKELY: Final = 2.0
"""A try that works less often than so many times its price, waiting left out, is made once: the next would say nothing new."""


class _Try(NamedTuple):
    wait_ms: int
    p: float
    value: float


def advise(
    model: RetryModel, stakes: Stakes, failure: Failure, *, declared: bool | None, cost: int, left: int, tried: bool
) -> Advice:
    """
    Returns the advice of *model* after *failure*, with at most *left* more tries allowed.

    The tool's own `retryable` is *declared*, and a call of it costs *cost* micro-dollars. If *tried*, this was a retry
    already: one that works seldom is not made twice.
    """
    price = stakes.retry_cost + cost / (stakes.success_usd * MICRO)
    shift = model.declared(failure.tool, failure.error, declared)
    best = _best(_tries(model, stakes, failure, price, shift, mended=False), stakes)
    instead, value = _instead(model, stakes, failure, price)
    seldom = best.p < UNLIKELY * price
    if left < 1 or (seldom and tried) or best.value <= 0 or best.value < value:
        known = failure.error in CORRECTABLE and model.corrections_seen(failure.tool, failure.error) >= ENOUGH
        corrected = model.correction(failure.tool, failure.error) if known else None
        return Advice(False, best.wait_ms, best.p, 0, instead, corrected)
    return Advice(True, best.wait_ms, best.p, 1 if seldom else left, "retry")


def _tries(
    model: RetryModel, stakes: Stakes, failure: Failure, price: float, shift: float, *, mended: bool
) -> list[_Try]:
    """
    Every wait that may be advised, ascending, none below what the tool asks for; one at least. The log odds of each are by *shift* more
    than the model's.
    """
    waits = sorted({max(wait, failure.left_ms or 0) for wait in WAITS_MS})
    made = []
    for wait_ms in [wait for wait in waits if wait <= stakes.max_wait_ms] or waits[:1]:
        p = logistic(model.logit(failure.retried(wait_ms, between=mended)) + shift)
        made.append(_Try(wait_ms, p, p - price - stakes.wait_cost_per_s * wait_ms / 1000))
    return made


def _best(tries: list[_Try], stakes: Stakes) -> _Try:
    """
    Returns the smallest wait within reach of the best among those that pay; of what never pays, the most likely.
    """
    paying = [one for one in tries if one.value > 0] or tries
    least = (1 - stakes.within) * max(one.p for one in paying)
    return next(one for one in paying if one.p >= least)


def _instead(model: RetryModel, stakes: Stakes, failure: Failure, price: float) -> tuple[NextAction, float]:
    """
    Returns the other next step, and its value; to do nothing is worth 0.
    """
    error, options = failure.error, list[tuple[float, NextAction]]()
    default = INSTEAD.get(error, "give_up")
    if default in ("fix_precondition", "fix_arguments"):
        mended = max(one.p for one in _tries(model, stakes, failure, price, 0.0, mended=True))
        options.append((mended - price - stakes.fix_cost, "fix_precondition"))
    corrected = model.correction(failure.tool, error) if error in CORRECTABLE else None
    if corrected is not None:
        options.append((corrected - price - stakes.fix_cost, "fix_arguments"))
    value, action = max(options, key=lambda option: option[0], default=(0.0, default))
    if value > 0 or not options:
        return action, value
    return ("ask_user" if default == "fix_arguments" else "give_up"), 0.0


def curve_of(model: RetryModel, tool: str, error: str) -> list[tuple[int, float]]:
    """
    Returns how likely the same call works after each wait that may be advised, in milliseconds. The failure is the
    first of a session that is a minute old.
    """
    failure = failure_of(extended(None, Settled(tool, None, error, 0)), 60_000)
    return [(wait, round(model.probability(failure.retried(wait)), 6)) for wait in WAITS_MS]
