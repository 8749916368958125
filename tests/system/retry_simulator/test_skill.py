"""
The model on a simulated world small enough for every run.
"""

import pytest

from benchmarks.retries.models import LINEUP, regression
from benchmarks.retries.sessions import World
from benchmarks.retries.trial import STAKES, Trial, unseen
from guardrails.core.retries.decision import Stakes
from guardrails.offline.learning.fit import RICH, TERMS
from guardrails.policy.models import shipped_spec


@pytest.fixture(scope="module")
def trial() -> Trial:
    """
    Another world than those that edges and terms were chosen on.
    """
    return Trial(shipped_spec(), World(11), labelled=25_000, tested=8_000)


@pytest.mark.system
def test_a10_the_model_is_near_the_limit_where_flags_are_near_the_base_rate(trial: Trial) -> None:
    terms, rich = (regression(on)(trial.spec, trial.training) for on in (TERMS, (*TERMS, *RICH)))
    flags = LINEUP["static transient flags"](trial.spec, trial.training)
    # 0.93 on each of four worlds; two standard errors of so few test failures are 0.01.
    assert trial.skill(rich(trial.test)) > 0.915
    assert trial.skill(terms(trial.test)) > 0.91
    assert 0.0 < trial.skill(flags(trial.test)) < 0.2
    place = STAKES.index((Stakes().retry_cost, Stakes().wait_cost_per_s))
    predicted = trial.predicted(rich)
    assert trial.shares(predicted)[place] > 91
    assert trial.shares(predicted, Stakes().within)[place] > 92
    assert trial.shares(trial.flags())[place] < 70
    assert trial.shares(trial.truth)[place] == pytest.approx(100)


def test_few_failures_teach_fine_terms_no_nonsense(trial: Trial) -> None:
    few = trial.training[:1_500]
    coarse, fine = (trial.skill(regression(on)(trial.spec, few)(trial.test)) for on in (TERMS, (*TERMS, *RICH)))
    assert coarse > 0.8
    assert fine > coarse - 0.01


@pytest.mark.system
def test_a11_a_tool_never_seen_is_judged_better_than_by_flags(trial: Trial) -> None:
    lost = unseen(trial)
    assert lost["logistic regression"] < lost["static transient flags"] - 0.1
    assert lost["logistic regression, tool known"] < lost["logistic regression"]
