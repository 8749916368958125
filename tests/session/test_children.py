"""
Sessions that reserve from another, and what a family of them shares.
"""

from typing import Any

import pytest

from guardrails import Budget, Growth, MemorySink, MemoryStore, Policy, Rate, Success
from guardrails.core.chain import Rule
from guardrails.errors import SessionError
from tests.session.conftest import ok, replays
from tests.tables import table


def make(clock: Any, *guards: Any) -> Any:
    return Policy(guards).session("s", clock=clock)


def calls(session: Any, count: int, execute: Any = ok) -> int:
    """
    How many of *count* calls ran.
    """
    return sum(session.call("t", {"n": number}, execute).ok for number in range(count))


def paid(usd: float, tokens: int | None = None) -> Any:
    return lambda *_: Success("ok", cost_usd=usd, tokens=tokens)


def test_children_that_run_at_once_each_have_a_share_of_what_is_left(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=10, max_tokens=101, max_elapsed=60))
    one, two = (parent.child(name, share=0.5) for name in "ab")
    assert one.ledger.progress == {"calls_used": 0, "calls_left": 5, "tokens_left": 51, "seconds_left": 60}
    assert two.ledger.progress == {"calls_used": 0, "calls_left": 3, "tokens_left": 25, "seconds_left": 60}
    assert parent.call("t", {}, ok).ok
    one.close()
    assert parent.ledger.progress["calls_left"] == 6


@table(("part", "said"), [
    *(({"share": share}, "`share` is above 0 and at most 1") for share in (0, -1, 1.5, float("nan"))),
    ({"max_calls": 4}, "asks for max_calls 4, 3 is left"), ({"max_cost_usd": 0.6}, r"asks for max_cost_usd \$0.60, \$0.50 is left"),
])  # fmt: skip
def test_a_part_that_is_none_or_more_than_is_left_is_an_error(part: Any, said: str, clock: Any) -> None:
    parent = make(clock, Budget(max_calls=3, max_cost_usd=0.5))
    with pytest.raises(SessionError, match=said):
        parent.child("c", **part)
    assert parent.ledger.progress["calls_left"] == 3
    calls(parent, 3)
    with pytest.raises(SessionError, match="exhausted"):
        parent.child("c")


@table("limit", ["max_calls", "max_turns"])
def test_nothing_is_spent_twice_by_a_parent_and_its_children(limit: str, clock: Any) -> None:
    whole: Any = {limit: 5}
    half: Any = {limit: 2}
    parent = make(clock, Budget(**whole))
    one, two = (parent.child(name, **half) for name in "ab")
    refused = set()

    def use(session: Any) -> int:
        admitted = 0
        for number in range(4):
            session.begin_turn()
            envelope = session.call("t", {"n": number}, ok)
            admitted += envelope.ok
            refused.add(envelope.code)
        return admitted

    assert [use(session) for session in (one, parent, two)] == [2, 1, 2]
    assert refused == {None, f"budget.{limit}"}
    for child in (one, two):
        child.close()
    assert parent.exhausted == f"budget.{limit}"


def test_sub_agents_beyond_their_number_or_depth_make_no_call(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=99, max_children=3, max_depth=2)]), MemorySink()
    parent = policy.session("s", clock=clock, records=sink)
    first = parent.child("a", share=0.5)
    deep = first.child("b", share=0.5).child("c", share=0.5)
    refused = deep.call("t", {}, ok)
    assert (refused.code, deep.exhausted, deep.tool_choice()) == ("budget.max_children", "budget.max_children", "none")
    first.close()
    assert parent.child("d", share=0.1).call("t", {}, ok).ok
    many = parent.child("e", share=0.1)
    assert many.call("t", {}, ok).code == many.exhausted == "budget.max_children"
    assert many.call("t", {}, ok).limit_message == "Sub-agent limit reached (3). Stopping tool loop."
    # One that is taken up again, perhaps in another process, is refused as before.
    assert parent.child("e", share=0.1, again=True).call("t", {"n": 1}, ok).code == "budget.max_children"
    many.close()
    assert parent.call("t", {"n": 2}, ok).ok
    replays(policy, sink)


