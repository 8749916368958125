"""
Finds what transcripts lack, and which guards of a policy can therefore not be judged.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from guardrails.core.chain import Chain
from guardrails.core.guards.base import Guard
from guardrails.core.guards.budget import Budget
from guardrails.core.guards.denials import Denials
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.growth import Growth
from guardrails.core.guards.loops import Loops
from guardrails.core.guards.rate import Rate
from guardrails.core.guards.retryable import Retryable
from guardrails.core.guards.streak import Streak
from guardrails.core.guards.summary import Summary
from guardrails.core.guards.tool_filter import ToolFilter
from guardrails.core.guards.truncate import Truncate
from guardrails.core.guards.validation import Validation
from guardrails.core.guards.workspace import Workspace
from guardrails.core.tools.tool import Tool

from .tally import Row


NEEDS: Final[tuple[tuple[type[Guard], str, str], ...]] = (
    (Budget, "max_elapsed", "times"),
    (Budget, "max_turns", "turns"),
    (Budget, "max_tokens", "tokens"),
    (Budget, "max_cost_usd", "costs"),
    (Growth, "", "times"),
    (Growth, "max_requests_per_second", "starts"),
    (Growth, "max_tokens_per_minute", "tokens"),
    (Rate, "", "times"),
    (Loops, "settled_for", "soon"),
    (Duplicates, "settled_for", "soon"),
    (Denials, "", "turns"),
    (Retryable, "wait", "waits"),
    (Validation, "", "parameters"),
    (Workspace, "root", "links"),
)
"""Guards, some by one of their settings, with what they need of a transcript; agents repeat themselves within seconds, so that `soon` holds."""
ARGUMENTLESS: Final[tuple[type[Guard], ...]] = (
    *(Budget, Denials, Duplicates, Growth, Rate, Retryable, Streak, Summary, ToolFilter, Truncate, Validation),
)
"""Guards that read no arguments: signatures and recorded problems are enough for them."""
ANY: Final = Tool(name="*", paths=("*",), commands=("*",))
"""What every guard applies to that its settings let apply to anything."""
SHOWN: Final = 6
"""Sources that a reason names."""


def not_judged(chain: Chain, rows: Sequence[Row], *, specified: bool) -> dict[str, str]:
    """
    Returns the guards and settings of *chain* that *rows* say too little for, each with the reason. *specified*: a tool that was called
    declares its parameters.
    """
    sources = {row.source: None for row in rows}
    told = {row.source for row in rows if row.priced is not None}
    unpriced = {row.source for row in rows if row.priced is False}
    no_times = _sessions(rows, "no times", lambda row: row.timed)
    reasons = {
        "times": no_times,
        "soon": no_times and f"{no_times}: every repeat counts as soon",
        "waits": no_times and f"{no_times}: every wait counts as over",
        "turns": _sessions(rows, "no word on which response made a call", lambda row: row.turned),
        "tokens": _named("no token usage", [one for one in sources if one not in told], sources),
        "costs": _named(
            "no costs, nor prices in the policy,",
            [one for one in sources if one in unpriced or one not in told],
            sources,
        ),
        "starts": "no transcript says when a model request starts",
        "links": "no transcript says where symbolic links lead: paths are judged by their text",
        "parameters": None if specified else "no tool that was called declares its parameters",
    }
    lacks: dict[str, str | None] = dict(no_arguments(chain, sum(row.blind for row in rows)))
    for guard in _set(chain):
        for kind, setting, need in NEEDS:
            if isinstance(guard, kind) and (not setting or getattr(guard, setting, need) is not None):
                lacks[f"{kind.name}.{setting}".rstrip(".")] = reasons[need]
        if isinstance(guard, ToolFilter) and guard.unknown == "deny" and chain.known is None:
            lacks["tool_filter.unknown"] = "the policy does not list the tools there are; a host does"
    for rule in chain.rules:
        for kind, setting, need in NEEDS:
            own = [kind.aliases.get(name, name) for name in rule.guards.get(kind.name, ())]
            if own and (not setting or setting in own):
                lacks[f"tools.{kind.name}.{setting}".rstrip(".")] = reasons[need]
    return {name: reason for name, reason in lacks.items() if reason is not None}


def one_by_one(chain: Chain, rows: Sequence[Row]) -> str | None:
    """
    Returns where the guards of *chain* cannot know which calls were made together, and what they do there. Returns None
    if they can.

    If a session has times, `loops` tells its responses apart by these.
    """
    lacking = _sessions(rows, "no times and no word on which response made a call", lambda row: row.timed or row.turned)
    guards = [type(guard) for guard in _set(chain)]
    if lacking is None or Loops not in guards:
        return None
    left_out = ", and `denials` is left out" if Denials in guards else ""
    return f"{lacking}: `loops` sees calls one by one{left_out}"


def no_arguments(chain: Chain, calls: int) -> dict[str, str]:
    """
    Returns the guards of *chain* that look at arguments, if *calls* calls were recorded without theirs.
    """
    ruled = {name for rule in chain.rules for name in rule.guards} - {guard.name for guard in ARGUMENTLESS}
    looking = {guard.name for guard in _set(chain) if not isinstance(guard, ARGUMENTLESS)}
    return dict.fromkeys(sorted(looking | ruled), f"the arguments of {calls:,} calls were not kept") if calls else {}


def _set(chain: Chain) -> Iterator[Guard]:
    return (guard for guard in chain.guards if guard.applies(ANY) and guard.mode != "off" and chain.mode != "off")


def _sessions(rows: Sequence[Row], what: str, there: Callable[[Row], bool]) -> str | None:
    """
    Returns in which sources *what* is so, as it is not *there* in some of their sessions.
    """
    sessions = {(row.source, row.session_id, row.run): there(row) for row in rows}
    lacking = dict.fromkeys(source for (source, *_), has in sessions.items() if not has)
    some = [*sessions.values()].count(False)
    if lacking and some < sum(source in lacking for source, *_ in sessions):
        return f"{what} in {some:,} of {len(sessions):,} sessions ({_list([*lacking])})"
    return _named(what, [*lacking], {row.source: None for row in rows})


def _named(what: str, lacking: list[str], sources: dict[str, None]) -> str | None:
    if not lacking:
        return None
    return f"{what} in any source" if len(lacking) == len(sources) > 1 else f"{what} in {_list(lacking)}"


def _list(sources: list[str]) -> str:
    shown = ", ".join(sources[:SHOWN])
    return shown if len(sources) <= SHOWN else f"{shown} and {len(sources) - SHOWN} more sources"
