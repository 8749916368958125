"""
What is believed before there are records, and the model that is made of it.
"""

import pytest

from guardrails.core.retries.context import Settled, context_of
from guardrails.core.retries.decision import TRANSIENT, Decider, Stakes
from guardrails.core.retries.prior import BELIEFS, RETRIES, prior_cells, prior_corrections
from guardrails.core.values.types import ERROR_TYPES, ErrorType
from guardrails.policy.models import cold_model, shipped_spec
from tests.tables import table


SPEC = shipped_spec()


def test_every_error_type_has_its_beliefs_and_counts_alike() -> None:
    assert set(BELIEFS) == set(ERROR_TYPES)
    for error in ERROR_TYPES:
        cells = [cell for cell in prior_cells(SPEC) if cell.error == error]
        assert sum(cell.n for cell in cells) == pytest.approx(RETRIES)
        assert all(0 < cell.s < cell.n for cell in cells)


def test_a_correction_is_believed_where_arguments_can_be_corrected() -> None:
    assert "validation" in prior_corrections()
    assert not TRANSIENT & set(prior_corrections())


@table("error", ERROR_TYPES)
def test_a3_a_new_tool_is_served_by_the_beliefs_through_the_same_decisions(error: ErrorType) -> None:
    decider = Decider(cold_model(), Stakes())
    context = context_of(SPEC, [], Settled("new", 1, error, 0), 60_000, None)
    made = decider.advise("new", error, context, left=3)
    assert made.retryable is (error in TRANSIENT)
    declared = decider.advise("new", error, context, left=3, declared=True)
    refused = decider.advise("new", error, context, left=3, declared=False)
    assert refused.p < made.p < declared.p
    assert not refused.retryable


def test_a_header_that_is_waited_for_is_believed() -> None:
    decider = Decider(cold_model(), Stakes())
    for header in (1_000, 7_000, 30_000):
        context = context_of(SPEC, [], Settled("new", 1, "rate_limit", 0), 60_000, header)
        made = decider.advise("new", "rate_limit", context, left=3)
        assert made.retryable
        assert made.wait_ms == header
        assert made.p > 0.5
