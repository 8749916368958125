"""
Retries that all sessions make together, bounded.
"""

import json

from collections.abc import Callable
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Duplicates, Envelope, Guard, MemorySink, Policy, Retryable, RetryBudget
from guardrails.core.guards.base import Facts
from guardrails.core.guards.retry_budget import TOKEN
from guardrails.core.packing import pack, unpack
from tests.replaying import replay


Session = Any


def ok(*_: Any) -> str:
    return "ok"


def down(*_: Any) -> str:
    raise ConnectionError("no route")


def wrong(*_: Any) -> str:
    raise FileNotFoundError("no such hotel")


@pytest.fixture
def tenant(clock: Any) -> Callable[..., list[Session]]:
    """
    Sessions of one tenant, of a policy with a retry budget of these settings.
    """

    def made(count: int, *guards: Guard, records: MemorySink | None = None, **budget: Any) -> list[Session]:
        policy = Policy(
            guards or [Retryable(max_same_error=99)], scopes={"tenant": [RetryBudget(**{"min_per_minute": 0} | budget)]}
        )
        return [
            policy.session(f"s{number}", clock=clock, scopes={"tenant": "acme"}, records=records)
            for number in range(count)
        ]

    return made


def test_all_sessions_of_a_scope_together_have_as_many_retries_as_the_bucket_holds(tenant: Any) -> None:
    said = [session.call("search", {"q": 1}, down) for session in tenant(50, burst=10)]
    assert [one.retryable for one in said] == [True] * 10 + [False] * 40
    last = json.loads(said[-1].to_json())
    assert (last["status"], last["code"], last["error_type"]) == ("error", "tenant.retry_budget.empty", "connection")
    assert last["next_action"] == "give_up"
    assert "retry budget is used up" in last["next_action_hint"]
    assert "Wait" not in last["next_action_hint"]
    assert not {"retry_after_ms", "max_retries_remaining"} & last.keys()


def test_each_success_gives_back_its_part_of_a_retry(tenant: Any) -> None:
    one, other = tenant(2, burst=2, ratio=0.5)
    assert [one.call("search", {"q": n}, down).retryable for n in range(3)] == [True, True, False]
    other.call("search", {"q": 10}, ok)
    assert one.call("search", {"q": 4}, down).retryable is False
    other.call("search", {"q": 11}, ok)
    assert one.call("search", {"q": 5}, down).retryable is True


def test_each_tool_has_a_bucket_of_its_own(tenant: Any) -> None:
    [session] = tenant(1, burst=1)
    assert [session.call("search", {"q": n}, down).retryable for n in range(2)] == [True, False]
    assert session.call("weather", {"q": 1}, down).retryable is True


def test_time_gives_back_a_few_whoever_calls_seldom(tenant: Any, clock: Any) -> None:
    [session] = tenant(1, burst=2, min_per_minute=1)
    assert [session.call("search", {"q": n}, down).retryable for n in range(3)] == [True, True, False]
    clock.advance(61)
    assert [session.call("search", {"q": n}, down).retryable for n in range(10, 12)] == [True, False]
    clock.advance(3600)
    assert [session.call("search", {"q": n}, down).retryable for n in range(20, 23)] == [True, True, False]


def test_a_failure_that_lies_in_the_call_takes_nothing_and_is_told_as_ever(tenant: Any) -> None:
    [session] = tenant(1, burst=1)
    for number in range(5):
        assert session.call("search", {"q": number}, wrong).code is None
    assert session.call("search", {"q": 9}, down).retryable is True
    late = session.call("search", {"q": 6}, wrong)
    assert (late.code, late.next_action) == (None, "fix_arguments")


def test_a_call_with_other_arguments_is_no_retry(tenant: Any) -> None:
    [session] = tenant(1, burst=1)
    assert session.call("search", {"q": 1}, down).retryable is True
    assert session.call("search", {"q": 2}, down).retryable is False
    assert session.call("search", {"q": 3}, ok).ok


def test_a_retry_that_was_advised_has_its_token_already(tenant: Any, clock: Any) -> None:
    [session] = tenant(1, burst=2, min_per_minute=0)
    assert session.call("search", {"q": 1}, down).retryable is True
    clock.advance(2)
    assert session.call("search", {"q": 1}, down).retryable is True
    assert session.call("search", {"q": 2}, down).retryable is False


def test_a_retry_against_advice_is_let_through_and_takes_what_is_there(tenant: Any, clock: Any) -> None:
    one, other = tenant(2, Retryable(), Duplicates(), burst=1, ratio=1.0)
    one.call("search", {"q": 1}, down)
    assert one.call("search", {"q": 2}, down).retryable is False
    other.call("search", {"q": 3}, ok)
    clock.advance(1)
    # The token that the success gave back is taken by this retry, though nobody advised it.
    assert one.call("search", {"q": 2}, down).code == "tenant.retry_budget.empty"


