"""
Labels: the fate of a failure, told from the calls of its session that settled after it.

The next call of its signature labels a failure, if that call started after the failure ended and within the limits of
the specification. A failure that never came again is no evidence either way.

A correction is the tool's next call, within the same limits, if its arguments are others. It is good if that call
works; after refused arguments it is good if its own arguments fit. Records do not say what it was for: see
`decision.CORRECTABLE`.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from guardrails.core.retries.context import Context, Settled, action_of, context_of, due_of
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import INVALID


NO_ACTION: Final = -1
"""Action code of failures that are not labelled."""
AGENT: Final = "agent"
"""The cause of a retry if none is told."""


def time_left(due_ms: int | None, ended_ms: int | None, retry_after_ms: int | None) -> int | None:
    """
    Returns how long the tool has asked to be left alone from *ended_ms* on. Earlier answers named *due_ms*: an answer
    without a Retry-After does not take back the one before.
    """
    due = due_of(due_ms, ended_ms, retry_after_ms)
    if due is None or ended_ms is None:
        return retry_after_ms
    left = due - ended_ms
    return left if left > 0 or retry_after_ms is not None else None


class SessionFeatures:
    """
    The features of one session, call by call, in the order in which its calls settle.
    """

    __slots__ = ("_due", "_trail", "spec")

    def __init__(self, spec: FeatureSpec) -> None:
        self.spec = spec
        self._trail: deque[Settled] = deque(maxlen=spec.lookback)
        self._due: dict[str, int] = {}

    def settle(self, call: Settled, elapsed_ms: int | None = None, retry_after_ms: int | None = None) -> Context | None:
        """
        Take note of a call. Returns its context if it failed.
        """
        made = None
        if call.error_type is not None:
            due = self._due.get(call.tool)
            left = time_left(due, call.ended_ms, retry_after_ms)
            made = context_of(self.spec, tuple(self._trail), call, elapsed_ms, left)
            due = due_of(due, call.ended_ms, retry_after_ms)
            if due is not None:
                self._due[call.tool] = due
        self._trail.append(call)
        return made


@dataclass(frozen=True, slots=True)
class CallRow:
    """
    One call of a session as records tell it: the columns of the offline extraction.
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
    source: str | None = None
    """The cause, if it is a retry."""


class Labelled(NamedTuple):
    """
    One failure: a row of one cell.
    """

    at: int
    """Index of the failure among the rows."""
    tool: str
    error_type: str
    context: int
    action: int
    source: str
    n: int
    s: int
    corrected_n: int
    corrected: int


def labelled(spec: FeatureSpec, rows: Iterable[CallRow]) -> Iterator[Labelled]:
    """
    Returns the failures among *rows*, the calls of one session in the order in which they settled, each once all is
    known of it.

    Keeps the failures of at most `spec.max_calls` calls.
    """
    features = SessionFeatures(spec)
    open_failures: list[_Failure] = []
    position = changes = 0
    for at, row in enumerate(rows):
        ran = row.error_type != INVALID
        position += ran
        for failure in open_failures:
            failure.see(spec, row, position, changes, ran=ran)
        while open_failures and position - open_failures[0].position > spec.max_calls:
            yield open_failures.pop(0).told()
        context = None
        if ran:
            call = Settled(row.tool, row.sig, row.error_type, row.ended_ms)
            context = features.settle(call, row.elapsed_ms, row.retry_after_ms)
            changes += row.error_type is None and row.changes
        if row.error_type is not None:
            open_failures.append(_Failure(at, row, context, position, changes))
    for failure in open_failures:
        yield failure.told()


class _Failure:
    __slots__ = ("action", "at", "changes", "context", "corrected", "position", "row", "s", "sources")

    def __init__(self, at: int, row: CallRow, context: Context | None, position: int, changes: int) -> None:
        self.at, self.row, self.context, self.position, self.changes = at, row, context, position, changes
        self.action: int | None = None
        """None: the same call has not come again yet."""
        self.s = 0
        self.sources = ""
        self.corrected: bool | str | None = ""
        """`""`: the tool was not called again yet; None: not with other arguments in time."""

    def see(self, spec: FeatureSpec, later: CallRow, position: int, changes: int, *, ran: bool) -> None:
        mine = self.row
        if later.tool != mine.tool:
            return
        late = position - self.position > spec.max_calls
        delay = None if later.started_ms is None or mine.ended_ms is None else later.started_ms - mine.ended_ms
        timely = not late and (delay is None or 0 <= delay <= spec.max_ms)
        if self.corrected == "" and (ran or self.context is None):
            other = mine.sig is None or later.sig is None or later.sig != mine.sig
            self.corrected = None
            if timely and other:
                self.corrected = (
                    later.error_type is None if self.context else later.error_type not in {INVALID, "validation"}
                )
        if ran and self.context is not None and self.action is None and mine.sig is not None and later.sig == mine.sig:
            self.action = NO_ACTION
            if timely:
                self.action = action_of(spec, self.context, delay, changes > self.changes)
                self.s = int(later.error_type is None)
                self.sources = later.source or AGENT

    def told(self) -> Labelled:
        action = NO_ACTION if self.action is None else self.action
        known = isinstance(self.corrected, bool)
        return Labelled(
            self.at,
            self.row.tool,
            self.row.error_type or "",
            0 if self.context is None else self.context.code,
            action,
            source=self.sources,
            n=int(action != NO_ACTION),
            s=self.s,
            corrected_n=int(known),
            corrected=int(self.corrected is True),
        )
