"""
Shares as evidence.
"""

import pytest

from guardrails.core.retries.shrinkage import Count
from guardrails.offline.report.suggestions import least, others, right, wrong
from tests.tables import table


@table("n, s, low, high", [(10, 5, 0.2366, 0.7634), (20, 20, 0.8389, 1.0), (100, 0, 0.0, 0.0370), (0, 0, 0.0, 1.0)])
def test_the_bounds_are_those_of_wilson(n: int, s: int, low: float, high: float) -> None:
    assert least(Count(n, s)) == pytest.approx(low, abs=5e-5)
    assert 1 - least(others(Count(n, s))) == pytest.approx(high, abs=5e-5)


@table(
    "n, s, is_right, is_wrong",
    [
        (0, 0, False, False),
        (34, 34, False, False),
        (35, 35, True, False),
        (100, 95, False, False),
        (200, 200, True, False),
        (200, 199, False, False),
        (200, 189, False, False),
        (3, 0, False, True),
        (2, 0, False, False),
        (100, 90, False, True),
        (30, 27, False, False),
    ],
)
def test_few_repeats_prove_nothing_in_either_direction(n: int, s: int, is_right: bool, is_wrong: bool) -> None:
    assert right(Count(n, s)) is is_right
    assert wrong(Count(n, s)) is is_wrong