def test_the_same_tests_run_again_are_no_retry(tenant: Any) -> None:
    def red(*_: Any) -> str:
        raise RuntimeError("2 failed")

    [session] = tenant(1, burst=1)
    session.call("search", {"q": 1}, down)
    for _ in range(4):
        assert session.call("run_tests", {}, red).status == "error"
        session.call("edit", {"file": "a.py"}, ok)


def test_a_tool_that_claims_its_own_retry_takes_a_token_or_is_told_no(clock: Any) -> None:
    def busy(*_: Any) -> Envelope:
        return Envelope.error(
            "rate_limit", "busy", retryable=True, next_action="retry", next_action_hint="Try again in 5 s."
        )

    session = Policy([RetryBudget(burst=1, min_per_minute=0)]).session("s", clock=clock)
    first, second = (session.call("search", {"q": number}, busy) for number in range(2))
    assert (first.retryable, first.next_action_hint) == (True, "Try again in 5 s.")
    assert (second.retryable, second.next_action) == (False, "give_up")
    assert "Try again in 5 s." not in (second.next_action_hint or "")


def test_a_family_shares_the_bucket_of_its_root(clock: Any) -> None:
    root = Policy([RetryBudget(burst=1, min_per_minute=0), Retryable()]).session("s", clock=clock)
    child = root.child("a")
    assert child.call("search", {"q": 1}, down).retryable is True
    assert root.call("search", {"q": 1}, down).retryable is False


def test_more_tools_than_there_is_room_for_share_a_bucket(clock: Any) -> None:
    session = Policy([RetryBudget(burst=1, min_per_minute=0), Retryable(max_same_error=9)]).session("s", clock=clock)
    said = [session.call(f"t{number}", {}, down).retryable for number in range(72)]
    assert said == [True] * 65 + [False] * 7


def test_the_records_of_all_sessions_tell_why_and_replay_exactly(tenant: Any, clock: Any) -> None:
    sink = MemorySink()
    sessions = tenant(6, burst=2, ratio=0.5, records=sink)
    for turn in range(4):
        for number, session in enumerate(sessions):
            session.call("search", {"q": turn % 2}, ok if (turn + number) % 3 == 0 else down)
        clock.advance(1.5)
    sink.close()
    settled = [record for record in sink.records if record["event"] == "settle"]
    assert {record.get("no_retry") for record in settled} == {None, "tenant.retry_budget.empty"}
    assert all(record["retryable"] is False for record in settled if "no_retry" in record)
    policy = sessions[0].ledger.policy
    again = replay(policy.chain, sink.records, scopes=policy.scopes)
    live = [record["code"] for record in sink.records if record["event"] == "call"]
    assert [line.made["code"] for line in again] == live


STEPS = st.lists(st.tuples(st.sampled_from(["fail", "ok", "wait", "again"]), st.integers(0, 3)), max_size=60)
BUDGETS = st.builds(
    RetryBudget, burst=st.integers(1, 4), ratio=st.sampled_from([0.1, 0.3, 1.0]), min_per_minute=st.integers(0, 5)
)


@settings(max_examples=150, deadline=None)
@given(BUDGETS, STEPS)
def test_a_bucket_is_never_below_0_nor_above_its_size_and_retries_are_paid_for(
    budget: RetryBudget, steps: list[tuple[str, int]]
) -> None:
    now = [1_800_000_000.0]
    policy = Policy([Retryable(max_retries=9, max_same_error=99)], scopes={"tenant": [budget]})
    sessions = [policy.session(f"s{n}", clock=lambda: now[0], scopes={"tenant": "acme"}) for n in range(4)]
    store = policy.store if hasattr(policy, "store") else policy._store
    advised = successes = 0
    for number, (what, who) in enumerate(steps):
        if what == "wait":
            now[0] += 7
            continue
        arguments = {"q": 0} if what == "again" else {"q": number}
        envelope = sessions[who].call("search", arguments, ok if what == "ok" else down)
        successes += envelope.ok
        advised += envelope.status == "error" and envelope.retryable is True
        state = store.update(["/tenant/acme"], lambda states: states[0])
        mine = state.own.get("retry_budget")
        assert 0 <= budget._lacks("search", mine, Facts(state.now_ms)) <= budget.burst * TOKEN
        assert unpack(pack(state)).own == state.own
    minutes = (now[0] - 1_800_000_000.0) / 60
    assert advised <= budget.burst + successes * budget.ratio + minutes * budget.min_per_minute + 1e-9


def call() -> Any:
    from guardrails import ToolCall

    return ToolCall("t", {}, "1", None, None)
