"""
The model on a simulated world small enough for every run; `python -m benchmarks.retries.targets` has the whole.
"""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.retries.dataset import Failure
from benchmarks.retries.evaluate import STAKES, Trial, unseen
from benchmarks.retries.metrics import decision_value
from benchmarks.retries.models import LINEUP, action, by_botocore, by_google, by_urllib3, regression, wait_of
from benchmarks.retries.sessions import World
from guardrails.core.retries.decision import Stakes
from guardrails.offline.learning.fit import RICH, TERMS
from guardrails.policy.feature_file import shipped_spec


@pytest.fixture(scope="module")
def trial() -> Trial:
    """
    Another world than those that edges and terms were chosen on.
    """
    return Trial(shipped_spec(), World(11), labelled=25_000, tested=8_000)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a11_a_tool_never_seen_is_judged_better_than_by_flags(trial: Trial) -> None:
    lost = unseen(trial)
    assert lost["logistic regression"] < lost["static transient flags"] - 0.1
    assert lost["logistic regression, tool known"] < lost["logistic regression"]


def test_no_model_is_asked_about_a_wait_that_a_header_forbids(trial: Trial) -> None:
    asked = [row for row in trial.test if row.context.retry_after_ms]
    assert asked
    for row in asked[:200]:
        after = row.context.retry_after_ms or 0
        assert wait_of(row, 0) == after
        waited = trial.spec.decode_action(action(trial.spec, row, 0))["waited"]
        assert waited == trial.spec.by_name["waited"].level(0)
    assert (np.rint(trial.waits_s[:, 0] * 1000) == [row.context.retry_after_ms or 0 for row in trial.test]).all()


def test_the_value_of_a_decision_is_that_of_what_is_served() -> None:
    predicted = np.array([[0.5, 0.9, 0.95], [0.05, 0.06, 0.07], [0.93, 0.94, 0.95]])
    truth = np.array([[0.4, 0.8, 0.9], [1.0, 1.0, 1.0], [0.5, 0.6, 0.7]])
    waits = np.array([[0.0, 10.0, 60.0]] * 3)
    # The best by the prediction: 10 s, none, at once; each costs 0.1 and 0.002 a second.
    best = decision_value(predicted, truth, waits, 0.1, 0.002)
    assert best == pytest.approx(((0.8 - 0.12) + 0 + (0.5 - 0.1)) / 3)
    dear = decision_value(predicted, truth, waits, 0.1, 0.0)
    assert dear == pytest.approx(((0.9 - 0.1) + 0 + (0.7 - 0.1)) / 3)
    served = decision_value(predicted, truth, waits, 0.1, 0.0, within=0.1)
    assert served == pytest.approx(((0.8 - 0.1) + 0 + (0.5 - 0.1)) / 3)


@pytest.mark.parametrize(
    ("flags", "retried"),
    [
        (by_botocore, {"rate_limit", "timeout", "connection", "unavailable", "server_error"}),
        (by_google, {"rate_limit", "connection", "unavailable", "server_error"}),
        (by_urllib3, {"timeout", "connection"}),
    ],
)
def test_each_library_has_flags_of_its_own(trial: Trial, flags: Callable[[Failure], bool], retried: set[str]) -> None:
    seen = {row.error for row in trial.test}
    bare = [row for row in trial.test if row.context.retry_after_ms is None]
    assert {row.error for row in bare if flags(row)} == retried & seen
    assert all(flags(row) for row in trial.test if row.error == "rate_limit" and row.context.retry_after_ms)
