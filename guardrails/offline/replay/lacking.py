"""
Finds what transcripts lack, and which guards of a policy can therefore not be judged.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

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


ARGUMENTLESS: Final = (
    Budget,
    Denials,
    Duplicates,
    Growth,
    Rate,
    Retryable,
    Streak,
    Summary,
    ToolFilter,
    Truncate,
    Validation,
)
"""Guards that read no arguments: signatures and recorded problems are enough for them."""
ANY: Final = Tool(name="*", paths=("*",), commands=("*",))
"""What every guard applies to that its settings let apply to anything."""
SHOWN: Final = 6
"""Sources that a reason names."""


@dataclass(slots=True)
class Held:
    """
    The data that the transcripts of one source hold.
    """

    sessions: int = 0
    timeless: int = 0
    """Sessions whose first call has no time."""
    turnless: int = 0
    """Sessions whose first call does not say which response made it."""
    responses: int = 0
    """With their tokens."""
    unpriced: int = 0
    """Of them, without a cost and of a model without a price."""
    blind: int = 0
    """Calls whose arguments were not kept."""
    single: int = 0
    """Sessions whose first call has neither: each call is taken for a response of its own."""


def not_judged(chain: Chain, held: Mapping[str, Held], *, specified: bool, stable: bool) -> dict[str, str]:  # noqa: C901  a case for each guard
    """
    Returns the guards and settings of *chain* that *held* says too little for, each with the reason.

    *specified*: a tool that was called declares its parameters; *stable*: one is declared stable.
    """
    no_times = _sources(held, "timeless", "no times")
    no_turns = _sources(held, "turnless", "no word on which response made a call")
    no_tokens = _named([source for source, each in held.items() if not each.responses], held, "no token usage")
    no_costs = _named(
        [source for source, each in held.items() if each.unpriced or not each.responses],
        held,
        "no costs, nor prices in the policy,",
    )
    lacks: dict[str, str | None] = dict(no_arguments(chain, sum(each.blind for each in held.values())))
    for guard in _set(chain):
        match guard:
            case Budget():
                lacks |= {
                    "budget.max_elapsed": None if guard.max_elapsed is None else no_times,
                    "budget.max_turns": None if guard.max_turns is None else no_turns,
                    "budget.max_tokens": None if guard.max_tokens is None else no_tokens,
                    "budget.max_cost_usd": None if guard.max_cost_usd is None else no_costs,
                }
            case Growth():
                lacks["growth"] = no_times
                if guard.max_requests_per_second is not None:
                    lacks["growth.max_requests_per_second"] = "no transcript says when a model request starts"
                if guard.max_tokens_per_minute is not None:
                    lacks["growth.max_tokens_per_minute"] = no_tokens
            case Rate():
                lacks["rate"] = no_times
            case Loops(settled_for=float()):
                lacks["loops.settled_for"] = None if no_times is None else f"{no_times}: every repeat counts as soon"
            case Denials():
                lacks["denials"] = no_turns
            case Retryable():
                lacks["retryable.wait"] = None if no_times is None else f"{no_times}: every wait counts as over"
            case Duplicates(rule="evidence") if not stable:
                lacks["duplicates.stable"] = "no tool that was called is declared stable"
            case Validation() if not specified:
                lacks["validation"] = "no tool that was called declares its parameters"
            case Workspace():
                lacks["workspace.root"] = "no transcript says where symbolic links lead: paths are judged by their text"
            case ToolFilter(unknown="deny") if chain.known is None:
                lacks["tool_filter.unknown"] = "the policy does not list the tools there are; a host does"
    for name, setting in _ruled(chain):
        if name == Rate.name:
            lacks["tools.rate"] = no_times
        elif setting == "max_elapsed":
            lacks["tools.budget.max_elapsed"] = no_times
        elif setting in ("max_turns", "max_tool_turns", "max_tool_iterations"):
            lacks["tools.budget.max_turns"] = no_turns
    return {name: reason for name, reason in lacks.items() if reason is not None}


def one_by_one(chain: Chain, held: Mapping[str, Held]) -> str | None:
    """
    Returns where the guards of *chain* cannot know which calls were made together, and what they do there. Returns None
    if they can.

    If a session has times, `loops` tells its responses apart by these.
    """
    lacking = _sources(held, "single", "no times and no word on which response made a call")
    guards = [type(guard) for guard in _set(chain)]
    if lacking is None or Loops not in guards:
        return None
    left_out = ", and `denials` is left out" if Denials in guards else ""
    return f"{lacking}: `loops` sees calls one by one{left_out}"


def no_arguments(chain: Chain, calls: int) -> dict[str, str]:
    """
    Returns the guards of *chain* that look at arguments, if *calls* calls were recorded without theirs.
    """
    if not calls:
        return {}
    ruled = {name for name, _ in _ruled(chain)} - {guard.name for guard in ARGUMENTLESS}
    looking = {guard.name for guard in _set(chain) if not isinstance(guard, ARGUMENTLESS)}
    return dict.fromkeys(sorted(looking | ruled), f"the arguments of {calls:,} calls were not kept")


def no_scopes(scopes: Iterable[str]) -> dict[str, str]:
    """
    Returns the *scopes* of a policy: no transcript says whose a session is.
    """
    return {f"scopes.{name}": "no transcript says whose a session is" for name in scopes}


def _set(chain: Chain) -> Iterator[Guard]:
    return (guard for guard in chain.guards if guard.applies(ANY) and guard.mode != "off" and chain.mode != "off")


def _ruled(chain: Chain) -> Iterator[tuple[str, Any]]:
    return ((name, setting) for rule in chain.rules for name, own in rule.guards.items() for setting in own)


def _sources(held: Mapping[str, Held], name: str, what: str) -> str | None:
    lacking = [source for source, each in held.items() if getattr(each, name)]
    some = sum(getattr(held[source], name) for source in lacking)
    if lacking and some < sum(held[source].sessions for source in lacking):
        return f"{what} in {some:,} of {sum(each.sessions for each in held.values()):,} sessions ({_list(lacking)})"
    return _named(lacking, held, what)


def _named(lacking: list[str], held: Mapping[str, Held], what: str) -> str | None:
    if not lacking:
        return None
    return f"{what} in any source" if len(lacking) == len(held) > 1 else f"{what} in {_list(lacking)}"


def _list(sources: list[str]) -> str:
    shown = ", ".join(sources[:SHOWN])
    return shown if len(sources) <= SHOWN else f"{shown} and {len(sources) - SHOWN} more sources"
