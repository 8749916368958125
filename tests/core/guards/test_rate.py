"""
The bucket of `rate` and `growth`; what they let through is in `cases/`.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Growth, Policy
from guardrails.core.guards.rate import edges_of, gcra
from tests.tables import table


NOW = 1_800_000_000_000


@given(
    limit=st.integers(1, 50),
    period=st.sampled_from([1_000, 60_000]),
    gaps=st.lists(st.integers(0, 2_000), min_size=1, max_size=80),
)
def test_any_period_holds_at_most_two_limits_and_waits_are_exact(limit: int, period: int, gaps: list[int]) -> None:
    meter, now, starts = 0, NOW, []
    for gap in gaps:
        now += gap
        after, wait = gcra(meter, now, limit, period)
        if wait == 0:
            meter = after
            starts.append(now)
        else:
            assert gcra(meter, now + wait, limit, period)[1] == 0 < gcra(meter, now + wait - 1, limit, period)[1]
    for start in starts:
        assert sum(start <= at < start + period for at in starts) <= 2 * limit


def test_a_level_that_was_kept_under_another_limit_begins_anew() -> None:
    assert gcra(NOW * 600, NOW, 5, 60_000) == (NOW * 5 + 60_000, 0)
    assert gcra(NOW * 600 + 1, NOW, 600, 60_000) == (NOW * 600 + 60_001, 0)
    assert edges_of({"a": (5, 60_000)}, NOW) == [(("a",), (NOW + 60_000) * 5, NOW * 5)]


@table(("inputs", "ended"), [
    ([900, 1_900, 2_900], None), ([900, 1_901], True), ([9_000, 20, 10_000], None), ([9_000, 20, 10_001], True),
])  # fmt: skip
def test_a_context_that_grows_too_much_at_once_ends_the_session(clock: Any, inputs: list[int], ended: Any) -> None:
    session = Policy([Growth(max_context_growth=1_000)]).session("s", clock=clock)
    for size in inputs:
        session.charge(model="m", usage={"prompt_tokens": size}, cost_usd=0)
    assert session.exhausted == (ended and "growth.max_context_growth")
