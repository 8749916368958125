"""
Cells of a small world whose truth is known.
"""

import random

from collections.abc import Callable
from typing import Any

import pytest

from guardrails.core.retries.context import Settled, action_of, context_of
from guardrails.offline.learning.rows.cells import FOLDS, UNDATED, Cell, apart_from, merged
from tests.core.retries import pinned


SPEC = pinned.SPEC
DAY = 20_000
TRUTH: dict[tuple[str, str], tuple[float, ...]] = {
    ("search", "timeout"): (0.15, 0.3, 0.7, 0.75, 0.8, 0.8),
    ("search", "rate_limit"): (0.05, 0.1, 0.2, 0.6, 0.9, 0.9),
    ("legacy", "server_error"): (0.02,) * 6,
    ("pay", "server_error"): (0.5, 0.6, 0.6, 0.6, 0.6, 0.6),
    ("read", "not_found"): (0.1,) * 6,
}
"""Success by tool and error, after each of the waits that may be advised."""


def world(
    days: range = range(DAY, DAY + 6),
    retries: int = 400,
    *,
    seed: int = 1,
    truth: dict[tuple[str, str], tuple[float, ...]] | None = None,
    newest: int | None = None,
) -> list[Cell]:
    """
    Cells of *retries* a day; the days up to *newest* that are kept apart know their folds.
    """
    rng = random.Random(seed)
    rates_of = TRUTH if truth is None else truth
    newest = days[-1] if newest is None else newest
    cells = []
    for day in days:
        for _ in range(retries):
            (tool, error), rates = rng.choice(list(rates_of.items()))
            attempt, place = rng.randrange(3), rng.randrange(6)
            failure: Any = error
            context = context_of(
                SPEC, [Settled(tool, 1, failure, 0)] * attempt, Settled(tool, 1, failure, 0), 60_000, None
            )
            worked = rng.random() < rates[place] * 0.9**attempt
            action = action_of(SPEC, context, SPEC.delays_ms[place], between=False)
            fold = rng.randrange(FOLDS) if day >= apart_from(newest) else UNDATED
            cells.append(Cell(day, fold, tool, error, context.code, action, "agent", 1, worked, 0, 0, 0, 1, 0))
    return merged(cells)


@pytest.fixture
def flipped() -> Callable[[list[Cell], int], list[Cell]]:
    """
    The cells with the outcomes of one day the wrong way round.
    """
    return lambda cells, day: [cell._replace(s=cell.n - cell.s) if cell.day == day else cell for cell in cells]
