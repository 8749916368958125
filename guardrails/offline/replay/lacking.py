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


ARGUMENTLESS: Final[tuple[type[Guard], ...]] = (
    *(Budget, Denials, Duplicates, Growth, Rate, Retryable, Streak, Summary, ToolFilter, Truncate, Validation),
)
"""Guards that read no arguments: signatures and recorded problems are enough for them."""
ANY: Final = Tool(name="*", paths=("*",), commands=("*",))
"""What every guard applies to that its settings let apply to anything."""
SHOWN: Final = 6
"""Sources that a reason names."""
_NO_STARTS: Final = "no transcript says when a model request starts"
_NO_LINKS: Final = "no transcript says where symbolic links lead: paths are judged by their text"


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

    def add(self, other: "Held") -> None:
        """
        Add the figures of *other*.
        """
        for name in Held.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def not_judged(chain: Chain, held: Mapping[str, Held], *, specified: bool, stable: bool) -> dict[str, str]:
    """
    Returns the guards and settings of *chain* that *held* says too little for, each with the reason.

    *specified*: a tool that was called declares its parameters; *stable*: one is declared stable.
    """
    no_times = _sources(held, "timeless", "no times")
    no_turns = _sources(held, "turnless", "no word on which response made a call")
    no_tokens = _named([source for source, each in held.items() if not each.responses], held, "no token usage")
    unpriced = [source for source, each in held.items() if each.unpriced or not each.responses]
    no_costs = _named(unpriced, held, "no costs, nor prices in the policy,")
    needs: tuple[tuple[type[Guard], str, str, str | None], ...] = (
        (Budget, "max_elapsed", "budget.max_elapsed", no_times),
        (Budget, "max_turns", "budget.max_turns", no_turns),
        (Budget, "max_tokens", "budget.max_tokens", no_tokens),
        (Budget, "max_cost_usd", "budget.max_cost_usd", no_costs),
        (Growth, "", "growth", no_times),
        (Growth, "max_requests_per_second", "growth.max_requests_per_second", _NO_STARTS),
        (Growth, "max_tokens_per_minute", "growth.max_tokens_per_minute", no_tokens),
        (Rate, "", "rate", no_times),
        (Loops, "settled_for", "loops.settled_for", no_times and f"{no_times}: every repeat counts as soon"),
        (Denials, "", "denials", no_turns),
        (Retryable, "", "retryable.wait", no_times and f"{no_times}: every wait counts as over"),
        (Validation, "", "validation", None if specified else "no tool that was called declares its parameters"),
        (Workspace, "", "workspace.root", _NO_LINKS),
    )
    lacks: dict[str, str | None] = dict(no_arguments(chain, sum(each.blind for each in held.values())))
    for guard in _set(chain):
        lacks |= {
            name: reason
            for kind, setting, name, reason in needs
            if isinstance(guard, kind) and (not setting or getattr(guard, setting) is not None)
        }
        if isinstance(guard, Duplicates) and guard.rule == "evidence" and not stable:
            lacks["duplicates.stable"] = "no tool that was called is declared stable"
        if isinstance(guard, ToolFilter) and guard.unknown == "deny" and chain.known is None:
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
