"""
The library's values are dataclasses as those of the standard library are.
"""

import copy
import dataclasses
import pickle

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from guardrails import Denial, Tool


@pytest.mark.parametrize("value", [Denial("a.b", "no"), Tool(name="t", read_only=True)])
def test_a_value_is_copied_pickled_and_replaced_and_never_changes(value: Denial | Tool) -> None:
    copies = [copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)), dataclasses.replace(value)]
    assert copies == [value] * 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.retryable = True  # type: ignore[misc]


def test_threads_may_make_the_first_instance_at_once() -> None:
    for _ in range(20):

        @dataclass(slots=True, kw_only=True)
        class Point:
            x: int

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda x, of=Point: of(x=x), range(8)))
        assert [one.x for one in made] == [*range(8)]
