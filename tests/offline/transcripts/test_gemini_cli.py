"""
Gemini CLI sessions.
"""

from typing import Any

from tests.tables import table


@table("file", ["gemini_cli.json", "gemini_cli.jsonl"])
def test_a_session_gives_its_calls_in_either_form(read: Any, file: str) -> None:
    calls, report = read(file)
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.is_error, c.error_type, c.duration_ms) for c in calls] == [
        ("gem-1", 0, "write_file", 1, False, None, 1500),
        ("gem-1", 1, "read_file", 1, True, "not_found", 1600),
        ("gem-1", 2, "run_shell_command", 2, True, "cancelled", 1000),
        ("gem-1", 3, "run_shell_command", 2, None, None, None),
    ]
    assert [(c.tokens_in, c.tokens_out) for c in calls] == [(100, 13), *[(None, None)] * 3], "thoughts are output"
    assert calls[0].result == "Successfully wrote"
    assert report.broken == []
