"""
The figures of a judgement: plain data that adds up, source by source.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args


MAX_STOPS: Final = 20_000
LIMITS: Final = ("budget.", "growth.", "rate.", "streak.", "tools.")
"""Codes of limits: somebody chose them."""

Recorded = Literal["worked", "repeat", "failed", "unknown"]
"""
What the record holds of a call. Worked: it was a success, and brought what the latest identical call had not. Repeat: it brought what that
had brought. Failed: otherwise than that. Unknown: no result is recorded.
"""
RECORDED: Final[tuple[Recorded, ...]] = get_args(Recorded)


@dataclass(slots=True)
class Tally:
    """
    The effects of a policy on the calls of one source, of one tool, or of all.

    A refused call is one of `wrong`, `repeats`, `failed` and `unknown`, by the code it was refused for. A repeat has the same evidence as
    the latest identical call within the last 20 of its session: two equal successes, or two failures that are equal but for digits.
    """

    source: str
    sessions: int = 0
    one_by_one: int = 0
    """Sessions with neither times nor a word on which response made a call: each call is taken for a response of its own."""
    calls: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    """Refused calls, but for those of sessions that had refused one since they were over."""
    after_exhaustion: Counter[str] = field(default_factory=Counter)
    """Those, by the code that ended the session."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Of both, by any guard: calls that had worked."""
    repeats: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    nudged: Counter[str] = field(default_factory=Counter)
    wrong_nudges: Counter[str] = field(default_factory=Counter)
    """Of calls that had worked."""
    observed: Counter[str] = field(default_factory=Counter)
    """What guards in observe mode would have refused, by code; a call that several object to counts for each."""
    observed_calls: int = 0
    """The same, each call once."""
    wrong_observed: Counter[str] = field(default_factory=Counter)
    """Of these, those that had worked, by the first code."""
    recorded_observed: int = 0
    """Calls of our own records that their own policy, which observed, would have refused."""
    recorded_observed_worked: int = 0
    """Of these, those that had worked."""
    pointless_second: int = 0
    """Repeats that are the second of their kind in the window, refused or not."""
    pointless_later: int = 0
    stopped_second: int = 0
    """Of them, refused by any guard."""
    stopped_later: int = 0
    observed_second: int = 0
    """Of them, those that some guard in observe mode would have refused."""
    observed_later: int = 0
    asked: int = 0
    """Failures that a retry model was asked about."""
    advised: int = 0
    """Of them, those that it called worth a retry."""
    saved_responses: int = 0
    """Model responses all of whose calls were refused: an upper bound of what would have been saved, as are the next two."""
    saved_tokens: int = 0
    saved_micro_usd: int = 0
    tokens: int = 0
    """Of all responses whose usage is recorded."""
    micro_usd: int = 0
    """Of all responses whose cost is recorded or priced by the policy."""

    @property
    def refused(self) -> int:
        """
        All refused calls.
        """
        return self.denied.total() + self.after_exhaustion.total()

    @property
    def wrong_per_1000(self) -> float:
        """
        Refused calls that had worked, in 1,000 calls.
        """
        return 1000 * self.wrong.total() / self.calls if self.calls else 0.0

    @property
    def wrong_observed_per_1000(self) -> float:
        """
        The same of calls that guards in observe mode would have refused.
        """
        return 1000 * self.wrong_observed.total() / self.calls if self.calls else 0.0

    def count(self, code: str, recorded: Recorded, *, further: bool) -> None:
        """
        Add a refused call; *further*: its session was over, and had refused a call since.
        """
        (self.after_exhaustion if further else self.denied)[code] += 1
        {"worked": self.wrong, "repeat": self.repeats, "failed": self.failed, "unknown": self.unknown}[recorded][
            code
        ] += 1

    def add(self, other: "Tally") -> None:
        """
        Add the figures of *other*.
        """
        for name in Tally.__slots__[1:]:
            value = getattr(other, name)
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    def to_dict(self) -> dict[str, Any]:
        """
        Returns all of it as JSON has it, codes by their names.
        """
        data = {name: getattr(self, name) for name in Tally.__slots__}
        data = {name: dict(sorted(one.items())) if isinstance(one, Counter) else one for name, one in data.items()}
        rates = {"wrong_per_1000": self.wrong_per_1000, "wrong_observed_per_1000": self.wrong_observed_per_1000}
        return {**data, "refused": self.refused, **{name: round(rate, 4) for name, rate in rates.items()}}


def summed(name: str, tallies: "list[Tally]") -> Tally:
    """
    Returns *tallies* together, under a *name*.
    """
    whole = Tally(name)
    for tally in tallies:
        whole.add(tally)
    return whole


@dataclass(slots=True)
class Stop:
    """
    One refused call, or one that guards in observe mode would have refused, for a list.
    """

    source: str
    session_id: str
    call_index: int
    tool: str
    code: str
    recorded: Recorded
    refused: bool
    run: str = ""
    """Which life of the session, where its name has more than one."""


@dataclass(slots=True)
class Judgement:
    """
    A policy over a set of files.
    """

    policy: str
    tallies: list[Tally] = field(default_factory=list)
    """One for each source."""
    not_judged: dict[str, str] = field(default_factory=dict)
    """Guard to reason: what the transcripts lack for it."""
    stops: list[Stop] = field(default_factory=list)
    """At most `MAX_STOPS`; the counts above are of all."""
    tools: dict[str, Tally] = field(default_factory=dict)
    """The same figures by tool (of the 200 with the most calls)."""
    models: dict[str, str] = field(default_factory=dict)
    """The retry models whose advice was taken: file to name in records."""
    notices: list[str] = field(default_factory=list)
    read_as: dict[str, str] = field(default_factory=dict)
    """The format that each file was read as that gave calls."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""
    broken_lines: int = 0
    seconds: float = 0.0

    @property
    def total(self) -> Tally:
        """
        All sources together.
        """
        return summed("total", self.tallies)

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures as JSON has them, without the single stops.
        """
        return {
            "policy": self.policy,
            "seconds": round(self.seconds, 3),
            "total": self.total.to_dict(),
            "sources": [tally.to_dict() for tally in self.tallies],
            "tools": [tally.to_dict() for tally in self.tools.values()],
            "not_judged": self.not_judged,
            "models": self.models,
            "read_as": self.read_as,
            "without_calls": self.without,
            "notices": self.notices,
            "broken_lines": self.broken_lines,
        }
