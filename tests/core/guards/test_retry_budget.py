"""
Retries that all sessions make together, bounded.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Envelope, MemorySink, Policy, Retryable, RetryBudget
from guardrails.core.guards.base import Facts
from guardrails.core.guards.retry_budget import TOKEN
from guardrails.core.packing import pack, unpack
from tests.core.guards.calls import gives, make, ok, said
from tests.replaying import replay


DOWN = gives(ConnectionError("no route"))
ONE = RetryBudget(burst=1, min_per_minute=0)


def test_all_sessions_of_a_scope_together_have_as_many_retries_as_the_bucket_holds(clock: Any) -> None:
    sink, scopes = MemorySink(), {"tenant": [RetryBudget(burst=10, min_per_minute=0)]}
    policy = Policy([Retryable(max_same_error=99)], scopes=scopes)
    sessions = [policy.session(f"s{n}", clock=clock, scopes={"tenant": "acme"}, records=sink) for n in range(50)]
    envelopes = [session.call("search", {"q": 1}, DOWN) for session in sessions]
    assert [one.retryable for one in envelopes] == [True] * 10 + [False] * 40
    reasons = [record.get("no_retry") for record in sink.records if record["event"] == "settle"]
    assert reasons == [None] * 10 + ["tenant.retry_budget.empty"] * 40
    assert all(again.same for again in replay(policy.chain, sink.records, scopes=policy.scopes))


def test_a_tool_that_claims_its_own_retry_takes_a_token_or_is_told_no(clock: Any) -> None:
    claim = {"retryable": True, "next_action": "retry", "next_action_hint": "Try again in 5 s."}
    busy, session = gives(Envelope.error("rate_limit", "busy", **claim)), make(clock, ONE)
    first, second = (session.call("search", {"q": number}, busy) for number in range(2))
    assert said(first, "retryable", "next_action_hint") == (True, "Try again in 5 s.")
    assert said(second, "retryable", "next_action") == (False, "give_up")
    assert "Try again in 5 s." not in (second.next_action_hint or "")


def test_a_family_shares_the_bucket_of_its_root_and_many_tools_share_one(clock: Any) -> None:
    root = make(clock, ONE, Retryable())
    assert [one.call("search", {"q": 1}, DOWN).retryable for one in (root.child("a"), root)] == [True, False]
    many = make(clock, ONE, Retryable(max_same_error=9))
    assert [many.call(f"t{number}", {}, DOWN).retryable for number in range(72)] == [True] * 65 + [False] * 7


STEPS = st.lists(st.tuples(st.sampled_from(["fail", "ok", "wait", "again"]), st.integers(0, 3)), max_size=60)
BUDGETS = st.builds(
    RetryBudget, burst=st.integers(1, 4), ratio=st.sampled_from([0.1, 0.3, 1.0]), min_per_minute=st.integers(0, 5)
)


@settings(max_examples=150, deadline=None)
@given(BUDGETS, STEPS)
def test_a_bucket_is_never_below_0_nor_above_its_size_and_retries_are_paid_for(budget: RetryBudget, steps: Any) -> None:
    now = [1_800_000_000.0]
    policy = Policy([Retryable(max_retries=9, max_same_error=99)], scopes={"tenant": [budget]})
    sessions = [policy.session(f"s{n}", clock=lambda: now[0], scopes={"tenant": "acme"}) for n in range(4)]
    advised = successes = 0
    for number, (what, who) in enumerate(steps):
        if what == "wait":
            now[0] += 7
            continue
        arguments = {"q": 0} if what == "again" else {"q": number}
        envelope = sessions[who].call("search", arguments, ok if what == "ok" else DOWN)
        successes += envelope.ok
        advised += envelope.status == "error" and envelope.retryable is True
        state = sessions[0].ledger.store.update(["/tenant/acme"], lambda states: states[0])
        mine = state.own.get("retry_budget")
        assert 0 <= budget._lacks("search", mine, Facts(state.now_ms)) <= budget.burst * TOKEN
        assert unpack(pack(state)).own == state.own
    minutes = (now[0] - 1_800_000_000.0) / 60
    assert advised <= budget.burst + successes * budget.ratio + minutes * budget.min_per_minute + 1e-9
