"""
Finds the settings that a policy should declare or override for a tool, and their evidence.

No suggestion rests on a share alone: the more cautious end of its 95 % Wilson interval has to pass the bound. So few
calls suggest nothing, and settings that a policy has already are not suggested again.
"""

from dataclasses import dataclass
from typing import Any, Final

from guardrails.core.engine.plan import Plan
from guardrails.offline.quality.names import named_to_read
from guardrails.offline.quality.tally import Odds, Tally

from .bounds import Made, bound, least, of, percent, within
from .limits import retries, timeout
from .windows import duplicates, loops, stable, value


POLLS: Final = 0.5
"""A tool polls where more of its runs of equal results end in another one than this, surely."""
SESSIONS: Final = 3
"""In which a tool has to repeat, or to poll, before anything is concluded: calls of one session are too much alike."""
HARMLESS: Final = 0.8
"""A tool that is said or named to read is taken to where it left more results of others unchanged than this, surely."""
NAME_LENGTH: Final = 200
NO_PEERS: Final = Odds()


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
        Returns the same for another program.
        """
        return {"tool": self.tool, "settings": self.settings, "evidence": self.evidence}


def suggestion(tally: Tally, plan: Plan, peers: Odds = NO_PEERS) -> Suggestion | None:
    """
    Returns the suggestion that the figures of a tool support beyond *plan*. Returns None if there is none.

    The *peers* are the repeats of the other tools that change nothing, with nothing changed in between.
    """
    if not tally.tool.isprintable() or not 0 < len(tally.tool) <= NAME_LENGTH:
        return None
    polling, read_only = _polling(tally, plan), _read_only(tally, plan)
    made: dict[str, Made] = {"polling": polling, "read_only": read_only}
    often = tally.repeat_sessions >= SESSIONS
    if often and polling is None:
        # Repeats of a tool that waits are its nature.
        reads = bool(plan.tool.read_only) or read_only is not None
        made |= _repeats(tally, plan, stable(tally, plan, peers, read_only=reads))
    made |= {"retryable": retries(tally, plan) if often else None, "timeout": timeout(tally, plan)}
    found = {key: one for key, one in made.items() if one is not None}
    if not found:
        return None
    settings = {key: setting for key, (setting, _) in found.items()}
    return Suggestion(tally.tool, settings, {key: said for key, (_, said) in found.items()})


def _repeats(tally: Tally, plan: Plan, steady: Made) -> dict[str, Made]:
    """
    The one of both that refuses more; a declaration lets a smaller window of `evidence` stand beside it.
    """
    rule = duplicates(tally, plan)
    if rule is None or steady is None or rule[0]["rule"] == "evidence":
        return {"stable": steady, "duplicates": rule, "loops": loops(plan, rule)}
    worth = value(within(tally.always, rule[0]["window"]))
    return {"stable": steady} if value(tally.stable) >= worth else {"duplicates": rule}


def waits(tally: Tally) -> bool:
    """
    Returns whether the figures say that a tool is asked again until something has happened.
    """
    return least(tally.polls) > POLLS and tally.poll_sessions >= SESSIONS


def _polling(tally: Tally, plan: Plan) -> Made:
    if plan.tool.repeats == "allow" or not waits(tally):
        return None
    return True, (
        f"{of(tally.polls)} times the same call brought something after equal results with nothing changed in between,"
        f" in {tally.poll_sessions:,} sessions ({bound('>', least(tally.polls))}, needed {percent(POLLS)}): it waits for"
        " something"
    )


def _read_only(tally: Tally, plan: Plan) -> Made:
    said = tally.said_read_only == tally.calls - tally.denied.total() > 0
    named = named_to_read(tally.tool)
    if plan.tool.read_only is not None or least(tally.harmless) <= HARMLESS or not (said or named):
        return None
    why = "recorded as read-only" if said else "named as one that reads"
    return True, (
        f"{why}, and {of(tally.harmless)} results of other tools were the same after it alone ran in between"
        f" ({bound('>', least(tally.harmless))}, needed {percent(HARMLESS)}); confirm it: no figure proves that a tool"
        " changes nothing"
    )
