"""
The model on a simulated world small enough for every run.
"""

import pytest

from benchmarks.retries.models import flags, regression
from benchmarks.retries.sessions import World
from benchmarks.retries.trial import STAKES, Trial, unseen
from guardrails.core.retries.serving import Stakes
from tests.tables import table


@pytest.fixture(scope="module")
def trial() -> Trial:
    """
    Another world than those that levels and crosses were chosen on.
    """
    return Trial(World(13), labelled=30_000, tested=8_000)


@pytest.mark.system
@table("retries, least", [(100, 0.5), (1_000, 0.78), (30_000, 0.92)])
def test_a10_more_retries_teach_more(trial: Trial, retries: int, least: float) -> None:
    # Two standard errors of so few test failures are 0.01.
    assert trial.skill(regression(trial.training[:retries])(trial.test)) > least


@pytest.mark.system
def test_a10_the_model_is_near_the_limit_where_flags_are_near_the_base_rate(trial: Trial) -> None:
    assert 0.0 < trial.skill(flags(trial.training)(trial.test)) < 0.2
    place = STAKES.index((Stakes().retry_cost, Stakes().wait_cost_per_s))
    predicted = trial.predicted(regression(trial.training))
    assert trial.shares(predicted)[place] > 88
    assert trial.shares(predicted, Stakes().within)[place] > 87
    assert trial.shares(trial.flags())[place] < 70
    assert trial.shares(trial.truth)[place] == pytest.approx(100)


@pytest.mark.system
def test_a11_a_tool_never_seen_is_judged_better_than_by_flags(trial: Trial) -> None:
    lost = unseen(trial)
    assert lost["logistic regression"] < lost["static transient flags"] - 0.1
    assert lost["logistic regression, tool known"] < lost["logistic regression"]
