"""
The stuck agent, unguarded and guarded; recorded chats, of which honest calls come out unchanged.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, MemorySink, Policy, Rate, Rule
from guardrails.agent.demo import ANSWER, LACKING, Played, compare, play, stuck
from guardrails.offline.transcripts import Report
from guardrails.testing.scripted_openai import Calls
from tests.tables import table


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
RECORDED = Path(__file__).parents[2] / ".." / "shared" / "data" / "raw" / "openai_chat"


def test_a5_the_stuck_agent_is_stopped_with_an_answer_and_only_when_guarded() -> None:
    sink = MemorySink()
    compared = compare(Policy.load("default"), max_requests=12, records=sink)
    unguarded, guarded = compared.unguarded, compared.guarded
    assert (unguarded.requests, unguarded.executions, unguarded.ended) == (12, 12, "stopped")
    assert unguarded.answer is None
    assert (guarded.requests, guarded.executions, guarded.ended) == (7, 2, "forced")
    assert (guarded.code, guarded.answer) == ("denials.max_turns_in_a_row", ANSWER)
    assert 0 < guarded.cost_usd < unguarded.cost_usd
    assert 0 < guarded.tokens < unguarded.tokens
    read = [json.loads(text) for text in compared.read]
    assert [envelope["status"] for envelope in read] == ["success"] * 2 + ["duplicate_call_blocked"] * 4
    assert [envelope.get("limit_reached") for envelope in read] == [None] * 5 + [True]
    events = [record["event"] for record in sink.records]
    assert (events.count("request"), events.count("settle")) == (guarded.requests, guarded.executions)
    assert [record["n"] for record in sink.records] == list(range(1, len(events) + 1))


def test_the_cost_counts_tools_that_have_a_price_and_the_policy_stays_as_it_is() -> None:
    rule = Rule(match=("search_*",), declared={"cost_usd": 0.5}, guards={})
    policy = Policy([Budget(max_calls=2)], rules=[rule])
    for _ in range(2):
        compared = compare(policy, max_requests=3)
        assert compared.guarded.executions == 2
        for run in (compared.unguarded, compared.guarded):
            assert run.cost_usd > 0.5 * run.executions
    assert policy.prices == {}


def test_the_stuck_model_repeats_itself_until_it_has_no_tools() -> None:
    asked = stuck({"tools": [{}]}, 0)
    assert isinstance(asked, Calls)
    assert asked == stuck({"tools": [{}], "tool_choice": "auto"}, 7)
    assert stuck({"tools": [{}], "tool_choice": "none"}, 0) == stuck({}, 0)


# Recorded chats


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """
    The default policy, with results as the tool gave them.
    """
    file = tmp_path_factory.mktemp("policy") / "merged.yaml"
    file.write_text("version: 1\nextends: default\nenvelope: merged\n")
    return Policy.load(file)


def played(policy: Policy, file: Path) -> Played:
    [one] = play(policy, str(file), Report())
    return one


@table("file", [TRANSCRIPTS / "edit_and_test.json", *sorted(RECORDED.glob("*.json.gz"))])
def test_a2_a6_honest_calls_come_out_byte_for_byte_and_none_is_stopped(merged: Policy, file: Path) -> None:
    chat = played(merged, file)
    assert [call["decision"] for call in chat.calls] == ["ran"] * chat.recorded_calls
    assert all(call["read"] == call["recorded"] or json.loads(call["read"])["error_type"] for call in chat.calls)


def test_a_search_that_keeps_finding_nothing_is_stopped_and_then_the_session(merged: Policy) -> None:
    chat = played(merged, TRANSCRIPTS / "stuck_search.json.gz")
    assert [call["decision"] for call in chat.calls] == ["ran"] * 2 + ["denied"] * 4
    assert (chat.code, {call["code"] for call in chat.calls}) == (
        "denials.max_turns_in_a_row",
        {None, "duplicates.evidence"},
    )
    read = [json.loads(call["read"]) for call in chat.calls[2:]]
    assert (read[0]["previous_result"], read[3]["limit_reached"]) == ('{"results": []}', True)


def test_the_result_of_a_denied_call_is_never_read(tmp_path: Path) -> None:
    wire = [{"id": n, "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}} for n in "12"]
    results = [{"role": "tool", "tool_call_id": n, "content": text} for n, text in (("1", "old"), ("2", "new"))]
    turns = [{"role": "assistant", "content": None, "tool_calls": [one]} for one in wire]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps([{"role": "user", "content": "go"}, turns[0], results[0], turns[1], results[1]]))
    call = played(Policy([Duplicates()]), file).calls[1]
    assert (call["code"], call["recorded"]) == ("duplicates.window", "new")
    assert "new" not in call["read"]
    assert json.loads(call["read"])["previous_result"] == "old"


def test_a_call_without_a_recorded_result_says_so(merged: Policy) -> None:
    chat = played(merged, TRANSCRIPTS / "truncated.json")
    assert [(call["decision"], call["recorded"] is None) for call in chat.calls] == [("ran", False), ("ran", True)]
    assert json.loads(chat.calls[1]["read"])["error_message"] == LACKING


def test_a_spent_budget_ends_the_playback_and_what_only_time_can_judge_is_left_out() -> None:
    chat = played(Policy([Budget(max_calls=2)]), TRANSCRIPTS / "edit_and_test.json")
    assert (len(chat.calls), chat.recorded_calls, chat.code) == (2, 6, "budget.max_calls")
    assert json.loads(chat.calls[1]["read"])["limit_message"] == "Tool call limit reached (2). Stopping tool loop."
    by_tool: dict[str, Any] = {"rate": {"max_calls_per_second": 1}, "budget": {"max_elapsed": 1.0}}
    rules = [Rule(match=("*",), declared={}, guards=by_tool)]
    policy = Policy([Budget(max_calls=9, max_elapsed=1.0), Rate(max_calls_per_second=1)], rules=rules)
    assert [call["decision"] for call in played(policy, TRANSCRIPTS / "edit_and_test.json").calls] == ["ran"] * 6
    assert policy.chain.guards[0] == Budget(max_calls=9, max_elapsed=1.0)
