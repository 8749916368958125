"""
Finds what transcripts lack, and which guards of a policy can therefore not be judged.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import yaml

from guardrails.core.chain import Chain
from guardrails.core.guards.base import Guard
from guardrails.offline.figures import plural

from .tally import Row


_NEEDS: Final = yaml.safe_load(Path(__file__).with_name("needs.yaml").read_text(encoding="utf-8"))
NEEDS: Final = tuple((name, setting, need) for name, needs in _NEEDS.items() for setting, need in needs.items())
ARGUMENTLESS: Final = (
    *("budget", "denials", "duplicates", "growth", "rate", "retryable", "streak", "summary"),
    *("tool_filter", "truncate", "validation"),
)
"""Guards that read no arguments: signatures and recorded problems are enough for them."""
SHOWN: Final = 6
"""Sources that a reason names."""


def not_judged(chain: Chain, rows: Sequence[Row]) -> dict[str, str]:
    """
    Returns the guards and settings of *chain* that *rows* say too little for, each with the reason.
    """
    tools = {row.tool for row in rows}
    guards = guards_of(chain, tools)
    specified = any(chain.plan(name).arguments is not None for name in tools)
    sources, no_word = {row.source for row in rows}, "no word on which response made a call in sessions of"

    def lack(what: str, lacking: set[str]) -> str | None:
        names = sorted(lacking)
        more = f" and {len(names) - SHOWN} more sources" if len(names) > SHOWN else ""
        named = "any source" if len(names) == len(sources) > 1 else ", ".join(names[:SHOWN]) + more
        return f"{what} {named}" if names else None

    used = {row.source for row in rows if row.priced is not None}
    no_times = lack("no times in sessions of", {row.source for row in rows if not row.timed})
    alone = lack(f"no times and {no_word}", {row.source for row in rows if not (row.timed or row.turned)})
    unpriced = sources - used | {row.source for row in rows if row.priced is False}
    reasons = {
        "times": no_times,
        "soon": no_times and f"{no_times}: every repeat counts as soon",
        "waits": no_times and f"{no_times}: every wait counts as over",
        "signatures": lack("no arguments to tell repeats by in", {row.source for row in rows if not row.signed}),
        "turns": lack(no_word, {row.source for row in rows if not row.turned}),
        "responses": alone and f"{alone}: it sees calls one by one",
        "tokens": lack("no token usage in", sources - used),
        "costs": lack("no costs, nor prices in the policy, in", unpriced),
        "starts": "no transcript says when a model request starts",
        "links": "no transcript says where symbolic links lead: paths are judged by their text",
        "tools": None if chain.known is not None else "the policy does not list the tools there are; a host does",
        "parameters": None if specified else "no tool that was called declares its parameters",
    }
    lacks: dict[str, str | None] = dict(no_arguments(guards, sum(row.blind for row in rows)))
    for guard, (name, setting, need) in product(guards, NEEDS):
        # A cap of a single tool is a guard with one limit.
        of_it = guard.name in (name, f"tools.{name}") and getattr(guard, "limit", setting) == setting
        if of_it and (not setting or getattr(guard, setting, need) not in (None, "allow")):
            lacks[f"{guard.name}.{setting}".rstrip(".")] = reasons[need]
    return {name: reason for name, reason in lacks.items() if reason is not None}


def no_arguments(guards: Iterable[Guard], calls: int) -> dict[str, str]:
    """
    Returns the *guards* that look at arguments, if *calls* calls were recorded without theirs.
    """
    looking = sorted({guard.name for guard in guards}.difference(ARGUMENTLESS)) if calls else ()
    return dict.fromkeys(looking, f"the arguments of {plural(calls, 'call')} were not kept")


def guards_of(chain: Chain, tools: Iterable[str]) -> list[Guard]:
    """
    Returns the guards of *chain* that say something of *tools*, the chain's own first.
    """
    plans = map(chain.plan, sorted(set(tools)))
    there = {id(g): g for plan in plans for g in plan.guards if g.mode != "off" and g.for_tool(plan.tool)}
    return list(there.values()) if chain.mode != "off" else []
