"""
What the figures say that a policy should declare or override for a tool, and on what evidence.

Nothing is said on a share alone: the end of its 95 % Wilson interval that is the more cautious has to pass the bound. So
few calls suggest nothing, and what a policy says already is not said again.
"""

import math

from dataclasses import dataclass
from typing import Any, Final

from ..chain import Plan
from ..guards.duplicates import Duplicates
from ..guards.retryable import Retryable
from ..retries.shrinkage import wilson
from .tally import MAX_ATTEMPT, Odds, Tally


POLLS: Final = 0.25
"""A tool polls where more of its third equal calls in a row bring something than this, surely."""
POLL_SESSIONS: Final = 2
POINTLESS: Final = 0.95
"""Any repeat of a tool is refused where more of them are pointless than this, surely: 5 % of denials may be wrong."""
HARMLESS: Final = 0.8
"""A tool that is said or named to read is taken to where it left more results of others unchanged than this, surely."""
SLOWEST: Final = 0.05
"""A timeout stands where fewer calls take longer than this, surely."""
TIMEOUT_FACTOR: Final = 3
"""Times the 99th percentile of the durations; 10 seconds at least, since a call that is given up may still act."""
COVERED: Final = 0.95
"""A window reaches as far as that share of the pointless repeats."""
NAME_LENGTH: Final = 200
_STEPS_S: Final = (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600)
_READS: Final = (
    *("get", "list", "find", "search", "read", "look", "lookup", "view", "show", "fetch", "query", "describe"),
    *("grep", "glob", "ls", "cat", "count", "check"),
)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """
    Settings for one tool, each with its evidence.
    """

    tool: str
    settings: dict[str, Any]
    """As an entry of a policy's `tools:` has them."""
    evidence: dict[str, str]
    """By the key of the setting."""

    def to_dict(self) -> dict[str, Any]:
        """
        The same for another program.
        """
        return {"tool": self.tool, "settings": self.settings, "evidence": self.evidence}


def suggestion(tally: Tally, plan: Plan) -> Suggestion | None:
    """
    What the figures of a tool support beyond what *plan* has for it; None: nothing.
    """
    if not tally.tool.isprintable() or not 0 < len(tally.tool) <= NAME_LENGTH:
        return None
    settings: dict[str, Any] = {}
    evidence: dict[str, str] = {}
    for key, made in (
        ("polling", _polling(tally, plan)),
        ("read_only", _read_only(tally, plan)),
        ("duplicates", _duplicates(tally, plan)),
        ("retryable", _retries(tally, plan)),
        ("timeout", _timeout(tally, plan)),
    ):
        if made is not None:
            settings[key], evidence[key] = made
    if settings.get("polling"):
        # Repeats of a tool that waits are its nature.
        settings.pop("duplicates", None)
        evidence.pop("duplicates", None)
    return Suggestion(tally.tool, settings, evidence) if settings else None


Made = tuple[Any, str] | None


def _polling(tally: Tally, plan: Plan) -> Made:
    low, _ = wilson(tally.polls.count)
    if plan.tool.polling or low <= POLLS or tally.poll_sessions < POLL_SESSIONS:
        return None
    return True, (
        f"{_of(tally.polls)} third equal calls brought something after two equal results with nothing done in between,"
        f" in {tally.poll_sessions:,} sessions ({_bound('>', low)}, needed {_percent(POLLS)}): it waits for something"
    )


def _read_only(tally: Tally, plan: Plan) -> Made:
    low, _ = wilson(tally.harmless.count)
    said = tally.said_read_only == tally.calls - tally.denied.total() > 0
    if plan.tool.read_only is not None or low <= HARMLESS or not (said or _named_to_read(tally.tool)):
        return None
    why = "recorded as read-only" if said else "named as one that reads"
    return True, (
        f"{why}, and {_of(tally.harmless)} results of other tools were the same after it alone ran in between"
        f" ({_bound('>', low)}, needed {_percent(HARMLESS)}); confirm it: no figure proves that a tool changes nothing"
    )


