"""
Judging files, from the first to the last.
"""

import json

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Denials, Duplicates, Policy
from guardrails.offline.replay.run import judge_files
from guardrails.offline.replay.tally import Judgement
from guardrails.offline.transcripts.files import inputs


EVIDENCE = Policy([Duplicates(rule="evidence", window=20), Denials(max_turns_in_a_row=2)], name="evidence")
ALWAYS = Policy([Duplicates(window=5), Budget(max_calls=40)], name="always")


def line(session: str, tool: str, result: str, **more: Any) -> str:
    record = {"session_id": session, "tool": tool, "arguments": {}, "result": result, "is_error": False, **more}
    return json.dumps(record) + "\n"


def judged(file: Path, *policies: Policy, **settings: Any) -> list[Judgement]:
    return [replace(judgement, seconds=0.0) for judgement in judge_files(policies, inputs([file]), **settings)]


@pytest.mark.system
def test_two_processes_find_what_one_does(tmp_path: Path) -> None:
    path, written = tmp_path / "calls.jsonl", [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    path.write_text("".join(line(f"s{n % 250}", "ab"[n % 3 == 0], str(n // 900)) for n in range(1_500)))
    one, two = (judged(path, EVIDENCE, ALWAYS, processes=n, decisions=file) for n, file in enumerate(written, start=1))
    assert one == two
    assert one[1].total.refused > 0
    assert written[0].read_bytes() == written[1].read_bytes() != b""


def test_decisions_are_lines_that_say_which_call_and_what_was_decided(tmp_path: Path) -> None:
    path, decisions = tmp_path / "calls.jsonl", tmp_path / "d.jsonl"
    path.write_text("".join(line(session, "a", result) for result in "12" for session in ("s", "\ud800")))
    judged(path, ALWAYS, decisions=decisions)
    head = {"source": "calls", "session_id": "\ud800"}
    assert [json.loads(each) for each in decisions.read_text().splitlines()[2:]] == [
        {**head, "call_index": 0, "decision": "allow", "code": None},
        {**head, "call_index": 1, "decision": "deny", "code": "duplicates.window", "recorded": "worked"},
    ]


def test_a_file_of_a_folder_that_cannot_be_read_is_a_notice_and_one_given_by_name_an_error(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    good.write_text(line("s", "a", "1") + line("s", "a", "2", is_error=None))
    bad.write_text("")
    folder, told = inputs([tmp_path]), list[str]()
    bad.unlink()
    bad.mkdir()
    (judgement,) = judge_files([EVIDENCE], folder, tell=told.append)
    assert [told[0], told[-1]] == [f"{good}: 2 calls read", "2 of 2 calls judged"]
    notices = [f"`{bad}`: cannot be read: Is a directory", f"`{good}`: 1 of 2 calls has no result"]
    assert judgement.report.notices == notices, "what was not read comes first"
    for each in folder:
        each.from_folder = False
    with pytest.raises(IsADirectoryError):
        judge_files([EVIDENCE], folder)
