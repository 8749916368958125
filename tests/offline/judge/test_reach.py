"""
How far a session is from the limits of its chain.
"""

import pytest

from guardrails import Budget, Denials, Duplicates, Growth, Policy, SessionState, Tool
from guardrails.core.guards.base import Guard, guard
from guardrails.core.values.types import Denial
from guardrails.offline.judge.reach import reach_of


LIMITS = Budget(
    max_calls=10, max_turns=5, max_cost_usd=1.0, max_tokens=100, max_elapsed=60.0, final_answer_reserve_usd=0.2
)


def state(**said: object) -> SessionState:
    made = SessionState(started_ms=1_000, now_ms=1_000)
    for name, value in said.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("said", "cost", "tokens", "far"),
    [
        ({}, 0, 0, True),
        ({"calls": 8}, 0, 0, True),
        ({"calls": 9}, 0, 0, False),
        ({"turns": 3}, 0, 0, True),
        ({"turns": 4}, 0, 0, False),
        ({"cost": 700_000}, 99_999, 0, True),
        ({"cost": 700_000}, 100_000, 0, False),
        ({"held_cost": 800_000}, 0, 0, False),
        ({"tokens": 50}, 0, 49, True),
        ({"tokens": 50, "held_tokens": 1}, 0, 49, False),
        ({"started_ms": -1}, 0, 0, True),
        ({"exhausted": ("x", "y")}, 0, 0, False),
        ({"meters": {"growth.tokens": -1}}, 0, 0, False),
    ],
)
def test_a_limit_is_within_reach_where_one_more_call_or_turn_could_reach_it(
    said: dict[str, object], cost: int, tokens: int, far: bool
) -> None:
    reach = reach_of(Policy([LIMITS, Growth(max_calls_per_second=5), Denials(), Duplicates()]).chain)
    assert reach is not None
    assert reach.is_far(state(**said), 1_000, cost, tokens) is far


def test_time_comes_within_reach() -> None:
    reach = reach_of(Policy([LIMITS]).chain)
    assert reach is not None
    assert [reach.is_far(state(), now, 0, 0) for now in (60_999, 61_000)] == [True, False]


def test_what_all_tools_cost_is_asked_each_time() -> None:
    assert reach_of(Policy([LIMITS], tools=[Tool(name="dear", cost_usd=0.5)]).chain) is None
    assert reach_of(Policy([LIMITS], tools=[Tool(name="dear", cost_usd=0.5), Tool(name="free")]).chain) is not None
    assert reach_of(Policy([Budget(max_calls=1)], tools=[Tool(name="dear", cost_usd=0.5)]).chain) is not None


def test_without_limits_nothing_is_within_reach() -> None:
    reach = reach_of(Policy([Duplicates()]).chain)
    assert reach is not None
    assert reach.is_far(state(calls=10**9, cost=10**15), 10**15, 0, 0)


def test_what_a_limit_only_observes_is_looked_at_too() -> None:
    reach = reach_of(Policy([LIMITS], mode="observe").chain)
    assert reach is not None
    assert not reach.is_far(state(calls=10), 1_000, 0, 0)


def test_a_guard_of_ones_own_that_may_end_a_session_is_always_asked() -> None:
    @guard
    class Mine(Guard):
        def spent(self, state: SessionState, now_ms: int) -> Denial | None:
            return None

    assert reach_of(Policy([LIMITS, Mine()]).chain) is None
