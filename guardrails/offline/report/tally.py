"""
The counts of one tool.
"""

import math

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.retries.shrinkage import Count


NEWS: Final = frozenset({"exec_nonzero", "code_error", "cancelled"})
"""Failures that are no fault of the tool: a test that fails tells what was asked."""
REFUSED: Final = "validation_error"
"""The error type of a call that was refused for its arguments and did not run."""
MAX_DURATION_MS: Final = 1 << 53
"""What is longer is no duration."""
MAX_ATTEMPT: Final = 6
"""Retries in a row that are told apart; later ones count as this."""


@dataclass(slots=True)
class Odds:
    """
    Tries, and how many came out as the name of the field says.
    """

    n: int = 0
    s: int = 0

    def add(self, came: bool) -> None:
        """
        One try.
        """
        self.n += 1
        self.s += came

    @property
    def count(self) -> Count:
        """
        The same for `wilson`.
        """
        return Count(self.n, self.s)

    @property
    def share(self) -> float | None:
        """
        Of 1; None without tries.
        """
        return self.s / self.n if self.n else None


@dataclass(slots=True)
class Durations:
    """
    Milliseconds of calls.
    """

    ms: list[int] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.ms)

    def at(self, q: float) -> int | None:
        """
        Returns the duration of which a share *q* (0 to 1) of all is at or below; None without any.
        """
        return sorted(self.ms)[max(1, math.ceil(q * self.n)) - 1] if self.ms else None

    def above(self, ms: float) -> int:
        """
        Returns how many are longer.
        """
        return sum(one > ms for one in self.ms)


