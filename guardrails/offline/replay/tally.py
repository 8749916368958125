"""
One row for each judged call, and the figures that rows add up to.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, get_args

from guardrails.offline.transcripts import Report

from .evidence import Worth


TOOLS: Final = 200
"""Tools with figures of their own: those with the most calls."""
LIMITS: Final = ("budget.", "growth.", "rate.", "streak.", "tools.")
"""Codes of limits: somebody chose them."""

Recorded = Literal["worked", "repeat", "failed", "unknown"]
"""
What the record holds of a call. Worked: it was a success, and brought what the latest identical call had not. Repeat: it brought what that
had brought. Failed: otherwise than that. Unknown: no result is recorded.
"""
RECORDED: Final[tuple[Recorded, ...]] = get_args(Recorded)


@dataclass(slots=True)
class Row:
    """
    One recorded call, and the word of a policy on it.
    """

    source: str
    session_id: str
    run: str
    """Which life of the session, where its name has more than one."""
    call_index: int
    tool: str
    timed: bool
    """Calls of its session have times."""
    turned: bool
    """They say which model response made them."""
    blind: bool = False
    """Its arguments were not kept."""
    signed: bool = True
    """Its arguments, or their signature, tell its repeats."""
    watched: bool = False
    """When it was recorded, a guard that observed would have refused it."""
    worth: Worth = "new"
    recorded: Recorded = "worked"
    decision: Literal["allow", "nudge", "pending", "deny"] = "allow"
    codes: tuple[str, ...] = ()
    """Of the denial that was shown, else of all nudges."""
    observed: tuple[str, ...] = ()
    """Of guards in observe mode that would have denied it."""
    advised: bool | None = None
    """Whether a retry model called its failure worth a retry; None: none was asked."""
    priced: bool | None = None
    """Whether the cost is known of the model response that came ahead of it; None: there was none with a usage."""

    @property
    def code(self) -> str | None:
        return self.codes[0] if self.codes else None


class Tally:
    """
    The effects of a policy on the calls of one source, of one tool, or of all.

    A refused call is one of `wrong`, `repeats`, `failed` and `unknown`, by the code it was refused for. A repeat has the same evidence as
    the latest identical call within the last 20 of its session: two equal successes, or two failures that are equal but for digits.
    """

    def __init__(self, source: str, rows: Iterable[Row] = ()) -> None:
        rows = [*rows]
        refused = [row for row in rows if row.decision == "deny"]
        ran = [row for row in rows if row.decision != "deny"]
        watched = [row for row in ran if row.observed]

        def by_code(some: Iterable[Row]) -> Counter[str]:
            return Counter(row.codes[0] for row in some)

        self.source = source
        self.sessions = len({(row.source, row.session_id, row.run) for row in rows})
        self.calls = len(rows)
        self.denied = by_code(refused)
        self.wrong, self.repeats, self.failed, self.unknown = (
            by_code(row for row in refused if row.recorded == recorded) for recorded in RECORDED
        )
        """The parts of it; wrong: calls that had worked."""
        self.nudged = Counter(code for row in ran for code in row.codes)
        self.wrong_nudges = Counter(code for row in ran if row.recorded == "worked" for code in row.codes)
        """Of calls that had worked."""
        self.observed = Counter(row.observed[0] for row in watched)
        """What only guards in observe mode would have refused, by the code of the first that objects."""
        self.wrong_observed = Counter(row.observed[0] for row in watched if row.recorded == "worked")
        """Of these, those that had worked, by the first code."""
        self.recorded_observed = sum(row.watched for row in rows)
        """Calls of our own records that their own policy, which observed, would have refused."""
        self.recorded_observed_worked = sum(row.watched and row.recorded == "worked" for row in rows)
        """Of these, those that had worked."""
        self.pointless_second, self.pointless_later = _repeats(rows)
        """Repeats that are the second of their kind in the window, refused or not; and further ones."""
        self.stopped_second, self.stopped_later = _repeats(refused)
        """Of them, refused by any guard."""
        self.observed_second, self.observed_later = _repeats(watched)
        """Of them, those that some guard in observe mode would have refused."""
        self.asked = sum(row.advised is not None for row in rows)
        """Failures that a retry model was asked about."""
        self.advised = sum(bool(row.advised) for row in rows)
        """Of them, those that it called worth a retry."""
        self.refused = len(refused)
        self.wrong_per_1000 = round(1000 * self.wrong.total() / (self.calls or 1), 4)
        """Refused calls that had worked, in 1,000 calls."""
        self.wrong_observed_per_1000 = round(1000 * self.wrong_observed.total() / (self.calls or 1), 4)
        """The same of calls that guards in observe mode would have refused."""

    def to_dict(self) -> dict[str, Any]:
        """
        Returns all of it as JSON has it, codes by their names.
        """
        return {
            name: dict(sorted(one.items())) if isinstance(one, Counter) else one for name, one in vars(self).items()
        }


def _repeats(rows: list[Row]) -> tuple[int, int]:
    worth = [row.worth for row in rows]
    return worth.count("second"), worth.count("later")


def _tallies(rows: Iterable[Row], name: str) -> list[Tally]:
    """
    Returns the figures of *rows* by what each has under *name*, in the order in which these first come.
    """
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(getattr(row, name), []).append(row)
    return [Tally(own, part) for own, part in parts.items()]


@dataclass
class Judgement:
    """
    A policy over a set of files.
    """

    policy: str
    rows: list[Row]
    not_judged: dict[str, str] = field(default_factory=dict)
    """Guard to reason: what the transcripts lack for it."""
    models: dict[str, str] = field(default_factory=dict)
    """The retry models whose advice was taken: file to name in records."""
    report: Report = field(default_factory=Report)
    seconds: float = 0.0

    @cached_property
    def total(self) -> Tally:
        """
        All sources together.
        """
        return Tally("total", self.rows)

    @cached_property
    def sources(self) -> list[Tally]:
        """
        The figures by source.
        """
        return _tallies(self.rows, "source")

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures as JSON has them, without the single rows; of tools those with the most calls, which come first.
        """
        tools = sorted(_tallies(self.rows, "tool"), key=lambda tally: (-tally.calls, tally.source))[:TOOLS]
        return {
            "policy": self.policy,
            "seconds": round(self.seconds, 3),
            "total": self.total.to_dict(),
            "sources": [tally.to_dict() for tally in self.sources],
            "tools": [tally.to_dict() for tally in tools],
            "not_judged": self.not_judged,
            "models": self.models,
            **self.report.to_dict(),
        }
