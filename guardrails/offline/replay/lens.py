"""
A policy's chain as far as a transcript can tell what it would have done.

Guards that only change the text of results are left out, for nobody reads it here. Guards that need times or turns
which a transcript lacks are taken out, and named by `lacking`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from guardrails.core.chain import Chain, Plan
from guardrails.core.engine import Engine
from guardrails.core.guards.rules import Rules
from guardrails.core.tools.tool import Tool

from .lacking import NEEDS


TEXT_ONLY: Final = ("summary", "truncate")
"""Guards that only shape what the model reads; `Retryable` stays, for what it says of retries is remembered."""
MAX_PLANS: Final = 1_024


class Lens(NamedTuple):
    """
    The chain for one kind of session.
    """

    engine: Engine
    timed: bool
    """Calls have times."""
    turned: bool
    """Calls say which model response made them."""
    plan: Callable[[str, bool | None, bool], Plan]
    """The plan for a tool, which its transcript declares to be read-only (None: it says nothing) or polling."""


def lens(chain: Chain, *, timed: bool, turned: bool) -> Lens:
    """
    Returns the part of *chain* that can be judged in a session whose calls are *timed* and *turned*, or not.
    """
    lacking = {"starts", *(() if timed else ("times", "soon")), *(() if turned else ("turns",))}
    gone = {(name, setting) for name, setting, need in NEEDS if need in lacking} | {(name, "") for name in TEXT_ONLY}
    made = without(chain, gone)
    # Nobody reads it.
    made.left_out |= {"progress"}

    @lru_cache(MAX_PLANS)
    def plan(tool: str, read_only: bool | None, polling: bool) -> Plan:
        known = made.plan(tool)
        own = declared(known.tool, read_only, polling)
        # Nobody reads a success.
        changes = known.changes if own is known.tool else own.changes
        return known.but(tool=own, changes=changes, success_shapes=())

    return Lens(Engine(made), timed, turned, plan)


def without(chain: Chain, gone: Collection[tuple[str, str]]) -> Chain:
    """
    Returns *chain* without the guards and settings *gone*, pairs of their names; a guard as a whole has `""` for a setting.
    """

    def left(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {setting: value for setting, value in settings.items() if (name, setting) not in gone}

    guards = [
        guard.untimed()
        if isinstance(guard, Rules) and ("rules", "timed") in gone
        else replace(guard, **dict[str, Any]({each: None for name, each in gone if each and name == guard.name}))
        for guard in chain.guards
        if (guard.name, "") not in gone
    ]
    rules = [
        replace(rule, guards={name: left(name, own) for name, own in rule.guards.items() if (name, "") not in gone})
        for rule in chain.rules
    ]
    return chain.with_guards(guards, rules)


def declared(tool: Tool, read_only: bool | None, polling: bool) -> Tool:
    """
    Returns *tool* as it was declared in its own run, read-only (None: unknown) or *polling*; what the policy declares stands above that.
    """
    tool = replace(tool, repeats="allow") if polling else tool
    return tool if read_only is None or tool.read_only is not None else replace(tool, read_only=read_only)
