"""
What a client does not say in so many words: calls that are over, and what responses used.
"""

import time

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, SqliteStore
from tests.hooks.driven import Claude, Codex, Gemini, now, reason, refused
from tests.tables import table


USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5}


def state(driven: Any) -> Any:
    """
    The session, as the store has it.
    """
    return Policy.load(driven.options.policy).session("s", store=SqliteStore(driven.options.store))


def tokens(driven: Any) -> int:
    found: int = state(driven).ledger.read(lambda state, _: state.tokens)
    return found


# Calls whose end nobody tells


@table("client", [Claude, Codex, Gemini])
def test_the_same_call_made_at_the_same_time_waits_for_the_first(client: Any, tmp_path: Path) -> None:
    driven = client(tmp_path)
    assert driven.before() == {}
    assert reason(driven.before())["code"] == "call.in_flight"


@pytest.mark.parametrize(
    ("client", "event"),
    [
        (Claude, "UserPromptSubmit"),
        (Claude, "Stop"),
        (Claude, "SessionStart"),
        (Codex, "UserPromptSubmit"),
        (Codex, "Stop"),
        (Gemini, "BeforeAgent"),
        (Gemini, "AfterAgent"),
    ],
)
def test_a_call_that_was_interrupted_is_over_once_something_comes_that_follows_it(
    client: Any, event: str, tmp_path: Path
) -> None:
    driven = client(tmp_path)
    assert driven.before() == {}
    driven.tell(event)
    assert driven.before() == {}, "it may be made again"


def test_a_call_whose_result_stands_in_the_transcript_is_over(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    driven.said("msg_1", USAGE, "toolu_1")
    assert driven.before() == {}
    driven.result("toolu_1", "The user doesn't want to proceed")
    assert driven.before() == {}
    driven.result("somebody else's")
    assert refused(driven.before()), "that of another call says nothing"


def count(total: int) -> dict[str, Any]:
    last = {"input_tokens": 90, "cached_input_tokens": 4, "output_tokens": 10, "reasoning_output_tokens": 2}
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return {"timestamp": now(), "type": "event_msg", "payload": {"type": "token_count", "info": info}}


@table("client", [Codex, Gemini])
def test_a_call_whose_end_nobody_tells_is_over_with_the_response_after_it(client: Any, tmp_path: Path) -> None:
    folder = tmp_path / client.__name__
    folder.mkdir()
    driven = client(folder)
    for n in range(1, 4):
        assert driven.before("mcp__a__b", {"q": 1}) == {}, "it is tried again"
        if client is Gemini:
            driven.answered(100 * n)
        else:
            driven.write(count(100 * n))


def test_a_call_that_the_client_refused_never_ran(tmp_path: Path) -> None:
    driven = Claude(tmp_path, "version: 1\nbudget: {max_calls: 1}\n")
    assert driven.before() == {}
    driven.tell("PermissionDenied", **driven.last, reason="no")
    assert driven.before() == {}


# What responses used


def test_a_response_of_claude_is_charged_once_whatever_is_told(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    driven.tell("SessionStart", source="startup")
    driven.said("msg_1", {**USAGE, "output_tokens": 1})
    driven.said("msg_1", USAGE, "toolu_1")
    driven.before()
    assert tokens(driven) == 0, "it may not be whole"
    driven.result("toolu_1")
    for _ in range(3):
        driven.before(arguments={"command": "ls"})
        assert tokens(driven) == 115
    driven.said("msg_2", USAGE)
    driven.tell("Stop", last_assistant_message="done")
    driven.tell("Stop", last_assistant_message="done")
    assert tokens(driven) == 230


def test_a_count_of_codex_is_charged_once_however_often_it_is_written(tmp_path: Path) -> None:
    driven = Codex(tmp_path)
    for total in (100, 100, 200, 200):
        driven.write(count(total))
        driven.before(arguments={"command": f"ls {total}"})
        driven.after()
    assert tokens(driven) == 200
    charged = [record for record in driven.records() if record["event"] == "charge"]
    assert [(record["model"], record["cached_tokens"]) for record in charged] == [("gpt-5", 4), ("gpt-5", 4)]


def test_a_response_of_gemini_is_charged_by_its_last_piece(tmp_path: Path) -> None:
    driven = Gemini(tmp_path)
    for over in (False, False, True):
        driven.answered(100, over=over)
    assert tokens(driven) == 100


@pytest.mark.parametrize(
    "line",
    [
        b"{" * 100_000,
        b'{"type": "assistant", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 1e300}}}',
        b'{"type": "assistant", "message": {"id": "m", "model": "x", "usage": {"input_tokens": -5, "output_tokens": -7}}}',
        b'{"type": "assistant", "message": {"id": "m", "model": "x", "usage": {"input_tokens": "many"}}}',
        b'{"type": "assistant", "message": {"id": 7, "model": [], "usage": []}}',
        b'{"type": "assistant", "message": "usage"}',
        b'{"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": ["usage"]}, 1]}}',
        b"\xff\xfe usage \x00",
        b'{"type": "assistant", "message": {"id": "m", "usage": ',
    ],
)
def test_what_anybody_has_written_into_a_transcript_harms_nothing(tmp_path: Path, line: bytes) -> None:
    driven = Claude(tmp_path)
    driven.transcript.write_bytes(line + b"\n")
    assert [driven.ran() for _ in range(3)] == [True, True, False]
    driven.tell("Stop", last_assistant_message="done")
    assert tokens(driven) == 0


def test_a_huge_transcript_costs_no_more_than_its_end(tmp_path: Path) -> None:
    driven = Claude(tmp_path)
    with driven.transcript.open("wb") as file:
        file.truncate(3 << 30)
        file.seek(3 << 30)
        file.write(b"\n")
    driven.said("msg_1", USAGE, "toolu_1")
    driven.result("toolu_1")
    started = time.process_time()
    driven.before()
    assert time.process_time() - started < 2
    assert tokens(driven) == 115
