"""
What a session and its children share, and what happens to time.
"""

from typing import Any

import pytest

from guardrails import Budget, Growth, Policy, Rate, Rule, SessionError
from guardrails.sinks import MemorySink
from tests.replaying import replay


def ok(*_: Any) -> str:
    return "ok"


def test_a_child_takes_what_it_extends_from_its_parent_and_no_more_than_is_left(clock: Any) -> None:
    sink = MemorySink()
    policy = Policy([Budget(max_calls=50)])
    parent = policy.session("p", clock=clock, records=sink)
    child = parent.child("c", max_calls=5)
    child.extend(max_calls=10)
    assert child.ledger.progress["calls_left"] == 15
    assert parent.ledger.progress["calls_left"] == 35
    with pytest.raises(SessionError, match="asks for max_calls 100 more, 35 is left"):
        child.extend(max_calls=100)
    ran = sum(child.call("t", {"n": n}, ok).ok for n in range(30))
    child.close()
    assert (ran, parent.ledger.progress) == (15, {"calls_used": 15, "calls_left": 35})
    assert all(r.same for r in replay(policy.chain, [r for r in sink.records if r["session_id"] == "p"]))


def test_a_per_tool_budget_holds_for_the_whole_family(clock: Any) -> None:
    rule = Rule(match=("pay_*",), declared={}, guards={"budget": {"max_calls": 2}})
    parent = Policy([Budget(max_calls=50)], rules=[rule]).session("p", clock=clock)
    paid = 0
    for n in range(5):
        with parent.child(f"c{n}", max_calls=3) as child:
            paid += child.call("pay_rent", {"n": n}, ok).ok
            with child.child("deeper", max_calls=1) as grandchild:
                paid += grandchild.call("pay_rent", {"g": n}, ok).ok
    paid += parent.call("pay_rent", {}, ok).ok
    assert paid == 2


def test_a_rate_and_a_growth_cap_hold_for_the_whole_family(clock: Any) -> None:
    parent = Policy([Rate(max_calls_per_second=3), Growth(max_requests_per_second=2)]).session("p", clock=clock)
    children = [parent.child(f"c{n}") for n in range(4)]
    assert sum(child.call("t", {}, ok).ok for child in children) == 3
    for child in children:
        child.request()
    assert parent.exhausted == "growth.max_requests_per_second"
    assert children[0].exhausted == "growth.max_requests_per_second"


def test_a_clock_that_is_set_back_does_not_stop_honest_work_under_default(clock: Any) -> None:
    session = Policy.load("default").session("s", clock=clock)
    session.call("t", {"n": 0}, ok)
    clock.advance(-3_600)
    for n in range(100):
        clock.advance(3)
        session.request()
        session.charge(model="m", usage={"prompt_tokens": 100_000}, cost_usd=0, calls=1)
        assert session.call("t", {"n": n + 1}, ok).ok
    # The three seconds before the step was seen are lost; nothing else is.
    assert session.ledger.progress["seconds_left"] == 7 * 86_400 - 297
