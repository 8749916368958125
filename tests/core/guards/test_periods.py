"""
Budgets for each day, week or month, and the warning before a limit.
"""

from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Growth, Policy, PolicyError, Success, Tool
from guardrails.core.values.units import Period
from guardrails.sinks import MemorySink
from tests.stores.mapped import MappedStore
from tests.tables import table


HOUR, DAY = 3_600.0, 86_400.0
START = 1_800_000_000.0
"""2027-01-15, a Friday, 08:00 UTC."""


def pays(usd: float) -> Any:
    return lambda *_: Success("ok", cost_usd=usd)


def spent(session: Any, usd: float, times: int) -> int:
    """
    How many of so many calls ran.
    """
    return sum(session.call("t", {"n": session.ledger.progress, "k": n}, pays(usd)).ok for n in range(times))


@table(
    "per, zone, gaps, ran",
    [
        ("day", "UTC", [0, 16 * HOUR - 1, 1, DAY], [2, 0, 2, 2]),
        ("day", "America/New_York", [0, 16 * HOUR, 5 * HOUR], [2, 0, 2]),
        ("week", "UTC", [0, 2 * DAY, DAY], [2, 0, 2]),
        ("month", "Europe/Berlin", [0, 16 * DAY, 15 * HOUR], [2, 0, 2]),
    ],
)
@pytest.mark.parametrize("scope", ["", "user"])
def test_a_budget_begins_anew_with_each_period(
    clock: Any, scope: str, per: Any, zone: str, gaps: Any, ran: Any
) -> None:
    clock.now = START
    budget = Budget(max_cost_usd=2, per=per, zone=zone)
    policy = Policy([] if scope else [budget], scopes={"user": [budget]} if scope else {})
    session = policy.session("s", clock=clock, scopes={"user": "u"} if scope else {}, store=MappedStore({}))
    found = list[int]()
    for gap in gaps:
        clock.advance(gap)
        found.append(spent(session, 1.0, 3))
        assert session.exhausted == (f"{scope}.budget.max_cost_usd".lstrip("."))
        assert session.tool_choice("auto") == "none"
    assert found == ran


def test_the_denial_names_the_period_and_its_figures(clock: Any) -> None:
    session = Policy([Budget(max_calls=2, per="day", zone="Europe/Berlin")]).session("s", clock=clock)
    for _ in range(2):
        spent(session, 0, 3)
        refused = session.call("t", {}, pays(0))
        assert refused.limit_message == "Tool call limit reached (2 a day, Europe/Berlin). Stopping tool loop."
        clock.advance(DAY)


def test_what_is_held_over_midnight_counts_for_the_new_day(clock: Any) -> None:
    policy = Policy([Budget(max_cost_usd=1, per="day")], tools=[Tool(name="t", cost_usd=0.6, timeout=2 * DAY)])
    session = policy.session("s", clock=clock)
    held = session.decide("t", {"n": 1}, claim=True)
    clock.advance(DAY)
    assert session.call("t", {"n": 2}, pays(0.1)).code == "budget.max_cost_usd"
    session.complete(held, Success("ok", cost_usd=0.2))
    assert session.call("t", {"n": 3}, pays(0.1)).ok


def test_model_responses_and_raised_limits_count_in_their_period(clock: Any) -> None:
    session = Policy([Budget(max_tokens=100, per="day")]).session("s", clock=clock)
    for _ in range(2):
        session.charge(model="m", usage={"prompt_tokens": 100}, cost_usd=0)
        assert session.exhausted == "budget.max_tokens"
        clock.advance(DAY)
        assert session.exhausted is None
    session.charge(model="m", usage={"prompt_tokens": 100}, cost_usd=0)
    session.extend(max_tokens=50)
    assert (session.exhausted, session.ledger.progress["tokens_left"]) == (None, 50)


