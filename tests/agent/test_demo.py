"""
The stuck agent, unguarded and guarded.
"""

import json

from guardrails import Budget, MemorySink, Policy, Rule
from guardrails.agent.demo import ANSWER, compare, stuck
from guardrails.testing.scripted_openai import Calls


def test_a5_the_stuck_agent_is_stopped_with_an_answer_and_only_when_guarded() -> None:
    compared = compare(Policy.load("default"), max_requests=12)
    unguarded, guarded = compared.unguarded, compared.guarded
    assert (unguarded.requests, unguarded.executions, unguarded.ended) == (12, 12, "stopped")
    assert unguarded.answer is None
    assert (guarded.requests, guarded.executions, guarded.ended) == (7, 2, "forced")
    assert (guarded.code, guarded.answer) == ("denials.max_turns_in_a_row", ANSWER)
    assert 0 < guarded.cost_usd < unguarded.cost_usd
    assert 0 < guarded.tokens < unguarded.tokens


def test_the_model_reads_the_duplicate_block_and_then_the_limit() -> None:
    read = [json.loads(text) for text in compare(Policy.load("default"), max_requests=8).read]
    assert [envelope["status"] for envelope in read] == ["success"] * 2 + ["duplicate_call_blocked"] * 4
    assert [envelope.get("limit_reached") for envelope in read] == [None, None, None, None, None, True]


def test_the_cost_counts_tools_that_have_a_price() -> None:
    rule = Rule(match=("search_*",), declared={"cost_usd": 0.5}, guards={})
    policy = Policy([Budget(max_calls=2)], rules=[rule])
    compared = compare(policy, max_requests=3)
    for run in (compared.unguarded, compared.guarded):
        assert run.cost_usd > 0.5 * run.executions


def test_the_records_of_the_guarded_run_add_up_to_its_figures() -> None:
    sink = MemorySink()
    compared = compare(Policy.load("default"), max_requests=8, records=sink)
    events = [record["event"] for record in sink.records]
    assert events.count("request") == compared.guarded.requests
    assert events.count("settle") == compared.guarded.executions
    assert [record["n"] for record in sink.records] == list(range(1, len(events) + 1))


def test_the_same_policy_can_be_shown_twice() -> None:
    policy = Policy([Budget(max_calls=1)])
    assert compare(policy, max_requests=2).guarded.executions == compare(policy, max_requests=2).guarded.executions == 1


def test_the_policy_that_is_shown_stays_as_it_is() -> None:
    policy = Policy([Budget(max_calls=1)])
    compare(policy, max_requests=1)
    assert policy.prices == {}


def test_the_stuck_model_repeats_itself_until_it_has_no_tools() -> None:
    asked = stuck({"tools": [{}]}, 0)
    assert asked == stuck({"tools": [{}], "tool_choice": "auto"}, 7)
    assert isinstance(asked, Calls)
    assert stuck({"tools": [{}], "tool_choice": "none"}, 0) == stuck({}, 0)
