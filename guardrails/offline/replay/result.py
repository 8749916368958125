"""
The figures of a judgement: plain data that adds up, source by source.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal


MAX_STOPS: Final = 20_000
REPEATS: Final = ("duplicates.", "loops.")
"""Codes that say that a call would bring nothing, which a transcript can prove wrong."""
LIMITS: Final = ("budget.", "growth.", "rate.", "streak.", "tools.")
"""Codes of limits: a decision of the policy, neither right nor wrong."""

Kind = Literal["nudge", "deny", "observe"]
"""What was said of a call that did not simply pass; observe: a guard in observe mode would have denied it."""


@dataclass(slots=True)
class Tally:
    """
    The effects of a policy on the calls of one source, of one tool, or of all.

    A *pointless* call has the same evidence as the latest identical call within the last 20 of its session. The results
    of two successes are equal then, those of two failures equal but for digits. Every other repeat brought something. A
    call without a recorded result (denied live, or cut off) is neither.
    """

    source: str
    sessions: int = 0
    calls: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    """By code, calls after exhaustion left out; of what exhausted a session the first call that it refused is here."""
    nudged: Counter[str] = field(default_factory=Counter)
    after_exhaustion: Counter[str] = field(default_factory=Counter)
    """Further calls denied because the session was exhausted, by the code that exhausted it."""
    denied_without_cap: Counter[str] = field(default_factory=Counter)
    """`denied` with `denials` off."""
    after_exhaustion_without_cap: Counter[str] = field(default_factory=Counter)
    observed: Counter[str] = field(default_factory=Counter)
    """What guards in observe mode would have denied, by code; a call that several object to counts for each."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Denials of `duplicates.*` and `loops.*` whose call was not pointless, by code."""
    wrong_without_cap: Counter[str] = field(default_factory=Counter)
    wrong_nudges: Counter[str] = field(default_factory=Counter)
    wrong_observed: Counter[str] = field(default_factory=Counter)
    """Of the first that took the call for a repeat: each call once."""
    wrong_why: Counter[str] = field(default_factory=Counter)
    """The calls of `wrong` by what they brought, see `why.WHY`."""
    wrong_worked: Counter[str] = field(default_factory=Counter)
    """Of them, those that are recorded as a success."""
    wrong_observed_why: Counter[str] = field(default_factory=Counter)
    wrong_observed_worked: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    """Calls that were denied because their session was over, the first of each too, by the code that ended it."""
    lost_worked: Counter[str] = field(default_factory=Counter)
    """Of them, those that are recorded as a success."""
    lost_new: Counter[str] = field(default_factory=Counter)
    """Of these, those that were not pointless: what the end really cost, at most."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Denials of `duplicates.*` and `loops.*` whose call has no recorded result: nobody knows whether they are right."""
    limit_stops: Counter[str] = field(default_factory=Counter)
    """Denials by budget, rate, growth and streak, by code: a decision of the policy, neither right nor wrong."""
    pointless_second: int = 0
    """Pointless calls that are the second of their kind in the window."""
    pointless_later: int = 0
    stopped_second: int = 0
    """Of them, denied by any code, after exhaustion too."""
    stopped_later: int = 0
    stopped_second_without_cap: int = 0
    stopped_later_without_cap: int = 0
    observed_second: int = 0
    """Of the pointless ones, those that some guard in observe mode would have denied."""
    observed_later: int = 0
    saved_calls: int = 0
    """Calls that were stopped, by any code: tool executions that would not have been. An upper bound like all savings: a
    model that is stopped may call something else."""
    saved_responses: int = 0
    """Model responses all of whose calls were stopped: an upper bound of what they would have saved."""
    saved_tokens: int = 0
    """Of those responses."""
    saved_micro_usd: int = 0
    tokens: int = 0
    """Of all responses whose usage is recorded."""
    micro_usd: int = 0
    """Of all responses whose cost is recorded or priced by the policy."""
    one_by_one: int = 0
    """Sessions with neither times nor a word on which response made a call: each call is taken for a response of its own."""

    @property
    def denials(self) -> int:
        """
        Denied calls, those after exhaustion left out.
        """
        return sum(self.denied.values())

    @property
    def wrong_per_1000(self) -> float:
        """
        Wrong denials per 1,000 calls.
        """
        return 1000 * sum(self.wrong.values()) / self.calls if self.calls else 0.0

    @property
    def wrong_observed_per_1000(self) -> float:
        """
        The same of calls that guards in observe mode would have denied.
        """
        return 1000 * sum(self.wrong_observed.values()) / self.calls if self.calls else 0.0

    def to_dict(self) -> dict[str, Any]:
        """
        Returns all of it as JSON has it, codes by their names.
        """
        return {name: _plain(getattr(self, name)) for name in self.__slots__}


@dataclass(slots=True)
class Stop:
    """
    One call that did not simply pass, for a list.
    """

    source: str
    session_id: str
    call_index: int
    tool: str
    decision: Kind
    code: str
    pointless: bool | None
    """None: it has no recorded result."""
    run: str = ""
    """Which life of the session, where its name has more than one."""
    why: str | None = None
    """Why it is wrong, or `ended`: see `why.WHY`."""


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
        whole = Tally("total")
        for tally in self.tallies:
            add(whole, tally)
        return whole

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the figures as JSON has them, without the single stops.
        """
        return {
            "policy": self.policy,
            "seconds": round(self.seconds, 3),
            "total": _said(self.total),
            "sources": [_said(tally) for tally in self.tallies],
            "tools": [_said(tally) for tally in self.tools.values()],
            "not_judged": self.not_judged,
            "read_as": self.read_as,
            "without_calls": self.without,
            "notices": self.notices,
            "broken_lines": self.broken_lines,
        }


def add(into: Tally, tally: Tally) -> None:
    """
    Add the figures of *tally* to *into*.
    """
    for name in Tally.__slots__:
        if name != "source":
            value = getattr(tally, name)
            if isinstance(value, Counter):
                getattr(into, name).update(value)
            else:
                setattr(into, name, getattr(into, name) + value)


def _said(tally: Tally) -> dict[str, Any]:
    rates = {
        "denials": tally.denials,
        "wrong_per_1000": round(tally.wrong_per_1000, 4),
        "wrong_observed_per_1000": round(tally.wrong_observed_per_1000, 4),
    }
    return {**tally.to_dict(), **rates}


def _plain(value: Any) -> Any:
    return dict(sorted(value.items())) if isinstance(value, Counter) else value
