"""
Calls spaced out.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Policy, Rate, Rule
from guardrails.core.guards.base import TOOLS, Facts
from guardrails.core.guards.rate import gcra
from guardrails.core.state import SessionState
from guardrails.core.values.types import ToolCall
from tests.tables import table


NOW = 1_800_000_000_000


def ok(*_: Any) -> str:
    return "ok"


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards, **settings).session("s", clock=clock)


def test_a4_a_call_that_comes_too_soon_is_refused_with_the_exact_wait(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=3))
    assert all(session.call("t", {"n": n}, ok).ok for n in range(3))
    early = session.call("t", {"n": 3}, ok)
    assert (early.status, early.code, early.retryable, early.retry_after_ms) == (
        "denied",
        "rate.max_calls_per_second",
        True,
        334,
    )
    assert not session.exhausted
    clock.advance(0.335)
    assert session.call("t", {"n": 3}, ok).ok
    assert not session.call("t", {"n": 4}, ok).ok


def test_of_two_caps_the_longer_wait_is_told(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=2, max_calls_per_minute=2))
    for number in range(2):
        session.call("t", {"n": number}, ok)
    assert session.call("t", {}, ok).code == "rate.max_calls_per_minute"
    assert session.call("t", {}, ok).retry_after_ms == 30_000


def test_per_tool_rates_by_glob_count_each_tool_by_itself(clock: Any) -> None:
    rules = [Rule(match=("search_*",), declared={}, guards={"rate": {"max_calls_per_second": 1}})]
    session = make(clock, Rate(max_calls_per_second=50), rules=rules)
    assert session.call("search_web", {"n": 1}, ok).ok
    assert session.call("search_web", {"n": 2}, ok).code == "tools.rate.max_calls_per_second"
    assert session.call("search_mail", {"n": 1}, ok).ok
    assert [session.call("read", {"n": n}, ok).ok for n in range(5)] == [True] * 5


def test_a_clock_that_goes_back_never_lets_more_through(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=2))
    admitted = 0
    for number in range(10):
        admitted += session.call("t", {"n": number}, ok).ok
        clock.advance(-100)
    assert admitted == 2


@given(
    limit=st.integers(1, 50),
    period=st.sampled_from([1_000, 60_000]),
    gaps=st.lists(st.integers(0, 2_000), min_size=1, max_size=80),
)
def test_any_window_of_one_period_holds_at_most_two_limits_and_waits_are_exact(
    limit: int, period: int, gaps: list[int]
) -> None:
    meter, now, admitted = 0, 1_800_000_000_000, []
    for gap in gaps:
        now += gap
        after, wait = gcra(meter, now, limit, period)
        if wait == 0:
            meter = after
            admitted.append(now)
        else:
            assert gcra(meter, now + wait, limit, period)[1] == 0
            assert gcra(meter, now + wait - 1, limit, period)[1] > 0
    for start in admitted:
        inside = [at for at in admitted if start <= at < start + period]
        assert len(inside) <= 2 * limit


@table("limit", [1, 3, 7, 1_000, 20_000_000])
def test_a_full_burst_and_not_one_more_at_one_instant(limit: int) -> None:
    now = 1_800_000_000_000
    meter, wait = gcra(0, now, limit, 60_000, limit)
    assert wait == 0
    assert gcra(meter, now, limit, 60_000)[1] > 0


def test_a_level_that_was_kept_under_another_limit_begins_anew() -> None:
    assert gcra(NOW * 600, NOW, 5, 60_000) == (NOW * 5 + 60_000, 0)
    assert gcra(NOW * 600 + 1, NOW, 600, 60_000) == (NOW * 600 + 60_001, 0)


def test_more_tools_than_there_is_room_for_share_one_level() -> None:
    rate = Rate(max_calls_per_minute=1, per_tool=True)
    state, mine = SessionState(), None
    for number in range(TOOLS + 3):
        mine = rate.admit(ToolCall(f"t{number}", {}, "1", None, number), state, mine, Facts(NOW))
    assert mine is not None
    assert len(mine) == TOOLS + 1
    assert rate.check(ToolCall("another", {}, "1", None, 7), state, mine, Facts(NOW)) is not None
