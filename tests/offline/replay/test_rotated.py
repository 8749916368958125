"""
Records that were rotated are one file to whoever reads them.
"""

import itertools

from pathlib import Path
from typing import Any

from guardrails import Budget, JsonLines, Policy
from guardrails.offline.learning.rows import read
from guardrails.offline.replay.exactness import replayed
from guardrails.offline.replay.run import judge_files
from guardrails.offline.report.quality import count_files
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.inputs import calls_of, inputs
from guardrails.sinks.rotate import rotated


def test_exact_replay_of_a_file_reads_what_it_was_before_it_was_rotated(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    policy = Policy([Budget(max_calls=30)])
    with JsonLines(path, rotate_bytes=5_000) as sink, policy.session("s", records=sink) as session:
        for n in range(40):
            session.call("look", {"n": n}, lambda *_: "ok")
            sink.flush()
    earlier = rotated(path)
    assert len(earlier) > 3
    assert [each.paths for each in inputs([path])] == [[*earlier, path]]
    assert [each.paths for each in inputs([tmp_path])] == [[*earlier, path]]
    assert [each.paths for each in inputs([*earlier, path])] == [[*earlier, path]]
    found = replayed(policy, inputs([path]))
    assert (found.same, found.calls) == (True, 40)
    path.unlink()
    assert replayed(policy, inputs([path])).calls < 40
    assert [each.path for each in inputs([path])] == [str(path)]


def written(folder: Path, rotate_bytes: int | None) -> Path:
    """
    Returns the file of a session that makes one call over and over; what it returns comes behind the next file's beginning.
    """
    folder.mkdir()
    path = folder / "calls.jsonl"
    seconds = itertools.count(1_800_000_000)
    policy = Policy([Budget(max_calls=100)])
    with JsonLines(path, rotate_bytes=rotate_bytes) as sink:
        session = policy.session("trip", records=sink, clock=lambda: next(seconds))
        for n in range(12):
            session.call("search", {"q": "inns"}, lambda *_: sink.flush() and "none")
            session.call("pay", {"n": n // 4}, lambda *_: failing(sink))
            sink.flush()
    return path


def failing(sink: JsonLines) -> None:
    sink.flush()
    raise TimeoutError("no answer")


def test_a_session_whose_records_were_rotated_is_judged_and_counted_as_one(tmp_path: Path) -> None:
    whole, parts = written(tmp_path / "whole", None), written(tmp_path / "parts", 1_500)
    assert len(rotated(parts)) > 5
    policy = Policy.load("strict")

    def figures(place: Path) -> tuple[Any, ...]:
        files, report = inputs([place]), Report()
        calls = [
            (call.source, call.call_index, call.ts_ms, call.error_type, call.has_result)
            for call in calls_of(files, report)
        ]
        [judgement] = judge_files([policy], files)
        told = judgement.to_dict() | {"seconds": 0}
        read_as = list(told.pop("read_as").values())
        return calls, report.notices, told, read_as, count_files(policy, files).sessions

    assert figures(parts) == figures(parts.parent) == figures(whole)
    away = tmp_path / "away"
    away.mkdir()
    parts.rename(away / "calls.999999.jsonl")
    for part in rotated(parts):
        part.rename(away / part.name)
    assert figures(away) == figures(whole)


def test_training_on_a_file_reads_what_it_was_before_it_was_rotated(tmp_path: Path) -> None:
    path = written(tmp_path / "parts", 1_500)
    whole = written(tmp_path / "whole", None)
    failures = [read([place]).facts.failures for place in (path, path.parent, whole)]
    assert failures == [failures[0]] * 3
    assert failures[0] > 3