def test_a_closed_child_runs_nothing_more_however_it_is_asked(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=5))
    child = parent.child("c", max_calls=3)
    calls(child, 1)
    child.close()
    child.close()
    assert child.call("t", {"n": 9}, ok).code == "session.closed"
    with pytest.raises(SessionError, match="closed"):
        child.extend(max_calls=5)
    with pytest.raises(SessionError, match="another name"):
        parent.child("c")
    assert parent.ledger.progress == {"calls_used": 1, "calls_left": 4}


@table("part", [{"max_calls": 2}, {"share": 0.5}, {"share": 0.2}])
def test_a_child_and_its_parent_replay_from_their_records(part: Any, clock: Any) -> None:
    sink, store, policy = MemorySink(), MemoryStore(), Policy([Budget(max_calls=5, max_elapsed=60)])
    parent = policy.session("s", store=store, records=sink, clock=clock)
    child = parent.child("c", **part)
    clock.advance(7)
    calls(child, 3)
    child.extend(max_calls=1)
    calls(child, 1)
    child.close()
    replays(policy, sink, store)
    replays(policy, sink, store, "s/c")


def test_what_closed_children_used_is_charged_to_their_parent_for_each_limit(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=20, max_turns=20, max_cost_usd=2, max_tokens=1_000))

    def spend(session: Any) -> None:
        for turn, count in enumerate((2, 1)):
            session.begin_turn(count)
            for number in range(count):
                session.call("t", {"n": (turn, number)}, paid(0.1, 20))
        session.charge(model="m", usage={"prompt_tokens": 10}, cost_usd=0)

    def used(session: Any) -> Any:
        return session.ledger.read(lambda state, _: (state.calls, state.turns, state.cost, state.tokens))

    once = (3, 2, 300_000, 70)
    spend(parent)
    for times, name in enumerate("ab", 2):
        with parent.child(name, max_calls=9) as child:
            spend(child)
            assert used(child) == once
            assert parent.ledger.progress["calls_left"] == 20 - 3 * (times - 1) - 9
        assert used(parent) == tuple(times * amount for amount in once)
    left = {"calls_left": 11, "turns_left": 14, "cost_left_usd": 1.1, "tokens_left": 790}
    assert parent.ledger.progress == {"calls_used": 9, **left}


@table("used", [0, 1])
def test_a_child_that_runs_is_taken_up_as_it_is(used: int, clock: Any) -> None:
    sink = MemorySink()
    parent = Policy([Budget(max_calls=8)]).session("s", clock=clock, records=sink)
    calls(parent.child("c", max_calls=4), used)
    events = len(sink.records)
    child = parent.child("c", max_calls=4, again=True)
    assert len(sink.records) == events
    assert child.ledger.progress == {"calls_used": used, "calls_left": 4 - used}


# Families


def test_a_child_takes_what_it_extends_from_its_parent_and_no_more_than_is_left(clock: Any) -> None:
    parent = make(clock, Budget(max_calls=50))
    child = parent.child("c", max_calls=5)
    child.extend(max_calls=10)
    assert [one.ledger.progress["calls_left"] for one in (child, parent)] == [15, 35]
    with pytest.raises(SessionError, match="asks for max_calls 100 more, 35 is left"):
        child.extend(max_calls=100)
    assert calls(child, 30) == 15
    child.close()
    assert parent.ledger.progress == {"calls_used": 15, "calls_left": 35}


def test_a_per_tool_budget_a_rate_and_a_growth_cap_hold_for_the_whole_family(clock: Any) -> None:
    rule = Rule(match=("pay_*",), declared={}, guards={"budget": {"max_calls": 2}})
    parent = Policy([Budget(max_calls=50)], rules=[rule]).session("p", clock=clock)
    ran = 0
    for n in range(5):
        with parent.child(f"c{n}", max_calls=3) as child, child.child("deeper", max_calls=1) as grandchild:
            ran += sum(one.call("pay_rent", {"n": n, "by": one.id}, ok).ok for one in (child, grandchild))
    assert ran + parent.call("pay_rent", {}, ok).ok == 2
    fast = make(clock, Rate(max_calls_per_second=3), Growth(max_requests_per_second=2))
    children = [fast.child(f"c{n}") for n in range(4)]
    assert sum(child.call("t", {}, ok).ok for child in children) == 3
    for child in children:
        child.request()
    assert fast.exhausted == children[0].exhausted == "growth.max_requests_per_second"
