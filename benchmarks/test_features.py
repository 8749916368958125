"""
What the features of a failure cost while it is served; the aim is 5 us.
"""

import timeit

from typing import Any

import pytest

from guardrails.core.retries.context import Settled, candidates, context_of
from guardrails.policy.feature_file import shipped_spec


SPEC = shipped_spec()
FAILURE = Settled("a", 3, "timeout", 30_000)
TRAILS = {
    "nothing before": [],
    "20 calls of 3 tools": [Settled("abc"[at % 3], at, None if at % 2 else "timeout", at * 1_000) for at in range(20)],
    "20 calls of its tool": [Settled("a", at, "timeout", at * 1_000) for at in range(20)],
}


@pytest.mark.parametrize("trail", TRAILS.values(), ids=TRAILS)
def test_the_context_of_a_failure(benchmark: Any, trail: list[Settled]) -> None:
    made = benchmark(context_of, SPEC, trail, FAILURE, 30_000, None)
    assert 0 <= made.code < SPEC.contexts
    loop = min(timeit.repeat("for _ in range(1_000): pass", number=100, repeat=5)) / 100
    if benchmark.enabled:
        benchmark.extra_info["note"] = f"{benchmark.stats['min'] / loop:.2f} times an empty loop of 1,000"


def test_the_waits_that_may_be_advised(benchmark: Any) -> None:
    assert len(benchmark(candidates, SPEC, 0, None)) == len(SPEC.delays_ms)
