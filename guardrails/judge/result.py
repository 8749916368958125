"""
The figures of a judgement: plain data that adds up, source by source.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """
    What a policy did to the calls of one source, or of all.

    A *pointless* call has the same evidence as the latest identical call within the last 20 of its session: equal results of
    two successes, equal but for digits of two failures. Every other repeat brought something.
    """

    source: str
    sessions: int = 0
    calls: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    """By code, calls after exhaustion left out."""
    nudged: Counter[str] = field(default_factory=Counter)
    after_exhaustion: Counter[str] = field(default_factory=Counter)
    """Calls denied only because the session was exhausted, by the code that exhausted it."""
    denied_without_cap: Counter[str] = field(default_factory=Counter)
    """`denied` with `denials` off."""
    after_exhaustion_without_cap: Counter[str] = field(default_factory=Counter)
    observed: Counter[str] = field(default_factory=Counter)
    """What guards in observe mode would have denied, by code."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Denials of `duplicates.*` and `loops.*` whose call was not pointless, by code."""
    wrong_nudges: Counter[str] = field(default_factory=Counter)
    limit_stops: Counter[str] = field(default_factory=Counter)
    """Denials by budget, rate, growth and streak, by code: a decision of the policy, neither right nor wrong."""
    pointless_second: int = 0
    """Pointless calls that are the second of their kind in the window."""
    pointless_later: int = 0
    stopped_second: int = 0
    """Of them, denied by any code."""
    stopped_later: int = 0
    saved_calls: int = 0
    saved_responses: int = 0
    """Model responses all of whose calls were stopped: an upper bound of what they would have saved."""
    saved_tokens: int = 0
    saved_micro_usd: int = 0
    tokens: int = 0
    micro_usd: int = 0

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


@dataclass(slots=True)
class Stop:
    """
    One denied or nudged call, for the list and the time line.
    """

    source: str
    session_id: str
    call_index: int
    tool: str
    decision: str
    """nudge or deny"""
    code: str
    at_ms: int | None
    """Time of the call; None: the transcript has no times."""
    pointless: bool


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
    timelines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Session to (call index, decision or code) of its calls, for the sessions with the most stops."""
    notices: list[str] = field(default_factory=list)
    broken_lines: int = 0
    spilled_sessions: int = 0
    seconds: float = 0.0
    finished: bool = True
    """False: interrupted; a further run goes on from there."""

    @property
    def total(self) -> Tally:
        """
        All sources together.
        """
        whole = Tally("total")
        for tally in self.tallies:
            add(whole, tally)
        return whole


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


MAX_STOPS = 20_000
