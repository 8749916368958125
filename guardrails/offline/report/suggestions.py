"""
Which settings the records support: shares as evidence (the more cautious end of a 95 % Wilson interval), and these settings as a policy file, a
layer over the policy that they are for.

`always` reaches as far as no repeat has brought anything.
"""

import glob
import json
import math

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from guardrails.core.chain import Plan
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.retries.shrinkage import NONE, Count, wilson
from guardrails.offline.figures import plural, visible
from guardrails.offline.replay.evidence import WINDOW

from .tally import Tally


Made = tuple[Any, str] | None
"""A setting and its evidence; None: the figures support none."""

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
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words that YAML, of one version or another, does not read as text."""


def least(tries: Count) -> float:
    """
    Returns the share that is surely reached.
    """
    return wilson(tries)[0]


def right(tries: Count) -> bool:
    """
    Returns whether what would be refused is pointless: none of it was seen to be wrong, and few are likely to be.

    One call that brought news outweighs any number of others. A policy that was made of recorded days must not refuse
    the honest work of those days.
    """
    return 0 < tries.n == tries.s and least(tries) >= 1 - WRONG_BOUND


def wrong(tries: Count) -> bool:
    """
    Returns whether surely more would be refused wrongly than is allowed.
    """
    missed = others(tries)
    return missed.s >= WRONG_SEEN and least(missed) > WRONG_ALLOWED


def others(tries: Count) -> Count:
    """
    Returns those that came out otherwise.
    """
    return Count(tries.n, tries.n - tries.s)


def within(tries: Mapping[int, Count], window: float = math.inf) -> Count:
    """
    Returns those of the repeats that lie no more than *window* calls back.
    """
    near = [part for back, part in tries.items() if back <= window]
    return Count(sum(part.n for part in near), sum(part.s for part in near)) if near else NONE


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


def _polling(tally: Tally) -> Made:
    return "allow", (
        f"{of(tally.polls)} times the same call brought something after equal results with nothing changed in between,"
        f" in {tally.poll_sessions:,} sessions ({_above(least(tally.polls))}, needed {100 * POLLS:.0f} %): it waits for something"
    )


def _duplicates(tally: Tally, plan: Plan) -> Made:
    guard = next((guard for guard in plan.guards if isinstance(guard, Duplicates)), None)
    if guard is None or tally.repeat_sessions < SESSIONS:
        return None
    present = within(tally.always, guard.window)
    if guard.rule == "always" and wrong(present):
        changed = others(present)
        return {"rule": "evidence", "window": WINDOW}, (
            f"{of(changed)} repeats within {plural(guard.window, 'call')} brought something, or looked again after work"
            f" ({_above(least(changed))}, allowed {100 * WRONG_ALLOWED:.0f} %)"
        )
    # The most repeats none of which brought something.
    news = min((back for back, tries in tally.always.items() if tries.s < tries.n), default=math.inf)
    window = max((back for back in tally.always if back < news), default=0)
    near = within(tally.always, window)
    if not right(near) or plan.tool.repeats == "evidence" or (guard.rule == "always" and guard.window >= window):
        return None
    missed = f"95 % sure < {math.ceil(1000 * wilson(others(near))[1]) / 10:g} %, allowed {100 * WRONG_BOUND:.0f} %"
    said = f"{of(near)} repeats within {plural(window, 'call')} brought nothing new (the others: {missed})"
    return {"rule": "always", "window": window}, said


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
    lines = [
        f"# Suggested by `guardrails report --suggest` from {visible(seen)}.",
        "# Each setting has its evidence above it, by 95 % Wilson bounds. Judge it before you use it:",
        f"#   {visible(replay)}",
        "# Use it as it is, name it in `extends:` of your own policy, or copy entries into your `tools:`.",
        "version: 1",
        f"extends: {text_of(base)}",
    ]
    lines.append("tools:" if suggestions else "# Nothing is suggested: too few calls, or the policy says it already.")
    for one in suggestions:
        lines.append(f"  - match: {text_of(glob.escape(one.tool))}")
        for key, value in one.settings.items():
            lines += [f"    # {visible(one.evidence[key])}", f"    {key}: {written(value)}"]
    return "\n".join(lines) + "\n"


def written(value: Any) -> str:
    """
    Returns a setting in YAML.
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {written(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value) if not isinstance(value, str) else value


def text_of(text: str) -> str:
    """
    A text in YAML.
    """
    # Printable text in double quotes is YAML as it is JSON.
    plain = text.replace("_", "").isalpha() and text.isascii() and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
