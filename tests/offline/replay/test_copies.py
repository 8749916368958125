"""
Files that hold the same calls: checkpoints, forks and copies of sessions count as one.
"""

import gzip
import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy
from guardrails.offline.learning.rows import read
from guardrails.offline.replay.exactness import replayed
from guardrails.offline.replay.run import judge_files
from guardrails.offline.replay.tally import Judgement
from guardrails.offline.report.quality import count_files
from guardrails.offline.transcripts.inputs import inputs
from guardrails.sinks import JsonLines
from tests.tables import table


ALWAYS = Policy([Duplicates(window=5), Budget(max_calls=400)], name="always")


def lines(calls: int, session: str = "s", first: int = 0) -> list[str]:
    """
    A session of Claude Code: every third call repeats the one before, every fifth fails.
    """
    made = []
    for number in range(first, calls):
        at = f"2026-01-01T10:{number // 60:02d}:{number % 60:02d}.000Z"
        path = f"{number - (number % 3 == 2)}.py"
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": path}}
        head = {"isSidechain": False, "sessionId": session, "timestamp": at}
        said = {"id": f"m{number}", "content": [use], "usage": {"input_tokens": 5, "output_tokens": 1}}
        failed = number % 5 == 4
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": path, "is_error": failed}
        made.append(json.dumps({"type": "assistant", "uuid": f"a{number}", "message": said, **head}))
        made.append(json.dumps({"type": "user", "uuid": f"u{number}", "message": {"content": [result]}, **head}))
    return made


def write(path: Path, text: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in text))
    return path


def judged(*paths: Path) -> Judgement:
    return judge_files([ALWAYS], inputs(map(str, paths)))[0]


def figures(judgement: Judgement) -> dict[str, Any]:
    return judgement.total.to_dict()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "given"
    path.mkdir()
    return path


@pytest.fixture
def checkpoints(folder: Path) -> list[Path]:
    """
    A session as it was kept four times, each time in the middle of a call.
    """
    return [write(folder / f"{n:03d}.jsonl", lines(60)[: 2 * n - 1]) for n in (10, 25, 40, 61)]


@table("many", [3, 20])
def test_a_copy_in_any_form_and_number_counts_once(folder: Path, many: int) -> None:
    alone = figures(judged(write(folder / "a.jsonl", lines(60))))
    for number in range(many):
        write(folder / f"copy {number}.jsonl", lines(60))
    (folder / "z.jsonl.gz").write_bytes(gzip.compress((folder / "a.jsonl").read_bytes()))
    assert figures(judged(folder)) == alone
    assert figures(judged(folder / "z.jsonl.gz", folder)) == alone


def test_a_report_counts_each_call_once(checkpoints: list[Path], folder: Path) -> None:
    alone, found = (count_files(ALWAYS, inputs([str(path)])) for path in (checkpoints[-1], folder))
    assert found.calls == 60
    assert [tally.to_dict() for tally in found.tallies.values()] == [
        tally.to_dict() for tally in alone.tallies.values()
    ]
    assert "copies of calls" in found.report.notices[0]


def test_training_counts_each_call_once(checkpoints: list[Path], folder: Path) -> None:
    alone, together = read([checkpoints[-1]]), read([folder])
    assert together.facts.failures == alone.facts.failures > 0
    assert any("copies of calls" in notice for notice in together.notices)


def test_our_own_records_given_twice_count_once(folder: Path, tmp_path: Path) -> None:
    path, now = folder / "records.jsonl", [1_800_000_000.0]
    with JsonLines(path) as sink:
        for name in ("s", "t"):
            with ALWAYS.session(name, records=sink, clock=lambda: now[0]) as session:
                for number in range(9):
                    now[0] += 1
                    session.call("Read", {"n": number // 2}, lambda *_: "text")
    alone = judged(path)
    exact = replayed(ALWAYS, inputs([str(path)]))
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    (tmp_path / "part.jsonl").write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:12]))
    given = [folder, path, tmp_path / "part.jsonl"]
    assert figures(judged(*given)) == figures(alone)
    again = replayed(ALWAYS, inputs(map(str, given)))
    assert (again.same, again.calls, again.sessions) == (exact.same, exact.calls, exact.sessions) == (True, 18, 2)


def test_records_of_a_newer_library_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with JsonLines(path) as sink, ALWAYS.session("one", records=sink) as session:
        session.call("Read", {}, lambda *_: "text")
    newer = path.read_text().replace('"schema_version":1', '"schema_version":7').replace('"one"', '"two"')
    path.write_text(path.read_text() + newer)
    told = "records of schema version 7, this library reads 1: upgrade toolcall-guardrails"
    assert judged(path).broken_lines == newer.count("\n")
    exact = replayed(ALWAYS, inputs([str(path)]))
    assert (exact.calls, exact.first) == (1, [])
    assert exact.notices[0].endswith(told)
