"""
Recorded chats through the guarded loop: honest calls come out unchanged, pointless repeats do not.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy, Rate, Rule
from guardrails.agent.demo import LACKING, Played, play
from guardrails.offline.transcripts import Report


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
RECORDED = Path(__file__).parents[2] / ".." / "shared" / "data" / "raw" / "openai_chat"
WINDOW = 20

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded chats (shared/data) are not here")


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


def brings_nothing(call: dict[str, Any], before: list[dict[str, Any]]) -> bool:
    """
    Whether the last two identical calls that ran, both among the last 20, gave the same result, without other work each time.
    """
    ran = [earlier for earlier in before if earlier["decision"] == "ran"][-WINDOW:]
    wanted = json.loads(call["arguments"])
    same = [at for at, e in enumerate(ran) if e["tool"] == call["tool"] and json.loads(e["arguments"]) == wanted]
    if len(same) < 2 or ran[same[-1]]["recorded"] != ran[same[-2]]["recorded"]:
        return False
    return same[-1] == len(ran) - 1 or same[-2] == same[-1] - 1


def assert_only_pointless_repeats_are_stopped(played: Played) -> None:
    for position, call in enumerate(played.calls):
        if call["decision"] == "denied":
            assert call["code"] == "duplicates.evidence"
            assert brings_nothing(call, list(played.calls[:position]))
        else:
            assert call["read"] == call["recorded"] or json.loads(call["read"])["error_type"]


def denied(chat: Played) -> list[dict[str, Any]]:
    return [call for call in chat.calls if call["decision"] == "denied"]


@needs_recordings
@pytest.mark.system
def test_a2_a6_honest_calls_of_recorded_chats_come_out_byte_for_byte_and_none_is_stopped(merged: Policy) -> None:
    chats = [played(merged, file) for file in sorted(RECORDED.glob("*.json.gz"))]
    for chat in chats:
        assert (len(chat.calls), chat.code) == (chat.recorded_calls, None)
        assert_only_pointless_repeats_are_stopped(chat)
    assert (len(chats), sum(len(chat.calls) for chat in chats)) == (20, 168)
    assert [chat.name for chat in chats if denied(chat)] == []


def test_an_edit_and_test_cycle_runs_on(merged: Policy) -> None:
    chat = played(merged, TRANSCRIPTS / "edit_and_test.json")
    assert [call["decision"] for call in chat.calls] == ["ran"] * 6
    assert_only_pointless_repeats_are_stopped(chat)


def test_a_search_that_keeps_finding_nothing_is_stopped_and_then_the_session(merged: Policy) -> None:
    chat = played(merged, TRANSCRIPTS / "stuck_search.json.gz")
    assert [call["decision"] for call in chat.calls] == ["ran"] * 2 + ["denied"] * 4
    assert chat.code == "denials.max_turns_in_a_row"
    assert json.loads(denied(chat)[0]["read"])["previous_result"] == '{"results": []}'
    assert json.loads(denied(chat)[3]["read"])["limit_reached"] is True


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


def test_a_spent_budget_ends_the_playback_and_the_rest_is_not_come_to() -> None:
    chat = played(Policy([Budget(max_calls=2)]), TRANSCRIPTS / "edit_and_test.json")
    assert (len(chat.calls), chat.recorded_calls, chat.code) == (2, 6, "budget.max_calls")
    assert json.loads(chat.calls[1]["read"])["limit_message"] == "Tool call limit reached (2). Stopping tool loop."


def test_what_only_time_can_judge_is_left_out() -> None:
    rules = [
        Rule(match=("*",), declared={}, guards={"rate": {"max_calls_per_second": 1}, "budget": {"max_elapsed": 1.0}})
    ]
    policy = Policy([Budget(max_calls=9, max_elapsed=1.0), Rate(max_calls_per_second=1)], rules=rules)
    chat = played(policy, TRANSCRIPTS / "edit_and_test.json")
    assert [call["decision"] for call in chat.calls] == ["ran"] * 6
    assert policy.chain.guards[0] == Budget(max_calls=9, max_elapsed=1.0)