@dataclass(slots=True)
class Tally:
    """
    One tool. A call is the model's wish: a denied call did not run.
    """

    tool: str
    calls: int = 0
    sessions: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    """Calls that did not run, by code."""
    errors: Counter[str] = field(default_factory=Counter)
    """By error type; `validation_error` are those refused for their arguments."""
    retries: Odds = field(default_factory=Odds)
    """Same call as one of the last 20 that had failed, of known end; those that worked."""
    corrections: Odds = field(default_factory=Odds)
    """Validation errors, unless nobody knows how the next call of the tool ended; those after which it, with other arguments, worked."""
    repeats: int = 0
    """Same call as one of the last 20, whatever came of them."""
    repeat_sessions: int = 0
    """Sessions in which there is one."""
    pointless_second: int = 0
    """Repeats with the same evidence as the latest, by the judge's rule."""
    pointless_later: int = 0
    waits: int = 0
    """Pointless repeats of a tool that is declared as polling: not wasted."""
    checks: int = 0
    """Pointless repeats after something new was done in between, polling tools left out: a look whether it helped is not wasted."""
    idle_failures: int = 0
    """Idle calls that repeated a failure, or would have."""
    refused_repeats: int = 0
    """Denied by `duplicates` or `loops` for the same tool and arguments."""
    refused_failures: int = 0
    """Of them, those that had failed when they last ran."""
    refused_stuck: int = 0
    """Denied by `loops` for going on with other arguments."""
    loops: int = 0
    """Runs of idle calls of one call in one session, up to the first that brought something."""
    loop_ms: int = 0
    """What the idle calls took that ran."""
    loops_timed: int = 0
    """Loops with a duration."""
    loop_tokens: int = 0
    """Of the model responses that made idle calls and no others."""
    loops_told: int = 0
    """Loops with a response whose tokens are known."""
    nudged_repeats: int = 0
    """Nudged by `loops`; they ran."""
    results: int = 0
    """Successes whose result was recorded."""
    unsignalled: int = 0
    """Of them, those that did not say whether they were complete."""
    dead_ends: int = 0
    """Of them, those that said they were not complete, and not how to go on."""
    wasted: int = 0
    """Calls that were pointless, refused as such or for their arguments, or failed (but for `NEWS`); each once."""
    durations: Durations = field(default_factory=Durations)
    """Milliseconds."""
    cost: int = 0
    """Of the tool itself, micro-dollars."""
    worked_ms: Durations = field(default_factory=Durations)
    """Milliseconds of successes, measured around the tool itself: of own records only."""
    failed_ms: Durations = field(default_factory=Durations)
    """The same of failures."""
    polls: Odds = field(default_factory=Odds)
    """Runs of equal successes of one call with nothing changed in between; those that ended in another success."""
    poll_sessions: int = 0
    """Sessions in which one did."""
    harmless: Odds = field(default_factory=Odds)
    """Equal calls of another tool, where only this tool may have changed something in between; those with one result."""
    said_polling: int = 0
    """Calls of which it was declared or recorded that they poll."""
    said_read_only: int = 0
    """Calls that were recorded as read-only."""
    always: dict[int, Odds] = field(default_factory=dict)
    """Repeats that the rule `always` refuses, by how many calls back the latest is; those that were pointless, with nothing
    changed in between."""
    stable: Odds = field(default_factory=Odds)
    """Repeats that a declaration as stable refuses; those that were pointless."""
    by_attempt: dict[int, Odds] = field(default_factory=dict)
    """Retries of a transient failure with nothing changed in between, by their number; those that worked."""

    @property
    def pointless(self) -> int:
        """
        All pointless repeats that ran.
        """
        return self.pointless_second + self.pointless_later

    @property
    def repeated(self) -> int:
        """
        Repeats that ran, and those that were refused.
        """
        return self.repeats + self.refused_repeats

    @property
    def idle(self) -> int:
        """
        Repeats that brought no news or were refused as repeats, except those of a tool that polls and those after work.
        """
        return self.pointless - self.waits - self.checks + self.refused_repeats + self.refused_stuck

    @property
    def retriable(self) -> int:
        """
        Failures of calls that ran.
        """
        return self.failed - self.errors[REFUSED]

    @property
    def unsaid(self) -> int:
        """
        Successes that did not say whether they were complete, or that they were not and no way to go on.
        """
        return self.unsignalled + self.dead_ends

    @property
    def unchecked(self) -> int:
        """
        Calls with wrong arguments that ran: nobody had checked them before.
        """
        return self.errors["validation"] + self.errors["invalid_path"]

    @property
    def failed(self) -> int:
        """
        Failures of calls that ran, and calls that were refused for their arguments.
        """
        return self.errors.total()

    @property
    def score(self) -> int:
        """
        The gain of a redesign: the share of calls that were wasted times the calls, which is their number.
        """
        return self.wasted

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures for another program: shares of 1, milliseconds, dollars. A figure is null if there is
        nothing to count.
        """
        p50, p99 = self.durations.at(0.5), self.durations.at(0.99)
        return {
            "tool": self.tool,
            "calls": self.calls,
            "sessions": self.sessions,
            "score": self.score,
            "wasted": self.wasted,
            "wasted_share": ratio(self.wasted, self.calls),
            "denied": dict(self.denied.most_common()),
            "errors": dict(self.errors.most_common()),
            "retries": self.retries.n,
            "retry_rate": ratio(self.retries.n, self.retriable),
            "retry_success": self.retries.share,
            "validation_errors": self.corrections.n,
            "self_correction_rate": self.corrections.share,
            "repeats": self.repeats,
            "duplicate_rate": ratio(self.repeated, self.calls),
            "pointless_second": self.pointless_second,
            "pointless_later": self.pointless_later,
            "polling_waits": self.waits,
            "checks": self.checks,
            "refused_repeats": self.refused_repeats,
            "refused_stuck": self.refused_stuck,
            "nudged_repeats": self.nudged_repeats,
            "loop_rate": ratio(self.idle, self.calls),
            "loops": self.loops,
            "loop_calls": self.idle,
            "loop_tokens": self.loop_tokens if self.loops_told else None,
            "loop_seconds": self.loop_ms / 1000 if self.loops_timed else None,
            "tokens_per_loop": ratio(self.loop_tokens, self.loops_told),
            "seconds_per_loop": ratio(self.loop_ms / 1000, self.loops_timed),
            "repeated_errors": self.idle_failures,
            "untyped_errors": self.errors["other"],
            "wrong_arguments_that_ran": self.unchecked,
            "results": self.results,
            "without_completion_signal": self.unsignalled,
            "incomplete_without_next_step": self.dead_ends,
            "durations": self.durations.n,
            "p50_ms": p50,
            "p99_ms": p99,
            "cost_usd": self.cost / 1_000_000,
        }


def ratio(part: float, whole: int) -> float | None:
    """
    Returns a share of 1; None of nothing.
    """
    return part / whole if whole else None
