"""
Copilot CLI sessions.
"""

from typing import Any


def test_a_session_gives_its_calls_and_those_of_its_agents(read: Any) -> None:
    calls, report = read("copilot_cli.jsonl")
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.is_error, c.duration_ms, c.tokens_out) for c in calls] == [
        ("cop-1", 0, "view", 1, True, 200, 401),
        ("cop-1/t2", 0, "grep", 1, False, 300, 7),
        ("cop-1", 1, "task", 1, False, 1900, None),
        ("cop-1", 2, "bash", 2, None, None, 8),
    ]
    assert calls[0].error_type == "not_found"
    assert calls[0].result == "Path does not exist"
    assert calls[2].arguments == {"prompt": "look"}
    assert report.notices == ["`copilot_cli.jsonl`: 1 of 4 calls has no result"]
