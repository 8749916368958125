"""
The file of decisions.
"""

import json

from collections.abc import Callable
from pathlib import Path

from guardrails.offline.judge.counting import ALLOWED, Said
from guardrails.offline.judge.files.decisions import Decisions
from guardrails.offline.readers import RecordedCall


Calls = Callable[..., list[RecordedCall]]


def test_a_line_says_which_call_and_what_was_decided(calls: Calls, tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    one, two = calls("a=1", "a=1", session_id="\ud800")
    with Decisions(path) as decisions:
        decisions.add(one, ALLOWED)
        decisions.add(two, Said("deny", "duplicates.window", ("budget.max_calls",)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    head = {"source": "data", "session_id": "\ud800"}
    assert lines == [
        {**head, "call_index": 0, "decision": "allow", "code": None},
        {**head, "call_index": 1, "decision": "deny", "code": "duplicates.window"},
    ]


def test_a_line_says_why_a_denial_was_wrong_and_whether_the_call_had_worked(calls: Calls, tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    (call,) = calls("a=1")
    with Decisions(path) as decisions:
        decisions.add(call, Said("deny", "duplicates.window", why="volatile", worked=True))
    assert json.loads(path.read_text()) | {"why": "volatile", "worked": True} == json.loads(path.read_text())


def test_it_goes_on_where_it_is_told_and_forgets_what_stands_behind(calls: Calls, tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    (call,) = calls("a=1")
    with Decisions(path) as decisions:
        decisions.add(call, ALLOWED)
        kept = decisions.flush()
        decisions.add(call, ALLOWED)
    with Decisions(path, kept) as decisions:
        decisions.add(call, Said("nudge", "loops.x"))
    assert [json.loads(line)["decision"] for line in path.read_text().splitlines()] == ["allow", "nudge"]
    with Decisions(path) as decisions:
        assert decisions.flush() == 0
