"""
The figures of one tool: each is an expression over the rows of its calls.
"""

import math

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from guardrails.core.retries.model import Count
from guardrails.core.values.errors import TRANSIENT
from guardrails.core.values.types import MICRO, micro_dollars

from .rows import NEWS, REFUSED, WRONG, Row


MAX_MS: Final = 1 << 53
"""What is longer is no duration."""
MAX_COST_USD: Final = 1e9
RETRIED: Final = TRANSIENT | {"cancelled"}
"""Failures after which the same call is a retry."""


def tried(came: Iterable[bool]) -> Count:
    """
    Returns how many tries there were, and what of them *came*.
    """
    tries = list(came)
    return Count(len(tries), sum(tries))


class Tally:
    """
    The figures of one tool by the names in `FIGURES`, each worked out when it is first asked for, unless it is among the
    *figures* that are known. A call is the model's wish: a denied call did not run.
    """

    def __init__(self, tool: str, rows: Sequence[Row] = (), **figures: Any) -> None:
        self.tool, self.rows = tool, rows
        vars(self).update(figures)

    def __getattr__(self, name: str) -> Any:
        if name not in FIGURES:
            raise AttributeError(f"there is no figure `{name}`")
        figure = self.__dict__[name] = FIGURES[name](self)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures for another program: shares of 1, milliseconds, dollars. A figure is null if there is
        nothing to count.
        """
        names = (name.partition("=") for name in _SHOWN.split())
        data = {name: getattr(self, own or name) for name, _, own in names}
        counters = {name: dict(one.most_common()) for name, one in data.items() if isinstance(one, Counter)}
        return {"tool": self.tool, **data, **counters, "retries": self.retries.n}


FIGURES: Final[dict[str, Callable[[Tally], Any]]] = {
    "calls": lambda t: len(t.rows),
    "sessions": lambda t: sessions(t.rows),
    "ran": lambda t: [row for row in t.rows if row.ran],
    # Calls that did not run, with the code.
    "refused": lambda t: [(row, row.call.code or "unknown") for row in t.rows if not row.ran],
    "denied": lambda t: Counter(code for _, code in t.refused),
    # By error type; `validation_error` are those refused for their arguments, the rest calls that ran.
    "errors": lambda t: Counter(row.error for row in t.rows if row.error is not None),
    "failed": lambda t: t.errors.total(),
    "retriable": lambda t: t.failed - t.errors[REFUSED],
    "untyped_errors": lambda t: t.errors["other"],
    # Wrong arguments that ran: nobody had checked them before.
    "unchecked": lambda t: t.errors["validation"] + t.errors["invalid_path"],
    # Calls that ran and are the same as one of the last 20, whatever came of them.
    "copies": lambda t: [row for row in t.ran if row.latest is not None],
    "repeats": lambda t: len(t.copies),
    "repeat_sessions": lambda t: sessions(t.copies),
    # Of them those of a call that had failed, of known end; those that worked.
    "after_failures": lambda t: [row for row in t.copies if row.latest.error is not None and row.known],
    "retries": lambda t: tried(row.worked for row in t.after_failures),
    "retry_rate": lambda t: ratio(t.retries.n, t.retriable),
    "retry_success": lambda t: ratio(t.retries.s, t.retries.n),
    # Wrong arguments, unless nobody knows how the next call of the tool ended; those after which it, with other ones, worked.
    "corrections": lambda t: tried(row.corrected for row in t.rows if row.error in WRONG and row.corrected is not None),
    "validation_errors": lambda t: t.corrections.n,
    "self_correction_rate": lambda t: ratio(t.corrections.s, t.corrections.n),
    # Repeats with the same evidence as the latest, by the rule of `replay`.
    "pointless_second": lambda t: sum(row.worth == "second" for row in t.copies),
    "pointless_later": lambda t: sum(row.worth == "later" for row in t.copies),
    "pointless": lambda t: t.pointless_second + t.pointless_later,
    # Of them those of a tool that polls, and others after something new was done: not wasted.
    "waits": lambda t: sum(row.same and row.polling for row in t.copies),
    "checks": lambda t: sum(row.check for row in t.copies),
    # Refused as repeats, or for going round in circles.
    "refused_repeats": lambda t: sum(row.idle for row, _ in t.refused),
    "repeated": lambda t: t.repeats + t.refused_repeats,
    "duplicate_rate": lambda t: ratio(t.repeated, t.calls),
    # They brought no news, or were refused as repeats.
    "idle": lambda t: sum(row.idle for row in t.rows),
    "idle_failures": lambda t: sum(row.idle and _failed_again(row) for row in t.rows),
    "loop_rate": lambda t: ratio(t.idle, t.calls),
    # Each once: idle, refused for its arguments, or failed but for `NEWS`.
    "wasted": lambda t: sum(row.idle or row.error not in (None, *NEWS) for row in t.rows),
    "wasted_share": lambda t: ratio(t.wasted, t.calls),
    # What guards in observe mode would have refused; of that what worked, and brought news.
    "observed": lambda t: sum(bool(row.call.observed) for row in t.rows),
    "observed_worked": lambda t: sum(bool(row.call.observed) and row.worked and not row.same for row in t.rows),
    # Successes, those that did not say whether they are complete, and those that are not and did not say how to go on.
    "results": lambda t: sum(row.worked for row in t.rows),
    "unsignalled": lambda t: sum(row.signal == "absent" for row in t.rows),
    "dead_ends": lambda t: sum(row.signal == "dead end" for row in t.rows),
    "unsaid": lambda t: t.unsignalled + t.dead_ends,
    "ms": lambda t: [ms for row in t.ran if (ms := row.call.duration_ms) is not None and 0 <= ms < MAX_MS],
    "durations": lambda t: len(t.ms),
    "p50_ms": lambda t: quantile(t.ms, 0.5),
    "p99_ms": lambda t: quantile(t.ms, 0.99),
    # Of the tool itself, micro-dollars.
    "cost": lambda t: spent(row.call.tool_cost_usd for row in t.ran),
    "cost_usd": lambda t: t.cost / MICRO,
    # Runs of equal successes of one call with nothing changed in between; those that ended in another success.
    "ended": lambda t: [row for row in t.copies if row.latest.waits and row.ends],
    "polls": lambda t: Count(sum(row.waits and not row.latest.waits for row in t.copies), len(t.ended)),
    "poll_sessions": lambda t: sessions(t.ended),
    "polled": lambda t: sum(row.polling for row in t.ran),
    # Copies that the rule `always` refuses, each by how many calls back the latest is and whether it was pointless, with nothing done in
    # between. A retry is none, and nobody knows what a call without a result brought.
    "always": lambda t: [
        (row.back, row.same and not row.changed)
        for row in t.copies
        if row.worth != "unknown" and row.latest.evidence is not None and row.latest.error not in RETRIED
    ],
}
"""Name to expression."""
_SHOWN: Final = """
calls sessions score=wasted wasted wasted_share denied errors retries retry_rate retry_success validation_errors self_correction_rate repeats
duplicate_rate pointless_second pointless_later polling_waits=waits checks refused_repeats observed observed_worked
loop_rate loop_calls=idle repeated_errors=idle_failures untyped_errors wrong_arguments_that_ran=unchecked results
without_completion_signal=unsignalled incomplete_without_next_step=dead_ends durations p50_ms p99_ms cost_usd
"""
"""The figures that stand in `--json`, some by another name."""


def _failed_again(row: Row) -> bool:
    return not row.worked if row.ran else row.latest is not None and row.latest.error is not None


def sessions(rows: Iterable[Row]) -> int:
    """
    Returns in how many sessions there are *rows*.
    """
    return len({row.session for row in rows})


def spent(costs_usd: Iterable[float | None]) -> int:
    """
    Returns the sum of costs in micro-dollars.
    """
    return sum(micro_dollars(usd) for usd in costs_usd if usd and 0 < usd < MAX_COST_USD)


def quantile(ms: Sequence[int], q: float) -> int | None:
    """
    Returns the duration of which a share *q* (0 to 1) of all is at or below; None without any.
    """
    return sorted(ms)[max(1, math.ceil(q * len(ms))) - 1] if ms else None


def ratio(part: float, whole: float) -> float | None:
    """
    Returns a share of 1; None of nothing.
    """
    return part / whole if whole else None
