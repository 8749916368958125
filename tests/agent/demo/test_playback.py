"""
Recorded chats through the guarded loop: honest calls come out unchanged, pointless repeats do not.
"""

import json

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy, Rate, Rule
from guardrails.agent.demo.playback import LACKING, Played, PlayedCall, Player, player
from guardrails.agent.demo.transcript import Transcript, parse_transcript, read_transcript


TRANSCRIPTS = Path(__file__).parents[2] / "transcripts"
RECORDED = Path(__file__).parents[3] / ".." / "shared" / "data" / "raw" / "openai_chat"
WINDOW = 20

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded chats (shared/data) are not here")


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    """
    The default policy, with results as the tool gave them.
    """
    file = tmp_path_factory.mktemp("policy") / "merged.yaml"
    file.write_text("version: 1\nextends: default\nenvelope: merged\n")
    with player(Policy.load(file)) as play:
        yield play


def play(policy: Policy, transcript: Transcript) -> Played:
    with player(policy) as playing:
        return playing.play(transcript)


def chat(*messages: Any) -> Transcript:
    return parse_transcript([{"role": "user", "content": "go"}, *messages])


def calls(*wanted: tuple[str, str, Any], text: str | None = None) -> dict[str, Any]:
    wire = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id_, name, arguments in wanted
    ]
    return {"role": "assistant", "content": text, "tool_calls": wire}


def result(id_: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


DONE = {"role": "assistant", "content": "done"}


def brings_nothing(call: PlayedCall, before: list[PlayedCall]) -> bool:
    """
    Whether the last two identical calls that ran, both among the last 20, gave the same result, without other work each time.
    """
    ran = [earlier for earlier in before if earlier.decision == "ran"][-WINDOW:]
    wanted = json.loads(call.arguments)
    same = [at for at, e in enumerate(ran) if e.tool == call.tool and json.loads(e.arguments) == wanted]
    if len(same) < 2 or ran[same[-1]].recorded != ran[same[-2]].recorded:
        return False
    return same[-1] == len(ran) - 1 or same[-2] == same[-1] - 1


def assert_only_pointless_repeats_are_stopped(played: Played) -> None:
    for position, call in enumerate(played.calls):
        if call.decision == "denied":
            assert call.code == "duplicates.evidence"
            assert brings_nothing(call, list(played.calls[:position]))
        else:
            assert call.read == call.recorded


def recorded(pattern: str = "*.json.gz") -> list[Any]:
    files = sorted(RECORDED.glob(pattern)) if RECORDED.is_dir() else []
    return [pytest.param(file, id=file.name.removesuffix(".json.gz")) for file in files]


@pytest.mark.system
@needs_recordings
@pytest.mark.parametrize("file", recorded() or [pytest.param(None, id="absent")])
def test_a2_honest_calls_of_a_recorded_chat_come_out_byte_for_byte(merged: Player, file: Path) -> None:
    played = merged.play(read_transcript(file))
    assert len(played.calls) == played.recorded_calls > 0
    assert (played.code, played.notes) == (None, ())
    assert_only_pointless_repeats_are_stopped(played)


@needs_recordings
@pytest.mark.system
def test_a6_of_all_recorded_chats_no_call_is_stopped(merged: Player) -> None:
    played = [merged.play(read_transcript(param.values[0])) for param in recorded()]
    stopped = [
        (one.name, one.calls.index(call) + 1, json.loads(call.arguments)) for one in played for call in one.denied
    ]
    assert len(played) == 20
    assert sum(len(one.calls) for one in played) == 168
    assert stopped == []


@pytest.mark.parametrize("name", ["edit_and_test.json", "stuck_search.json.gz", "no_calls.json"])
def test_honest_calls_come_out_byte_for_byte(merged: Player, name: str) -> None:
    played = merged.play(read_transcript(TRANSCRIPTS / name))
    for call in played.calls:
        assert call.decision == "denied" or call.read == call.recorded


def test_an_edit_and_test_cycle_runs_on(merged: Player) -> None:
    played = merged.play(read_transcript(TRANSCRIPTS / "edit_and_test.json"))
    assert [call.decision for call in played.calls] == ["ran"] * 6
    assert_only_pointless_repeats_are_stopped(played)


def test_a_search_that_keeps_finding_nothing_is_stopped_and_then_the_session(merged: Player) -> None:
    played = merged.play(read_transcript(TRANSCRIPTS / "stuck_search.json.gz"))
    assert [call.decision for call in played.calls] == ["ran"] * 2 + ["denied"] * 4
    assert played.code == "denials.max_turns_in_a_row"
    assert json.loads(played.denied[0].read)["previous_result"] == '{"results": []}'
    assert json.loads(played.denied[3].read)["limit_reached"] is True


@pytest.mark.system
def test_the_result_of_a_denied_call_is_never_read() -> None:
    same = ("search", {"q": "x"})
    repeat = chat(calls(("1", *same)), result("1", "old"), calls(("2", *same)), result("2", "new"), DONE)
    played = play(Policy([Duplicates()]), repeat)
    assert played.calls[1].code == "duplicates.window"
    assert played.calls[1].recorded == "new"
    assert "new" not in played.calls[1].read
    assert json.loads(played.calls[1].read)["previous_result"] == "old"


def test_a_call_without_a_recorded_result_says_so(merged: Player) -> None:
    played = merged.play(read_transcript(TRANSCRIPTS / "truncated.json"))
    assert [(call.decision, call.recorded is None) for call in played.calls] == [("ran", False), ("ran", True)]
    assert json.loads(played.calls[1].read)["error_message"] == LACKING


@pytest.mark.system
def test_a_spent_budget_ends_the_playback_and_the_rest_is_not_come_to() -> None:
    played = play(Policy([Budget(max_calls=2)]), read_transcript(TRANSCRIPTS / "edit_and_test.json"))
    assert (len(played.calls), played.recorded_calls, played.code) == (2, 6, "budget.max_calls")
    assert json.loads(played.calls[1].read)["limit_message"] == "Tool call limit reached (2). Stopping tool loop."


@pytest.mark.system
def test_what_only_time_can_judge_is_left_out() -> None:
    rules = [
        Rule(match=("*",), declared={}, guards={"rate": {"max_calls_per_second": 1}, "budget": {"max_elapsed": 1.0}})
    ]
    policy = Policy([Budget(max_calls=9, max_elapsed=1.0), Rate(max_calls_per_second=1)], rules=rules)
    played = play(policy, read_transcript(TRANSCRIPTS / "edit_and_test.json"))
    assert [call.decision for call in played.calls] == ["ran"] * 6
    assert policy.chain.guards[0] == Budget(max_calls=9, max_elapsed=1.0)
