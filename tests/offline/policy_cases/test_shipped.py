"""
The shipped policies hold their cases, and the cases hold the policies: what is taken away or loosened is found out.
"""

import dataclasses
import typing

from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.core.chain import Chain
from guardrails.core.guards.base import Guard
from guardrails.offline.policy_cases import CaseFile, Result, find_cases, load_cases, run_case, shipped_with_cases
from guardrails.offline.policy_cases.steps import Call, Repeat, Settle, Step
from tests.tables import table


NAMES = ("agent", "default", "observe", "shell", "strict")
SHAPES = {"retryable": "retryable", "summary": "query_summary", "truncate": "is_complete"}
"""Guards that say something in the envelope only, and the field they say it in."""
SILENT = ("denials", *SHAPES)
"""Guards that have nothing to record in `observe`: they end sessions or shape envelopes."""
STAKES = ("retry_cost", "model_nudge")
"""Settings that only a policy with a model uses."""
AUTO = ("auto", "auto_max_wait")
"""Of `retryable`: only a session that executes the calls makes one again by itself, and a case executes none."""
POLICIES = Path(__file__).parents[3] / "policies"


@lru_cache
def policy(name: str) -> Policy:
    return Policy.load(name)


@lru_cache
def cases(name: str) -> CaseFile:
    return load_cases(find_cases(name))


def run(name: str, chain: Chain) -> list[Result]:
    own = copy(policy(name))
    own.chain = chain
    return [run_case(own, case) for case in cases(name).cases]


def again(chain: Chain, guards: list[Guard]) -> Chain:
    return Chain(guards, rules=chain.rules, mode=chain.mode, on_error=chain.on_error, form=chain.form)


def own_guards(name: str) -> list[Guard]:
    """
    The guards of a policy but those that it takes over from `default` as they are, of `agent` all and else `loops`: the
    cases of `default` hold them.
    """
    taken = [guard for guard in policy("default").chain.guards if name == "agent" or guard.name == "loops"]
    return [guard for guard in policy(name).chain.guards if name == "default" or guard not in taken]


def guards() -> Iterator[Any]:
    for name in NAMES:
        for guard in own_guards(name):
            if name != "observe" or guard.name not in SILENT:
                yield name, guard


def loosened() -> Iterator[Any]:
    """
    Each number of each guard by one more, each switch and choice the other way.
    """
    for name, guard in guards():
        hints = typing.get_type_hints(type(guard))
        for field in dataclasses.fields(guard):
            value: Any = getattr(guard, field.name)
            others: list[Any] = []
            if field.name in STAKES and getattr(guard, "model", None) is None:
                continue
            if guard.name == "retryable" and field.name in AUTO:
                continue
            if field.name == "settled_for" and getattr(guard, "rule", None) == "always":
                continue
            if field.name == "on_unpriced" and getattr(guard, "max_cost_usd", None) is None:
                continue
            if isinstance(value, bool):
                others = [not value] if field.name != "per_tool" else []
            elif isinstance(value, (int, float)):
                others = [value + 1] if value else []
            elif isinstance(value, str) and field.name != "mode":
                others = [choice for choice in typing.get_args(hints[field.name]) if choice != value]
            for other in others:
                changed = dataclasses.replace(guard, **{field.name: other})
                yield name, guard, changed


def steps_of(steps: Sequence[Step]) -> Iterator[Call | Settle]:
    for step in steps:
        if isinstance(step, Repeat):
            yield from steps_of(step.steps)
        elif isinstance(step, (Call, Settle)):
            yield step


def names_what(name: str, guard: str) -> bool:
    """
    Whether a case of the policy *name* expects a code of *guard*, or the field it fills.
    """
    for case in cases(name).cases:
        for step in steps_of(case.steps):
            observed = [] if isinstance(step, Settle) else step.observed
            codes = [getattr(step, "code", None), *([observed] if isinstance(observed, str) else observed)]
            if any(code is not None and code.startswith(f"{guard}.") for code in codes):
                return True
            if SHAPES.get(guard) in (step.envelope or {}):
                return True
    return False


@table("name", NAMES)
def test_a_shipped_policy_decides_as_its_cases_say(name: str) -> None:
    assert [str(result) for result in run(name, policy(name).chain) if not result.passed] == []


def test_every_shipped_policy_has_cases() -> None:
    assert shipped_with_cases() == sorted(path.stem for path in POLICIES.glob("*.yaml"))


@table("name, guard", list(guards()))
def test_every_guard_of_a_shipped_policy_is_named_by_a_case(name: str, guard: Guard) -> None:
    assert names_what(name, guard.name)


@table("name, guard", list(guards()))
def test_a_guard_that_is_taken_out_is_missed(name: str, guard: Guard) -> None:
    chain = policy(name).chain
    left = again(chain, [other for other in chain.guards if other is not guard])
    assert not all(result.passed for result in run(name, left))


@pytest.mark.system
@table("name, guard, changed", list(loosened()))
def test_a_setting_that_is_off_by_one_is_found_out(name: str, guard: Guard, changed: Guard) -> None:
    chain = policy(name).chain
    loose = again(chain, [changed if other is guard else other for other in chain.guards])
    assert not all(result.passed for result in run(name, loose))


@table("name", ["default", "observe"])
def test_what_a_policy_says_of_single_tools_is_missed_where_it_is_taken_out(name: str) -> None:
    chain = policy(name).chain
    bare = Chain(chain.guards, mode=chain.mode, on_error=chain.on_error)
    assert not all(result.passed for result in run(name, bare))
