"""
Retries that an agent chooses by what only it can see, and the few that were made for no reason.
"""

import math
import random

from collections.abc import Callable, Iterator, Sequence

from guardrails.core.retries.context import Settled, action_of, context_of
from guardrails.core.retries.model import RetryModel
from guardrails.core.values.types import ErrorType
from guardrails.offline.learning.candidate import candidate
from guardrails.offline.learning.fit import RICH, TERMS
from guardrails.offline.learning.rows.cells import UNDATED, Cell, merged
from tests.offline.learning.conftest import SPEC


ERRORS: tuple[ErrorType, ...] = ("timeout", "server_error", "not_found", "rate_limit")
CONTEXTS = {
    error: [context_of(SPEC, [Settled("", 1, error, 0)] * n, Settled("", 1, error, 0), 60_000, None) for n in (0, 1)]
    for error in ERRORS
}


def failures(count: int, explored: float, seed: int, *, advised: bool = False) -> Iterator[Cell]:
    """
    Four in ten failures say in their text that they will pass. An agent retries seven in ten of those and one in ten of the
    others; a share of *explored* is retried whatever it says. With *advised*, a policy has all first failures retried, which
    then work more often.
    """
    rates = {(tool, error): random.Random(f"{tool}{error}").betavariate(1, 4) for tool in range(8) for error in ERRORS}
    rng = random.Random(seed)
    for _ in range(count):
        (tool, error), rate = rng.choice(list(rates.items()))
        hopeful = rng.random() < 0.4
        source = "explore" if rng.random() < explored else "agent"
        place = rng.randrange(2)
        if advised and not place:
            source, rate = "policy", min(0.9, 2 * rate + 0.3)
        if source == "agent" and rng.random() > (0.7 if hopeful else 0.1):
            continue
        context = CONTEXTS[error][place]
        action = action_of(SPEC, context, rng.choice(SPEC.delays_ms), between=False)
        worked = rng.random() < (min(0.95, rate * 1.9) if hopeful else rate * 0.4)
        yield Cell(UNDATED, UNDATED, f"t{tool}", error, context.code, action, source, 1, worked, 0, 0, 0, 0, 0)


def fitted(cells: Sequence[Cell]) -> RetryModel:
    return candidate(SPEC, cells, (*TERMS, *RICH)).model


def lost(cells: Sequence[Cell], p: Callable[[Cell], float]) -> float:
    """
    Log loss per retry.
    """
    total = sum(cell.s * math.log(p(cell)) + (cell.n - cell.s) * math.log(1 - p(cell)) for cell in cells)
    return -total / sum(cell.n for cell in cells)


def test_one_retry_in_a_hundred_made_for_no_reason_shows_what_the_agents_own_hide() -> None:
    judged = merged(failures(60_000, 1.0, seed=1))

    def of(model: RetryModel, source: str) -> float:
        return lost(
            judged, lambda cell: model.probability(cell.tool, cell.error_type, cell.context, cell.action, source)
        )

    logged = merged(failures(100_000, 0.01, seed=2))
    best = of(fitted(merged(failures(100_000, 1.0, seed=3))), "explore")
    blind = of(fitted([cell._replace(source="agent") for cell in logged]), "agent")
    served = of(fitted(logged), "explore")
    assert blind - best > 0.03
    assert (blind - served) / (blind - best) > 0.8


def test_what_exploring_shows_of_the_agents_own_is_not_held_against_what_a_policy_advised() -> None:
    model = fitted(merged(failures(100_000, 0.01, seed=6, advised=True)))
    assert {key.rsplit("|", 1)[-1] for term in model.terms if "source" in term.on for key in term.weights} == {"agent"}
    judged = [cell for cell in merged(failures(60_000, 0.0, seed=7, advised=True)) if cell.source == "policy"]
    n, worked = sum(cell.n for cell in judged), sum(cell.s for cell in judged)
    said = sum(cell.n * model.probability(cell.tool, cell.error_type, cell.context, cell.action) for cell in judged)
    assert abs(said - worked) / n < 0.02


def test_without_any_such_the_agents_own_are_all_there_is_to_go_by() -> None:
    logged = merged(failures(30_000, 0.0, seed=4))
    model = fitted(logged)
    assert not any("source" in term.on for term in model.terms)
    n = sum(cell.n for cell in logged)
    said = sum(cell.n * model.probability(cell.tool, cell.error_type, cell.context, cell.action) for cell in logged)
    # The shipped beliefs of other kinds of failure do not draw what is served away from what was seen.
    assert abs(said - sum(cell.s for cell in logged)) / n < 0.003


def test_a_handful_of_retries_to_explore_is_no_reason_to_doubt_all_others() -> None:
    few = [cell._replace(n=1.0, s=0.0) for cell in merged(failures(4_000, 1.0, seed=5))[:20]]
    model = fitted([*merged(failures(30_000, 0.0, seed=4)), *few])
    assert not any("source" in term.on for term in model.terms)
