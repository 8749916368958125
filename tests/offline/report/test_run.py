"""
Counting files: what is broken, or missing is told.
"""

import json

from pathlib import Path

import pytest

from guardrails import Policy
from guardrails.offline.report.quality import count_files
from guardrails.offline.transcripts.inputs import inputs


@pytest.fixture
def policy() -> Policy:
    return Policy([])


def written(path: Path, calls: int, session: str = "s") -> Path:
    """
    Calls of anybody, one JSON line each.
    """
    lines = [
        {
            "session_id": session,
            "call_index": n,
            "tool": "look",
            "arguments": {"n": n % 7},
            "result": "same",
            "is_error": False,
        }
        for n in range(calls)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_files_are_counted_one_after_the_other(tmp_path: Path, policy: Policy) -> None:
    for name in ("a", "b"):
        written(tmp_path / f"{name}.jsonl", 20, session=name)
    found = count_files(policy, inputs([str(tmp_path)]))
    assert (found.calls, found.sessions) == (40, 2)
    assert found.report.notices == []


def test_a_broken_line_is_counted_and_named_and_the_rest_read(tmp_path: Path, policy: Policy) -> None:
    path = written(tmp_path / "calls.jsonl", 20)
    path.write_text(path.read_text() + '{"session_id": "s", "tool": \n' + "\x00\xff\n")
    found = count_files(policy, inputs([str(path)]))
    assert found.calls == 20
    assert len(found.report.broken) == 2
    assert any("calls.jsonl" in notice for notice in found.report.notices)


def test_progress_is_told(tmp_path: Path, policy: Policy) -> None:
    told: list[str] = []
    path = written(tmp_path / "calls.jsonl", 600)
    count_files(policy, inputs([str(path)]), told.append)
    assert told == [f"{path}: 600 calls read"]
