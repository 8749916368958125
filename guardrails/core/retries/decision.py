"""
The decision after a failure: whether, when and how often to repeat the call, by expected value.

A success is worth 1. A retry costs, waiting costs, the tool costs; the rest decides. The choices are to repeat the same
call, to repair something first, to correct the arguments, or to do none of them.
"""

from collections.abc import Mapping
from typing import Final

from guardrails.core.values.errors import CORRECTABLE, INSTEAD
from guardrails.core.values.types import MICRO, NextAction

from .model import ENOUGH, RetryModel, logistic
from .serving import Advice, Stakes
from .trail import WAITS_MS, Failure


UNLIKELY: Final = 2.0
"""A try that works less often than so many times its price, waiting left out, is made once: the next would say nothing new."""


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
    wait_ms, p, value = _best(_chances(model, stakes, failure, shift), stakes, price)
    instead, other = _instead(model, stakes, failure, price)
    seldom = p < UNLIKELY * price
    if left < 1 or (seldom and tried) or value <= 0 or value < other:
        known = failure.error in CORRECTABLE and model.corrections_seen(failure.tool, failure.error) >= ENOUGH
        corrected = model.correction(failure.tool, failure.error) if known else None
        return Advice(False, wait_ms, p, 0, instead, corrected)
    return Advice(True, wait_ms, p, 1 if seldom else left, "retry")


def _chances(
    model: RetryModel, stakes: Stakes, failure: Failure, shift: float = 0.0, *, mended: bool = False
) -> dict[int, float]:
    """
    Returns how likely a retry works after every wait that may be advised, ascending, none below what the tool asks for; one at least. The
    log odds of each are by *shift* more than the model's.
    """
    waits = sorted({max(wait, failure.left_ms or 0) for wait in WAITS_MS})
    waits = [wait for wait in waits if wait <= stakes.max_wait_ms] or waits[:1]
    return {wait: logistic(model.logit(failure.retried(wait, between=mended)) + shift) for wait in waits}


def _best(chances: Mapping[int, float], stakes: Stakes, price: float) -> tuple[int, float, float]:
    """
    Returns (wait, chance, value) of the smallest wait within reach of the best among those that pay; of what never pays, the most likely.
    """
    values = {wait: p - price - stakes.wait_cost_per_s * wait / 1000 for wait, p in chances.items()}
    paying = [wait for wait, value in values.items() if value > 0] or [*values]
    least = (1 - stakes.within) * max(map(chances.__getitem__, paying))
    wait = next(wait for wait in paying if chances[wait] >= least)
    return wait, chances[wait], values[wait]


def _instead(model: RetryModel, stakes: Stakes, failure: Failure, price: float) -> tuple[NextAction, float]:
    """
    Returns the other next step, and its value; to do nothing is worth 0.
    """
    error, options = failure.error, list[tuple[float, NextAction]]()
    default = INSTEAD.get(error, "give_up")
    if default in ("fix_precondition", "fix_arguments"):
        mended = max(_chances(model, stakes, failure, mended=True).values())
        options.append((mended - price - stakes.fix_cost, "fix_precondition"))
    corrected = model.correction(failure.tool, error) if error in CORRECTABLE else None
    if corrected is not None:
        options.append((corrected - price - stakes.fix_cost, "fix_arguments"))
    value, action = max(options, key=lambda option: option[0], default=(0.0, default))
    if value > 0 or not options:
        return action, value
    return ("ask_user" if default == "fix_arguments" else "give_up"), 0.0
