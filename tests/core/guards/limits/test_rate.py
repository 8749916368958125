"""
Calls spaced out.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Rate, Rule
from guardrails.core.guards.base import TOOLS, Facts
from guardrails.core.guards.rate import gcra
from guardrails.core.state import SessionState
from guardrails.core.values.types import ToolCall
from tests.core.guards.calls import admitted, make, ok, said
from tests.tables import table


NOW = 1_800_000_000_000


def test_a4_a_call_that_comes_too_soon_is_refused_with_the_exact_wait(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=3))
    assert admitted(session, 3) == 3
    early = session.call("t", {"n": 3}, ok)
    told = ("denied", "rate.max_calls_per_second", True, 334)
    assert said(early, "status", "code", "retryable", "retry_after_ms") == told
    assert not session.exhausted
    clock.advance(0.335)
    assert [session.call("t", {"n": n}, ok).ok for n in (3, 4)] == [True, False]


def test_of_two_caps_the_longer_wait_is_told(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=2, max_calls_per_minute=2))
    assert admitted(session, 2) == 2
    assert said(session.call("t", {}, ok), "code", "retry_after_ms") == ("rate.max_calls_per_minute", 30_000)


def test_per_tool_rates_by_glob_count_each_tool_by_itself(clock: Any) -> None:
    rules = [Rule(match="search_*", guards={"rate": {"max_calls_per_second": 1}})]
    session = make(clock, Rate(max_calls_per_second=50), rules=rules)
    assert [admitted(session, 5, tool=tool) for tool in ("search_web", "search_mail", "read")] == [1, 1, 5]
    assert session.call("search_web", {}, ok).code == "tools.rate.max_calls_per_second"


def test_a_clock_that_goes_back_never_lets_more_through(clock: Any) -> None:
    session = make(clock, Rate(max_calls_per_second=2))
    assert admitted(session, 10, lambda *_: clock.advance(-100)) == 2


@given(
    limit=st.integers(1, 50),
    period=st.sampled_from([1_000, 60_000]),
    gaps=st.lists(st.integers(0, 2_000), min_size=1, max_size=80),
)
def test_any_window_of_one_period_holds_at_most_two_limits_and_waits_are_exact(
    limit: int, period: int, gaps: list[int]
) -> None:
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


@table("limit", [1, 3, 7, 1_000, 20_000_000])
def test_a_full_burst_and_not_one_more_at_one_instant(limit: int) -> None:
    meter, wait = gcra(0, NOW, limit, 60_000, limit)
    assert wait == 0 < gcra(meter, NOW, limit, 60_000)[1]


def test_a_level_that_was_kept_under_another_limit_begins_anew() -> None:
    assert gcra(NOW * 600, NOW, 5, 60_000) == (NOW * 5 + 60_000, 0)
    assert gcra(NOW * 600 + 1, NOW, 600, 60_000) == (NOW * 600 + 60_001, 0)


def test_more_tools_than_there_is_room_for_share_one_level() -> None:
    rate, state, mine = Rate(max_calls_per_minute=1, per_tool=True), SessionState(), None
    for number in range(TOOLS + 3):
        mine = rate.admit(ToolCall(f"t{number}", {}, "1", None, number), state, mine, Facts(NOW))
    assert len(mine or ()) == TOOLS + 1
    assert rate.check(ToolCall("another", {}, "1", None, 7), state, mine, Facts(NOW)) is not None
