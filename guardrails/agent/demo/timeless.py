"""
A policy for recordings without times: what only time can judge is left out, and every wait has passed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails.core.chain import Rule
from guardrails.core.envelope.envelope import OPTIONAL
from guardrails.core.guards.base import Guard
from guardrails.core.guards.budget import Budget
from guardrails.core.guards.duplicates import Duplicates
from guardrails.core.guards.growth import Growth
from guardrails.core.guards.rate import Rate
from guardrails.policy.policy import Policy


NOT_JUDGED: Final = "rates, growth, elapsed time, tokens and model cost: recorded chats have no times and no usage"
STEP: Final = 3_600.0
"""Seconds between two turns; longer than any wait that a policy asks for."""


class Clock:
    """
    A clock that only moves when told: a turn takes no time, the next one comes an hour later.
    """

    def __init__(self) -> None:
        self._now = 1_800_000_000.0

    def __call__(self) -> float:
        return self._now

    def advance(self) -> None:
        """
        On to the next turn.
        """
        self._now += STEP


def timeless(policy: Policy) -> Policy:
    """
    *policy* without its rates, growth caps and limits of elapsed time, those of single tools too; nothing is shared.
    """
    chain = policy.chain
    return Policy(
        [_timeless(guard) for guard in chain],
        tools=chain.tools.values(),
        rules=[_timeless_rule(rule) for rule in chain.rules],
        mode=chain.mode,
        on_error="allow" if chain.on_error == "allow" else "deny",
        envelope=chain.form,
        fields=OPTIONAL - chain.left_out,
        prices=policy.prices,
        messages=chain.messages,
        name=policy.name,
    )


def _timeless(guard: Guard) -> Guard:
    if isinstance(guard, (Growth, Rate)):
        return replace(guard, mode="off")
    if isinstance(guard, Duplicates) and guard.rule == "evidence":
        # What was shown in an earlier turn speaks as if it had just been.
        return replace(guard, settled_for=None)
    return replace(guard, max_elapsed=None) if isinstance(guard, Budget) else guard


def _timeless_rule(rule: Rule) -> Rule:
    return replace(
        rule, guards={name: _without_times(name, own) for name, own in rule.guards.items() if name != "rate"}
    )


def _without_times(name: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in settings.items() if not (name == "budget" and key == "max_elapsed")}
