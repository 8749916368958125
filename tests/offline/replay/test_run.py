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


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """
    Three files of 700 interleaved calls.
    """
    made = []
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(
            "".join(
                line(f"s{n % 7}", "ab"[n % 3 == 0], str(n // 90), ts=1_800_000_000.0 + n, tokens_in=n % 5)
                for n in range(700)
            )
        )
        made.append(str(path))
    return made


def judged(*files: str | Path, policies: tuple[Policy, ...] = (EVIDENCE,), **settings: Any) -> list[Judgement]:
    made = judge_files(policies, inputs(map(str, files)), **settings)
    return [replace(judgement, seconds=0.0) for judgement in made]


@pytest.mark.system
def test_two_processes_find_what_one_does(tmp_path: Path) -> None:
    path, written = tmp_path / "calls.jsonl", [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    path.write_text("".join(line(f"s{n % 250}", "ab"[n % 3 == 0], str(n // 900)) for n in range(1_500)))
    both = (EVIDENCE, ALWAYS)
    one, two = (judged(path, policies=both, processes=n, decisions=file) for n, file in enumerate(written, start=1))
    assert one == two
    assert one[1].total.refused > 0
    assert written[0].read_bytes() == written[1].read_bytes() != b""


def test_progress_tells_of_reading_and_of_judging(files: list[str]) -> None:
    lines: list[str] = []
    judged(*files, tell=lines.append)
    assert f"{files[0]}: 700 calls read" in lines
    assert lines[-1] == "2,100 of 2,100 calls judged"


def test_decisions_are_lines_that_say_which_call_and_what_was_decided(tmp_path: Path) -> None:
    path, decisions = tmp_path / "calls.jsonl", tmp_path / "d.jsonl"
    path.write_text("".join(line(session, "a", result) for result in "12" for session in ("s", "\ud800")))
    judged(path, policies=(ALWAYS,), decisions=decisions)
    head = {"source": "calls", "session_id": "\ud800"}
    assert [json.loads(each) for each in decisions.read_text().splitlines()[2:]] == [
        {**head, "call_index": 0, "decision": "allow", "code": None},
        {**head, "call_index": 1, "decision": "deny", "code": "duplicates.window", "recorded": "worked"},
    ]


def test_a_file_of_a_folder_that_cannot_be_read_is_a_notice_and_one_given_by_name_an_error(
    tmp_path: Path, files: list[str]
) -> None:
    folder = inputs([tmp_path])
    Path(files[1]).unlink()
    Path(files[1]).mkdir()
    Path(files[0]).write_text(line("s", "a", "1").replace("false", "null"))
    (judgement,) = judge_files([EVIDENCE], folder)
    assert judgement.total.calls == 701
    notices = [f"`{files[1]}`: cannot be read: Is a directory", f"`{files[0]}`: 1 of 1 call has no result"]
    assert judgement.report.notices == notices, "what was not read comes first"
    for each in folder:
        each.from_folder = False
    with pytest.raises(IsADirectoryError):
        judge_files([EVIDENCE], folder)
