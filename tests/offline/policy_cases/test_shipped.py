"""
The shipped policies hold their cases, and the cases hold the policies: what is taken away is found out.
"""

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from pathlib import Path

from guardrails import Policy
from guardrails.core.chain import Chain
from guardrails.core.guards.base import Guard
from guardrails.offline.policy_cases import CaseFile, find_cases, load_cases, run_case, shipped_with_cases
from tests.tables import table


NAMES = ("agent", "default", "observe", "shell", "strict")
SILENT = ("denials", "retryable", "summary", "truncate")
"""Guards that have nothing to record in `observe`: they end sessions or shape envelopes."""
POLICIES = Path(__file__).parents[3] / "policies"


@lru_cache
def policy(name: str) -> Policy:
    return Policy.load(name)


@lru_cache
def cases(name: str) -> CaseFile:
    return load_cases(find_cases(name))


def failures(name: str, chain: Chain) -> Iterator[str]:
    own = copy(policy(name))
    own.chain = chain
    yield from (str(result) for case in cases(name).cases if not (result := run_case(own, case)).passed)


def guards() -> Iterator[tuple[str, Guard]]:
    """
    The guards of each policy but those that it takes over from `default` as they are, of `agent` all and else `loops`: the
    cases of `default` hold them.
    """
    for name in NAMES:
        taken = [guard for guard in policy("default").chain.guards if name == "agent" or guard.name == "loops"]
        for guard in policy(name).chain.guards:
            if (name == "default" or guard not in taken) and (name != "observe" or guard.name not in SILENT):
                yield name, guard


def test_every_shipped_policy_decides_as_its_cases_say() -> None:
    assert shipped_with_cases() == sorted(path.stem for path in POLICIES.glob("*.yaml")) == sorted(NAMES)
    for name in NAMES:
        assert [*failures(name, policy(name).chain)] == []


@table("name, guard", guards())
def test_a_guard_that_is_taken_out_is_missed(name: str, guard: Guard) -> None:
    chain = policy(name).chain
    left = [other for other in chain.guards if other is not guard]
    bare = Chain(left, rules=chain.rules, mode=chain.mode, on_error=chain.on_error, form=chain.form)
    assert any(failures(name, bare))


@table("name", ["default", "observe"])
def test_what_a_policy_says_of_single_tools_is_missed_where_it_is_taken_out(name: str) -> None:
    chain = policy(name).chain
    assert any(failures(name, Chain(chain.guards, mode=chain.mode, on_error=chain.on_error)))
