"""
What the learned judgement of a repeat costs a call, at a window of 20: features, probability, and the guard as a whole.
"""

from typing import Any

import pytest

from benchmarks.test_loops import FACTS, called, state
from guardrails import Loops
from guardrails.core.repetition.learned.features import features
from guardrails.core.repetition.learned.model_format import repeat_model
from guardrails.core.repetition.sketch import sketch_of


MODEL = repeat_model("default")


@pytest.mark.benchmark(group="repeats")
def test_the_sketch_as_the_reference(benchmark: Any) -> None:
    call = called(-1)

    def taken() -> int:
        call.sketch = None
        return sketch_of(call)

    assert benchmark(taken)


@pytest.mark.benchmark(group="repeats")
@pytest.mark.parametrize(
    ("calls", "empty", "size"),
    [(20, False, 0), (20, True, 0), (5_000, True, 0), (20, True, 1_000_000)],
    ids=["nothing dull", "all dull", "all dull, 5,000 calls before", "all dull, arguments of 1 MB"],
)
def test_features_and_probability(benchmark: Any, calls: int, *, empty: bool, size: int) -> None:
    made, call = state(calls, empty=empty, size=size), called(-1, size)

    def judged() -> float:
        call.sketch = None
        found = features(call, made, read_only=True, polling=False)
        return 0.0 if found is None else MODEL.probability(found)

    assert 0 <= benchmark(judged) < 1


@pytest.mark.benchmark(group="repeats")
def test_the_probability_alone(benchmark: Any) -> None:
    found = features(called(-1), state(20, empty=True), read_only=True, polling=False)
    assert found is not None
    assert 0 < benchmark(MODEL.probability, found) < 1


@pytest.mark.benchmark(group="repeats")
@pytest.mark.parametrize("model", [None, "default"], ids=["plain rules", "with the model"])
def test_the_guard_as_a_whole(benchmark: Any, model: str | None) -> None:
    guard, made, call = Loops(model=model), state(20, empty=True), called(-1)

    def judged() -> object:
        call.sketch = None
        return guard.check(call, made, FACTS)

    benchmark(judged)
