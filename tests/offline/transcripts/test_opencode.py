"""
OpenCode sessions.
"""

from typing import Any


def test_an_export_gives_its_calls_a_step_a_turn(read: Any) -> None:
    calls, report = read("opencode.json")
    assert [(c.session_id, c.turn, c.id, c.tool, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("ses_0/ses_1", 1, "toolu_1", "bash", True, "exec_nonzero", 600),
        ("ses_0/ses_1", 1, "toolu_2", "read", True, "not_found", 10),
        ("ses_0/ses_1", 2, "toolu_3", "bash", False, None, 10),
        ("ses_0/ses_1", 2, "toolu_4", "task", None, None, None),
    ]
    assert [(c.tokens_in, c.tokens_out, c.cost_usd) for c in calls[:3]] == [
        (115, 42, 0.01),
        (None, None, None),
        (7, 8, 0.01),
    ]
    assert {c.model for c in calls} == {"claude-opus-4-6"}
    assert report.notices == ["`opencode.json`: 1 of 4 calls has no result"]


def test_what_a_run_prints_is_read(read: Any) -> None:
    calls, report = read("opencode_run.jsonl")
    assert [(c.session_id, c.turn, c.tool, c.result, c.is_error, c.tokens_in) for c in calls] == [
        ("ses_2", 1, "grep", "Found 0", False, 9),
        ("ses_2", 2, "bash", "", True, 10),
    ]
    assert report.notices == []
