"""
Labels: the fate of a failure, told from the calls of its session that settled after it.

The next call of its signature labels a failure, if that call started after the failure ended and within the limits of
`trail`. A failure that never came again is no evidence either way.

A correction is the tool's next call, within the same limits, if its arguments are others. It is good if that call
works; after refused arguments it is good if its own arguments fit. Records do not say what it was for: see
`errors.CORRECTABLE`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from guardrails.core.retries.trail import MAX_CALLS, MAX_MS, Failure, Settled, Situation, extended, failure_of
from guardrails.core.values.types import INVALID


class CallRow(NamedTuple):
    """
    One call of a session as records tell it.
    """

    tool: str
    sig: int | None
    error_type: str | None
    """None: it worked; `INVALID`: it did not run."""
    started_ms: int | None = None
    ended_ms: int | None = None
    elapsed_ms: int | None = None
    """Age of the session when it ended."""
    retry_after_ms: int | None = None
    changes: bool = True
    """It may have changed something."""


@dataclass(slots=True)
class Label:
    """
    A failure and what became of it.
    """

    row: CallRow
    failure: Failure | None
    """None: the arguments were refused, and the call did not run."""
    position: int
    """Calls that ran before it and with it."""
    changes: int
    """Those of them that worked and may have changed something."""
    situation: Situation | None = None
    """Of its retry; None: it was not tried again in time."""
    worked: bool = False
    corrected: bool | None = None
    """None: no call with other arguments came in time."""
    repeated: bool = False
    """The same call came again, in time or not."""
    followed: bool = False
    """The tool was called again."""

    def see(self, later: CallRow, position: int, changes: int, *, ran: bool) -> None:
        """
        Learn from a *later* call of the session, the *position*-th that ran.
        """
        mine = self.row
        if later.tool != mine.tool:
            return
        delay = None if later.started_ms is None or mine.ended_ms is None else later.started_ms - mine.ended_ms
        timely = position - self.position <= MAX_CALLS and (delay is None or 0 <= delay <= MAX_MS)
        same = mine.sig is not None and later.sig == mine.sig
        if not self.followed and (ran or self.failure is None):
            self.followed = True
            if timely and not same:
                refused = (INVALID, "validation")
                self.corrected = later.error_type is None if self.failure else later.error_type not in refused
        if ran and same and self.failure is not None and not self.repeated:
            self.repeated = True
            if timely:
                self.situation = self.failure.retried(delay, between=changes > self.changes)
                self.worked = later.error_type is None


def labelled(rows: Iterable[CallRow]) -> Iterator[Label]:
    """
    Returns the failures among *rows*, the calls of one session in the order in which they settled, each once all is
    known of it.
    """
    trail: dict[str, Any] | None = None
    open_labels: list[Label] = []
    position = changes = 0
    for row in rows:
        error = row.error_type
        ran = error != INVALID
        position += ran
        for label in open_labels:
            label.see(row, position, changes, ran=ran)
        while open_labels and position - open_labels[0].position > MAX_CALLS:
            yield open_labels.pop(0)
        if ran:
            trail = extended(trail, Settled(row.tool, row.sig, error, row.ended_ms), row.retry_after_ms)
            changes += error is None and row.changes
        if error is not None:
            failure = failure_of(trail, row.elapsed_ms) if ran and trail else None
            open_labels.append(Label(row, failure, position, changes))
    yield from open_labels