def _named_to_read(tool: str) -> bool:
    name = tool.rsplit("/", 1)[-1].rsplit("__", 1)[-1]
    spaced = "".join(f" {c}" if c.isupper() else " " if c in "_-. " else c for c in name)
    return (spaced.split() or [""])[0].lower() in _READS


def _duplicates(tally: Tally, plan: Plan) -> Made:
    guard = next((guard for guard in plan.guards if isinstance(guard, Duplicates)), None)
    if guard is None or plan.tool.polling:
        return None
    if guard.rule == "always":
        seen = _within(tally, guard.window)
        low, _ = wilson(Odds(seen.n, seen.n - seen.s).count)
        if low <= 1 - POINTLESS:
            return None
        return {"rule": "evidence", "window": 20}, (
            f"{seen.n - seen.s:,} of {seen.n:,} repeats within {guard.window} calls brought something"
            f" ({_bound('>', low)}, allowed {_percent(1 - POINTLESS)}): `always` would refuse them wrongly"
        )
    window = _window(tally)
    seen = _within(tally, window)
    low, _ = wilson(seen.count)
    if low <= POINTLESS:
        return None
    return {"rule": "always", "window": window}, (
        f"{_of(seen)} repeats of a success within {window} calls brought nothing new ({_bound('>', low)}, needed"
        f" {_percent(POINTLESS)}): the second is refused, not only the third"
    )


def _window(tally: Tally) -> int:
    """
    How far back the pointless repeats are, nearly all of them.
    """
    whole = sum(odds.s for odds in tally.by_distance.values())
    seen = 0
    for distance in sorted(tally.by_distance):
        seen += tally.by_distance[distance].s
        if seen >= COVERED * whole:
            return distance
    return 1


def _within(tally: Tally, window: int) -> Odds:
    near = [odds for distance, odds in tally.by_distance.items() if distance <= window]
    return Odds(sum(odds.n for odds in near), sum(odds.s for odds in near))


def _retries(tally: Tally, plan: Plan) -> Made:
    """
    The fewest retries beyond which they are not worth their cost.
    """
    guard = next((guard for guard in plan.guards if isinstance(guard, Retryable)), None)
    if guard is None:
        return None
    for most in range(min(guard.max_retries, MAX_ATTEMPT)):
        beyond = [odds for attempt, odds in tally.by_attempt.items() if attempt > most]
        left = Odds(sum(odds.n for odds in beyond), sum(odds.s for odds in beyond))
        _, high = wilson(left.count)
        if high < guard.retry_cost:
            which = "retries" if most == 0 else f"retries after the first {most}"
            return {"max_retries": most}, (
                f"{_of(left)} {which} of transient failures worked ({_bound('<', high)}; a retry costs"
                f" {guard.retry_cost:g} of a success)"
            )
    return None


def _timeout(tally: Tally, plan: Plan) -> Made:
    p99 = tally.durations.at(0.99)
    if plan.tool.timeout is not None or p99 is None:
        return None
    wanted = TIMEOUT_FACTOR * p99 / 1000
    seconds = next((step for step in _STEPS_S if step >= wanted), None)
    if seconds is None:
        return None
    slow = Odds(tally.durations.n, tally.durations.above(seconds * 1000))
    _, high = wilson(slow.count)
    if high >= SLOWEST:
        return None
    return f"{seconds}s", (
        f"{_of(slow)} calls took longer ({_bound('<', high)}, allowed {_percent(SLOWEST)}; p99 {p99 / 1000:.3g} s);"
        " some transcripts count the wait for a person's permission"
    )


def _of(odds: Odds) -> str:
    return f"{odds.s:,} of {odds.n:,}"


def _bound(sign: str, share: float) -> str:
    # Rounded to the side that promises less.
    per_mille = math.floor(share * 1000) if sign == ">" else math.ceil(share * 1000)
    return f"95 % sure {sign} {per_mille / 10:g} %"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
