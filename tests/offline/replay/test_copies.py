"""
Files that hold the same calls: checkpoints, forks, copies and rotated parts of sessions count as one.
"""

import gzip
import itertools
import json

from pathlib import Path
from typing import Any

import yaml

from guardrails import Budget, Duplicates, JsonLines, Policy
from guardrails.offline.learning.rows import read
from guardrails.offline.replay.exact import replayed
from guardrails.offline.replay.run import judge_files
from guardrails.offline.report.quality import count_files
from guardrails.offline.transcripts import RecordedCall
from guardrails.offline.transcripts.files import add_once, inputs
from guardrails.sinks.rotate import rotated
from tests.tables import table


COPIES = yaml.safe_load(Path(__file__).with_name("copies.yaml").read_text(encoding="utf-8"))
ALWAYS = Policy([Duplicates(window=5), Budget(max_calls=400)], name="always")


def made(numbers: list[int], session: str = "s", source: str = "one", **other: Any) -> list[RecordedCall]:
    calls = [RecordedCall(session, "Read", {"path": f"{n}.py"}, source, n, id=f"toolu_{n}") for n in numbers]
    for call in calls:
        call.turn, call.ts_ms = call.call_index + 1, 1_800_000_000_000 + 1000 * call.call_index
        for name, value in other.items():
            setattr(call, name, value)
    return calls


@table("files, calls", COPIES)
def test_a_call_is_a_copy_by_its_tool_arguments_id_and_time(files: list[dict[str, Any]], calls: list[Any]) -> None:
    known: dict[Any, RecordedCall] = {}
    for file in files:
        add_once(made(**file), known)
    assert [[call.source, call.session_id, call.call_index] for call in known.values()] == calls


def lines(calls: int, *, over: bool = True) -> str:
    """
    A session of *calls*: every third repeats the one before, every fifth fails. The last is *over*, or has no result yet.
    """
    made = []
    for n in range(calls):
        call = {"session_id": "s", "id": f"toolu_{n}", "tool": "Read", "ts": 1.8e9 + n, "result": f"{n - n % 3 // 2}"}
        made.append({**call, "arguments": {"path": call["result"]}, "is_error": n % 5 == 4})
    if not over:
        made[-1] |= {"result": None, "is_error": None}
    return "\n".join(map(json.dumps, made))


def figures(*places: Path) -> tuple[Any, ...]:
    """
    What a judgement, a report and training find, but for the names of files.
    """
    files = inputs(places)
    judged = judge_files([ALWAYS], files)[0].total.to_dict()
    tallies = [tally.to_dict() for tally in count_files(ALWAYS, files).tallies.values()]
    return judged, tallies, read(places).facts.total


@table("many", [3, 20])
def test_a_copy_in_any_form_and_number_counts_once(many: int, tmp_path: Path) -> None:
    folder, text = tmp_path / str(many), lines(60)
    folder.mkdir()
    (folder / "a.jsonl").write_text(text)
    alone = figures(folder / "a.jsonl")
    for number in range(many):
        (folder / f"copy {number}.jsonl").write_text(text)
    (folder / "z.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert figures(folder) == figures(folder / "z.jsonl.gz", folder) == alone


def test_a_name_that_another_file_has_is_another_session(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text('{"session_id": "s", "tool": "t", "arguments": {}, "result": "x"}')
    total = judge_files([ALWAYS], inputs([tmp_path]))[0].total
    assert (total.sessions, total.refused) == (3, 0)


def test_a_session_that_was_kept_in_the_middle_of_a_call_goes_on_in_the_next_file(tmp_path: Path) -> None:
    for n in (10, 25, 40, 60):
        (tmp_path / f"{n}.jsonl").write_text(lines(n, over=n == 60))
    assert figures(tmp_path) == figures(tmp_path / "60.jsonl")
    assert "copies of calls" in count_files(ALWAYS, inputs([tmp_path])).report.notices[0]


def written(folder: Path, rotate_bytes: int | None) -> Path:
    """
    Returns the file of a session; what a call returns may come behind the next file's beginning.
    """
    folder.mkdir()
    seconds = itertools.count(1_800_000_000)
    with JsonLines(folder / "calls.jsonl", rotate_bytes=rotate_bytes) as sink:
        policy = Policy([Duplicates(window=5), Budget(max_calls=400)])
        session = policy.session("trip", records=sink, clock=lambda: next(seconds))
        for n in range(12):
            session.call("search", {"q": n // 2}, lambda *_: sink.flush() and "none")
            session.call("pay", {"n": n // 4}, lambda *_: sink.flush() or 1 / 0)
            sink.flush()
    return folder / "calls.jsonl"


def test_records_that_were_rotated_or_are_given_twice_are_those_of_one_file(tmp_path: Path) -> None:
    whole, parts = written(tmp_path / "whole", None), written(tmp_path / "parts", 1_500)
    earlier = rotated(parts)
    assert len(earlier) > 5
    for given in ([parts], [tmp_path / "parts"], [*earlier, parts]):
        assert [[*each.parts.values()] for each in inputs(given)] == [[*earlier, parts]]
        assert figures(*given) == figures(whole)
    (tmp_path / "copy.jsonl").write_bytes(b"".join(part.read_bytes() for part in [*earlier, parts]))
    again = replayed(ALWAYS, inputs([tmp_path / "copy.jsonl", parts]))
    assert (again.same, again.calls) == (True, 24)
    parts.unlink()
    assert replayed(ALWAYS, inputs([parts])).calls < 24


def test_records_of_a_newer_library_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with JsonLines(path) as sink, ALWAYS.session("one", records=sink) as session:
        session.call("Read", {}, lambda *_: "text")
    newer = path.read_text().replace('"schema_version":1', '"schema_version":7').replace('"one"', '"two"')
    path.write_text(path.read_text() + newer)
    assert len(judge_files([ALWAYS], inputs([path]))[0].report.broken) == newer.count("\n")
    exact = replayed(ALWAYS, inputs([path]))
    assert (exact.calls, exact.first) == (1, [])
    assert exact.notices[0].endswith("records of schema version 7, this library reads 1: upgrade toolcall-guardrails")
