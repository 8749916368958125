import pytest

from guardrails.offline.learning.rows.cells import UNDATED, Cell, decayed, merged
from tests.tables import table


def cell(day: int = 10, fold: int = 0, tool: str = "t", n: float = 4, s: float = 2) -> Cell:
    return Cell(day, fold, tool, "timeout", 5, 6, "agent", n, s, 1, 0, 0, 0, 0)


def test_cells_of_one_kind_add_up_in_the_order_of_their_keys() -> None:
    assert merged([cell(tool="u"), cell(n=1, s=0), cell()]) == [cell(n=5, s=2)._replace(unlabelled=2), cell(tool="u")]


@table("day, weight", [(10, 1), (0, 0.5), (-10, 0.25), (12, 1), (UNDATED, 1)])
def test_a_failure_weighs_half_after_each_half_life(day: int, weight: float) -> None:
    (made,) = decayed([cell(day)], today=10, half_life_days=10)
    assert made == cell(UNDATED, UNDATED, n=4 * weight, s=2 * weight)._replace(unlabelled=weight)


def test_days_and_groups_of_sessions_become_one() -> None:
    (made,) = decayed([cell(10, 0), cell(10, 1), cell(0, UNDATED)], today=10, half_life_days=10)
    assert (made.n, made.s) == (10, 5)


@table("half_life", [0, -1, float("nan")])
def test_a_half_life_is_positive(half_life: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        decayed([cell()], 10, half_life)
