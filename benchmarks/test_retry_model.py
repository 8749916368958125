"""
What a learned retry model costs a failure: its context, a decision that is new, one that was made before; and loading.
"""

from typing import Any

import pytest

from guardrails.core.retries.context import Settled, context_of
from guardrails.core.retries.decision import Decider, Stakes
from guardrails.core.retries.model_format import parse
from guardrails.policy.feature_file import shipped_spec
from guardrails.policy.model_files import COLD


SPEC = shipped_spec()
MODEL = parse(COLD.read_bytes())
TRAIL = tuple(Settled("search" if n % 3 else "read", n % 7, "timeout" if n % 2 else None, n * 1_000) for n in range(20))
FAILURE = Settled("search", 3, "timeout", 20_000)
CONTEXT = context_of(SPEC, TRAIL, FAILURE, 20_000, None)


@pytest.mark.benchmark(group="retry model")
def test_a_look_up_as_the_reference(benchmark: Any) -> None:
    known = {("search", "timeout", 5, 1, None, None, 0, 3): 1}
    assert benchmark(lambda: known[("search", "timeout", 5, 1, None, None, 0, 3)]) == 1


@pytest.mark.benchmark(group="retry model")
def test_the_context_of_a_failure(benchmark: Any) -> None:
    assert benchmark(lambda: context_of(SPEC, TRAIL, FAILURE, 20_000, None)) == CONTEXT


@pytest.mark.benchmark(group="retry model")
def test_a_decision_that_was_made_before(benchmark: Any) -> None:
    decider = Decider(MODEL, Stakes())
    assert benchmark(lambda: decider.advise("search", "timeout", CONTEXT, left=3)).p > 0


@pytest.mark.benchmark(group="retry model")
@pytest.mark.parametrize("left", [1, 3])
def test_a_decision_that_is_new(benchmark: Any, left: int) -> None:
    assert benchmark(lambda: Decider(MODEL, Stakes()).advise("search", "timeout", CONTEXT, left=left)).p > 0


@pytest.mark.benchmark(group="load")
def test_a_model_is_loaded_and_checked(benchmark: Any) -> None:
    data = COLD.read_bytes()
    assert benchmark(lambda: parse(data)).name == MODEL.name
