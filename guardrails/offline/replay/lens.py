"""
A policy's chain as far as a transcript can tell what it would have done.

Guards that only change the text of results are left out, for nobody reads it here. Guards that need times or turns
which a transcript lacks are taken out, and named by `lacking`.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from guardrails.core.chain import Chain, Plan
from guardrails.core.engine import Engine
from guardrails.core.guards.budget import Budget
from guardrails.core.guards.denials import Denials
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.growth import Growth
from guardrails.core.guards.loops import Loops
from guardrails.core.guards.rate import Rate
from guardrails.core.guards.retryable import Retryable
from guardrails.core.guards.summary import Summary
from guardrails.core.guards.truncate import Truncate


TEXT_ONLY: Final = (Summary, Truncate)
"""Guards that only shape what the model reads; `Retryable` stays, for what it says of retries is remembered."""
TIMED: Final = (Rate, Growth)
UNTIMED: Final = ((Budget, "max_elapsed"), (Loops, "settled_for"), (Duplicates, "settled_for"))
"""Settings that need times. Agents repeat themselves within seconds; that is said beside the figures."""
UNTOLD: Final = ((Growth, "max_requests_per_second"),)
"""No transcript says when a model request starts."""
MAX_PLANS: Final = 1_024


@dataclass(slots=True)
class Lens:
    """
    The chain for one kind of session.
    """

    engine: Engine
    timed: bool
    """Calls have times."""
    turned: bool
    """Calls say which model response made them."""
    looks: bool
    """A guard asks what results brought beyond their evidence."""
    declared: dict[tuple[str, bool | None, bool], Plan] = field(default_factory=dict)

    def plan(self, tool: str, read_only: bool | None, polling: bool) -> Plan:
        """
        Returns the plan for *tool*, which its transcript declares to be *read_only* or *polling*.
        """
        key = tool, read_only, polling
        plan = self.declared.get(key)
        if plan is None:
            if len(self.declared) >= MAX_PLANS:
                self.declared.clear()
            plan = self.declared[key] = _declared(self.engine.chain.plan(tool), read_only, polling)
        return plan


def lens(chain: Chain, *, timed: bool, turned: bool) -> Lens:
    """
    Returns the part of *chain* that can be judged in a session whose calls are *timed* and *turned*, or not.
    """
    hidden = {*TEXT_ONLY, *(() if timed else TIMED), *(() if turned else (Denials,))}
    unset = {*UNTOLD, *(() if timed else UNTIMED), *(() if turned else ((Budget, "max_turns"),))}
    names, settings = {cls.name for cls in hidden}, {(cls.name, setting) for cls, setting in unset}
    seen = [
        replace(guard, **dict[str, Any]({setting: None for name, setting in settings if name == guard.name}))
        for guard in chain.guards
        if guard.name not in names
    ]
    rules = [
        replace(
            rule,
            guards={
                name: {setting: value for setting, value in own.items() if (name, setting) not in settings}
                for name, own in rule.guards.items()
                if name not in names
            },
        )
        for rule in chain.rules
    ]
    made = chain.with_guards(seen, rules)
    # Nobody reads it.
    made.left_out |= {"progress"}
    content = (Duplicates, Loops, Retryable)
    looks = any(isinstance(guard, content) and guard.mode != "off" for guard in seen) or any(
        cls.name in rule.guards for rule in rules for cls in content
    )
    return Lens(Engine(made), timed, turned, looks)


def _declared(plan: Plan, read_only: bool | None, polling: bool) -> Plan:
    """
    *plan* of a tool that was declared in its own run; what the policy declares stands above that.
    """
    tool = plan.tool
    if polling:
        tool = replace(tool, repeats="allow")
    if read_only is not None and tool.read_only is None:
        tool = replace(tool, read_only=read_only)
    # Nobody reads a success.
    return plan.but(tool=tool, changes=plan.changes if tool is plan.tool else tool.changes, success_shapes=())
