"""
The stuck agent, unguarded and guarded.
"""

import json

from guardrails import Budget, Policy
from guardrails.agent.demo import ANSWER, compare
from guardrails.core.chain import Rule


def test_a5_the_stuck_agent_is_stopped_with_an_answer_and_only_when_guarded() -> None:
    compared = compare(Policy.load("default"), max_requests=12)
    unguarded, guarded = compared.unguarded, compared.guarded
    assert (unguarded.requests, unguarded.executions, unguarded.ended, unguarded.answer) == (12, 12, "stopped", None)
    assert (guarded.requests, guarded.executions, guarded.ended, guarded.answer) == (7, 2, "forced", ANSWER)
    assert guarded.code == "denials.max_turns_in_a_row"
    assert (0 < guarded.cost_usd < unguarded.cost_usd, 0 < guarded.tokens < unguarded.tokens) == (True, True)
    read = [json.loads(text) for text in compared.read]
    assert [envelope["status"] for envelope in read] == ["success"] * 2 + ["duplicate_call_blocked"] * 4
    assert [envelope.get("limit_reached") for envelope in read] == [None] * 5 + [True]


def test_the_cost_counts_tools_that_have_a_price_and_the_policy_stays_as_it_is() -> None:
    rule = Rule(match=("search_*",), declared={"cost_usd": 0.5}, guards={})
    policy = Policy([Budget(max_calls=2)], rules=[rule])
    compared = compare(policy, max_requests=3)
    assert (compared.guarded.executions, policy.prices) == (2, {})
    assert all(run.cost_usd > 0.5 * run.executions for run in (compared.unguarded, compared.guarded))
