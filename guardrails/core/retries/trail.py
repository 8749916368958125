"""
The facts of a session that tell how a failure may end: one way of finding them, for serving and for training.

A session's trail is plain data, so that a guard's state can hold it: the latest calls that are over, oldest first, and until
when tools asked to be left alone.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Final, NamedTuple


LOOKBACK: Final = 20
"""Calls before a failure that are looked at."""
MAX_CALLS: Final = 20
MAX_MS: Final = 600_000
"""A repeat that comes after more calls of its session, or later, is no retry of the failure."""
DUE_TOOLS: Final = 16
"""Tools of a session of which it is known until when they asked to be left alone."""
OUTAGE: Final = frozenset({"unavailable", "server_error", "timeout", "connection"})
"""Kinds of failure by which one and the same outage shows."""
WAITS_MS: Final = (0, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000)
"""Waits that may be advised."""
UNKNOWN: Final = -1
"""A level that the records do not tell."""
DELAYS_MS: Final = (500, 1_000, 3_000, 8_000, 12_000, 20_000, 40_000, 90_000, 150_000)
_REACHES: Final = (999, 1_999, 4_999, 9_999, 14_999, 29_999, 59_999, 119_999, 299_999)
"""Just below round times: limits last for those, and a retry that waited for the end of one comes at it or a little later."""
_RUNS: Final = (0, 1, 2, 4, 7)
_HEADERS: Final = (1_000, 5_000, 30_000, 120_000)
_AGES: Final = (60_000, 600_000)


Crosses = tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]
"""
Names of weights, those that all tools share and those of the tool's own; with each the standard deviation that it is believed to
have, in log odds.
"""


class Settled(NamedTuple):
    """
    A call that ran and is over.
    """

    tool: str
    sig: int | None
    """None: it cannot be signed, and is the same as no other."""
    error_type: str | None
    """None: it worked."""
    ended_ms: int | None


class Situation(NamedTuple):
    """
    A failure and the retry after it, in levels.
    """

    tool: str
    error: str
    attempt: int
    """Earlier calls of the same signature, at most 3."""
    run: int
    """Failures of the tool with this error just before, among its calls; those of one outage count as one kind."""
    tool_run: int
    """Calls of the tool in a row just before, at most 3."""
    age: int
    """Of the session."""
    previous: int
    """1: the call before, of any tool, failed."""
    delay: int
    """From the failure to the retry."""
    left: int
    """How long the tool still asked to be left alone after the failure."""
    header: int
    """0: it did not; 1: the retry comes before the end of that; 2: after."""
    reach: int
    """From the first failure of the run to the retry."""
    between: bool
    """A call that may change something worked meanwhile."""

    def keys(self) -> Crosses:
        """
        Returns the thirteen crosses of its levels. Fine ones are believed to weigh little, so that they cost few records
        nothing, and many can say what they know.
        """
        error, run = self.error, f"{self.error} run {self.run}"
        header = f"{error} header {self.header}"
        shared = (
            (run, 1.5),
            (f"{run} attempt {self.attempt}", 0.5),
            (f"{error} delay {self.delay}", 1.0),
            (f"left {self.left} delay {self.delay}", 1.0),
            (f"header {self.header}", 1.5),
            (header, 1.5),
            (f"{header} reach {self.reach}", 0.7),
            (f"{error} between {self.between:d}", 1.5),
            (f"tool run {self.tool_run} age {self.age} previous {self.previous}", 0.3),
        )
        return shared, (("all", 1.0), (error, 1.0), (run, 0.5), (f"{header} reach {self.reach}", 0.7))


class Failure(NamedTuple):
    """
    A failure before anything is done about it, in the levels of a `Situation`.
    """

    tool: str
    error: str
    attempt: int
    run: int
    tool_run: int
    age: int
    previous: int
    since_ms: int | None
    """Since the first failure of the run, 0 if this is it; None: times are unknown."""
    left_ms: int | None
    """How long the tool still asks to be left alone."""

    def retried(self, delay_ms: int | None, *, between: bool = False) -> Situation:
        """
        Returns the situation of the same call *delay_ms* after this failure.
        """
        since, left = self.since_ms, self.left_ms
        delay = UNKNOWN if delay_ms is None else bisect_left(DELAYS_MS, delay_ms)
        asked = UNKNOWN if left is None else bisect_left(_HEADERS, left)
        header = 0 if left is None or delay_ms is None else 1 + (delay_ms >= left)
        reach = UNKNOWN if since is None or delay_ms is None else bisect_left(_REACHES, delay_ms + since)
        return Situation(*self[:7], delay, asked, header, reach, between)


def extended(trail: Mapping[str, Any] | None, call: Settled, retry_after_ms: int | None = None) -> dict[str, Any]:
    """
    Returns *trail* with a *call* that is over, and that asked to be left alone for *retry_after_ms*.

    An answer without a Retry-After does not take back the one before.
    """
    before, now = trail or {}, call.ended_ms
    made = {"calls": [*before.get("calls", ()), list(call)][-LOOKBACK - 1 :]}
    due = before.get("due", {})
    if retry_after_ms is not None and now is not None:
        latest = max(due.get(call.tool, 0), now + retry_after_ms)
        others = [(tool, at) for tool, at in due.items() if at > now and tool != call.tool]
        due = dict([*others, (call.tool, latest)][-DUE_TOOLS:])
    return {**made, "due": due} if due else made


def failure_of(trail: Mapping[str, Any], elapsed_ms: int | None) -> Failure:
    """
    Returns the failure that the last call of *trail* is; the session was *elapsed_ms* old when it ended.
    """
    *before, (tool, sig, error, ended) = trail["calls"]
    before.reverse()
    kinds, due = OUTAGE if error in OUTAGE else (error,), trail.get("due", {}).get(tool, 0)
    own = [call for call in before if call[0] == tool]
    run = list(takewhile(lambda call: call[2] in kinds, own))
    first = run[-1][3] if run else ended
    attempt = min(sum(call[1] == sig is not None for call in own), 3)
    tool_run = min(sum(1 for _ in takewhile(lambda call: call[0] == tool, before)), 3)
    age = UNKNOWN if elapsed_ms is None else bisect_left(_AGES, elapsed_ms)
    previous = int(before[0][2] is not None) if before else UNKNOWN
    since = None if first is None or ended is None else max(0, ended - first)
    left = None if ended is None or due <= ended else due - ended
    return Failure(tool, error, attempt, bisect_left(_RUNS, len(run)), tool_run, age, previous, since, left)
