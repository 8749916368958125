"""
Which settings the records support: shares as evidence (the more cautious end of a 95 % Wilson interval), and these settings as a policy file, a
layer over the policy that they are for.

`always` reaches as far as no repeat has brought anything.
"""

import glob
import math

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from guardrails.core.chain import Plan
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.retries.model import Count
from guardrails.offline.figures import one_line, plural, wilson
from guardrails.offline.replay.evidence import WINDOW

from .tally import Tally, tried


WRONG_ALLOWED: Final = 0.05
"""Of the calls that a setting refuses, the share that may be refused wrongly."""
WRONG_BOUND: Final = 0.1
"""The same at the upper end of its interval: 35 repeats without a wrong one suffice."""
WRONG_SEEN: Final = 3
"""Calls that have to be seen before any share of them is called too large."""
POLLS: Final = 0.5
"""A tool polls where more of its runs of equal results end in another one than this, surely."""
SESSIONS: Final = 3
"""In which a tool has to repeat, or to poll, before anything is concluded: calls of one session are too much alike."""
NAME_LENGTH: Final = 200


def least(tries: Count) -> float:
    """
    Returns the share that is surely reached.
    """
    return wilson(tries)[0]


def wrong(missed: Count) -> bool:
    """
    Returns whether of the calls that would be refused surely more would be *missed* than is allowed.
    """
    return missed.s >= WRONG_SEEN and least(missed) > WRONG_ALLOWED


def missed_within(tally: Tally, window: float) -> Count:
    """
    Returns the repeats that lie no more than *window* calls back, and those that brought something, or came after work.
    """
    return tried(not pointless for back, pointless in tally.always if back <= window)


def of(tries: Count) -> str:
    """
    Returns `7 of 20`.
    """
    return f"{tries.s:,} of {tries.n:,}"


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


def suggestion(tally: Tally, plan: Plan) -> Suggestion | None:
    """
    Returns the suggestion that the figures of a tool support beyond *plan*. Returns None if there is none.
    """
    if not tally.tool.isprintable() or not 0 < len(tally.tool) <= NAME_LENGTH or plan.tool.repeats == "allow":
        return None
    # Repeats of a tool that waits are its nature.
    key, made = ("repeats", _polling(tally)) if waits(tally) else ("duplicates", _duplicates(tally, plan))
    return None if made is None else Suggestion(tally.tool, {key: made[0]}, {key: made[1]})


def waits(tally: Tally) -> bool:
    """
    Returns whether the figures say that a tool is asked again until something has happened.
    """
    return least(tally.polls) > POLLS and tally.poll_sessions >= SESSIONS


def _polling(tally: Tally) -> tuple[Any, str]:
    return "allow", (
        f"{of(tally.polls)} times the same call brought something after equal results with nothing changed in between,"
        f" in {tally.poll_sessions:,} sessions ({_above(least(tally.polls))}, needed {100 * POLLS:.0f} %): it waits for something"
    )


def _duplicates(tally: Tally, plan: Plan) -> tuple[Any, str] | None:
    guard = next((guard for guard in plan.guards if isinstance(guard, Duplicates)), None)
    if guard is None or tally.repeat_sessions < SESSIONS:
        return None
    always = guard.rule == "always"
    if always and wrong(missed := missed_within(tally, guard.window)):
        return {"rule": "evidence", "window": WINDOW}, (
            f"{of(missed)} repeats within {plural(guard.window, 'call')} brought something, or looked again after work"
            f" ({_above(least(missed))}, allowed {100 * WRONG_ALLOWED:.0f} %)"
        )
    # The most repeats none of which brought something: one call that brought news outweighs any number of others.
    news = min((back for back, pointless in tally.always if not pointless), default=math.inf)
    near = [back for back, _ in tally.always if back < news]
    window, same = max(near, default=0), Count(len(near), len(near))
    if least(same) < 1 - WRONG_BOUND or plan.tool.repeats == "evidence" or (always and guard.window >= window):
        return None
    missing = f"95 % sure < {math.ceil(1000 * (1 - least(same))) / 10:g} %, allowed {100 * WRONG_BOUND:.0f} %"
    reason = f"{of(same)} repeats within {plural(window, 'call')} brought nothing new (the others: {missing})"
    return {"rule": "always", "window": window}, reason


def _above(share: float) -> str:
    """
    A bound in words, rounded to the side that promises less.
    """
    return f"95 % sure > {math.floor(1000 * share) / 10:g} %"


def overrides(suggestions: Sequence[Suggestion], base: str, seen: str, replay: str) -> str:
    """
    Returns the text of the file. It extends *base*. The figures are described by *seen*, and *replay* is the command
    that judges the file on the same records.
    """
    head = Path(__file__).with_name("overrides.txt").read_text(encoding="utf-8")
    lines = [head.format(seen=one_line(seen), replay=one_line(replay), base=written(base)).rstrip("\n")]
    lines.append("tools:" if suggestions else "# Nothing is suggested: too few calls, or the policy says it already.")
    for one in suggestions:
        lines.append(f"  - match: {written(glob.escape(one.tool))}")
        for key, value in one.settings.items():
            lines += [f"    # {one_line(one.evidence[key])}", f"    {key}: {written(value)}"]
    return "\n".join(lines) + "\n"


def written(value: Any) -> str:
    """
    Returns a name or a setting in YAML, on one line.
    """
    text: str = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, sort_keys=False, width=math.inf)
    return text.strip()[1:-1]