@given(
    st.lists(st.tuples(st.sampled_from([0, 3_600, 40_000, 90_000]), st.sampled_from([0.25, 0.5, 1.0])), max_size=30),
    st.sampled_from(["", "user"]),
)
def test_no_day_is_over_its_budget(story: Any, scope: str) -> None:
    now, days = [START], dict[int, float]()
    budget = Budget(max_cost_usd=2, per="day")
    tools = [Tool(name=f"t{cost}", cost_usd=cost) for cost in (0.25, 0.5, 1.0)]
    policy = Policy([] if scope else [budget], scopes={"user": [budget]} if scope else {}, tools=tools)
    session = policy.session("s", clock=lambda: now[0], scopes={"user": "u"} if scope else {})
    for number, (gap, cost) in enumerate(story):
        now[0] += gap
        day = int(now[0] // DAY)
        fits = days.get(day, 0) + cost <= 2
        assert session.call(f"t{cost}", {"n": number}, lambda *_: "ok").ok == fits
        days[day] = days.get(day, 0) + cost * fits


def test_a_limit_that_is_near_is_told_once_to_the_model_and_to_the_operator(clock: Any) -> None:
    heard, records = list[Any](), MemorySink()
    budget = Budget(max_calls=10, max_cost_usd=1, warn_at=0.8)
    policy = Policy([budget], scopes={"user": [Budget(max_calls=12, warn_at=0.5, per="day")]})
    session = policy.session(
        "s", clock=clock, scopes={"user": "u"}, records=records, on_warning=lambda *told: heard.append(told)
    )
    hints = [session.call("t", {"n": n}, pays(0.01)).next_action_hint for n in range(9)]
    own, users = (
        "Left: 2 calls of 10. Do what matters most first.",
        "Left: 6 calls of 12 a day, UTC. Do what matters most first.",
    )
    assert hints == [None, None, None, None, None, users, None, own, None]
    assert heard == [("user.budget.warning", users), ("budget.warning", own)]
    assert [line["warnings"] for line in records.records if "warnings" in line] == [[list(one)] for one in heard]


def test_an_operator_that_fails_costs_no_call(clock: Any) -> None:
    session = Policy([Budget(max_calls=2, warn_at=0.5)]).session("s", clock=clock, on_warning=lambda *_: 1 / 0)
    assert session.call("t", {}, pays(0)).ok


def test_a_period_of_a_zone_that_changes_its_time_begins_at_its_own_midnight() -> None:
    # In Berlin the clocks go back on 2026-10-25, a day of 25 hours from 22:00 UTC on.
    period, begins = Period("day", "Europe/Berlin"), 1_792_879_200_000
    later = [period.since(begins + hours * 3_600_000) - begins for hours in (0, 12, 24, 25)]
    assert later == [0, 0, 0, 25 * 3_600_000]
    # In Havana midnight is told twice on 2024-11-03: at 04:00 and 05:00 UTC.
    period, begins = Period("day", "America/Havana"), 1_730_606_400_000
    assert [period.since(begins + minutes * 60_000) - begins for minutes in (0, 30, 60, 90, 120)] == [0] * 5


@table(
    "growth, costs, ended",
    [
        (Growth(max_usd_per_minute=1), [0.5, 0.5], None),
        (Growth(max_usd_per_minute=1), [0.5, 0.6], "growth.max_usd_per_minute"),
        (Growth(max_usd_per_minute=1), [0.9, 60, 0.9, 60, 0.9], None),
    ],
)
@pytest.mark.parametrize("by", ["responses", "calls"])
def test_a_session_that_spends_too_fast_is_ended(clock: Any, by: str, growth: Growth, costs: Any, ended: Any) -> None:
    session = Policy([growth]).session("s", clock=clock)
    for number, cost in enumerate(costs):
        if cost == 60:
            clock.advance(cost)
        elif by == "calls":
            session.call("t", {"n": number}, pays(cost))
        else:
            session.charge(model="m", usage={"prompt_tokens": 1}, cost_usd=cost)
    assert session.call("t", {"n": "last"}, pays(0)).code == session.exhausted == ended
    session.extend()
    assert session.call("t", {"n": "more"}, pays(0)).ok


@table(
    "inputs, ended",
    [([900, 1_900, 2_900], None), ([900, 1_901], True), ([9_000, 20, 10_000], None), ([9_000, 20, 10_001], True)],
)
def test_a_context_that_grows_too_much_at_once_ends_the_session(clock: Any, inputs: list[int], ended: Any) -> None:
    session = Policy([Growth(max_context_growth=1_000)]).session("s", clock=clock)
    for size in inputs:
        session.charge(model="m", usage={"prompt_tokens": size}, cost_usd=0)
    assert session.exhausted == (ended and "growth.max_context_growth")


def test_a_zone_that_is_none_is_a_mistake() -> None:
    with pytest.raises(PolicyError, match="no time zone `Mars`"):
        Policy([Budget(max_calls=1, per="day", zone="Mars")])
