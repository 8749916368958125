"""
Claude Code sessions.
"""

import json

from typing import Any


def test_a_session_gives_its_calls_with_usage_once_a_response(read: Any) -> None:
    calls, _ = read("claude_code.jsonl")
    main = [c for c in calls if c.session_id == "s-1"]
    assert [(c.call_index, c.tool, c.turn, c.is_error, c.error_type) for c in main] == [
        (0, "Read", 1, True, "not_found"),
        (1, "Task", 1, False, None),
        (2, "Bash", 2, True, "cancelled"),
        (3, "Bash", 3, None, None),
    ]
    assert [(c.tokens_in, c.tokens_out) for c in main] == [(1110, 40), (None, None), (1110, 9), (1110, 3)], (
        "cache reads and writes count, and the last line of a response knows how much it wrote"
    )
    assert (main[0].ts_ms, main[0].duration_ms, main[0].model) == (1_769_111_843_000, 474, "claude-opus-4-6")
    assert main[1].duration_ms == 6900, "what the tool says of its duration comes first"


def test_the_calls_of_sub_agents_are_sessions_of_their_own(read: Any) -> None:
    calls, _ = read("claude_code.jsonl")
    agents = {c.session_id: (c.call_index, c.tool, c.result) for c in calls if "/" in c.session_id}
    assert agents == {"s-1/sidechain": (0, "Grep", "a.go:1\nb.go:2"), "s-1/a7f": (0, "Grep", "none")}


def test_what_a_stream_prints_is_read_as_well(read: Any) -> None:
    calls, report = read("claude_stream.jsonl")
    assert [(c.session_id, c.tool, c.result) for c in calls] == [("st-1", "Bash", "a"), ("st-1/t1", "Read", "r")]
    assert report.notices == []


def test_lines_without_ids_of_their_own_are_read(read: Any) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a"}
    lines = [
        {"type": "assistant", "message": {"role": "assistant", "content": [use]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    calls, _ = read("\n".join(map(json.dumps, lines)))
    assert [(c.session_id, c.tool, c.result) for c in calls] == [("given", "Bash", "a")]


def test_a_line_that_is_written_again_is_one_call(read: Any, files: Any) -> None:
    text = (files / "claude_code.jsonl").read_text()
    once, _ = read(text)
    twice, _ = read(text + text)
    assert len(twice) == len(once)
