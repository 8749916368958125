from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, ReadReport, read
from tests.sinks.conftest import PATIENCE_S, Heard, locked, numbers, python, run


def test_a_new_file_is_its_owners_only_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").touch()
    (tmp_path / "old.jsonl").chmod(0o640)
    for name in ("new.jsonl", "old.jsonl"):
        with JsonLines(tmp_path / name) as sink:
            sink.put({"n": 1}, 10)

    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "old.jsonl").stat().st_mode & 0o777 == 0o640


def test_a_folder_deleted_while_running_is_made_again(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "a" / "b" / "records.jsonl"
    with JsonLines(path) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush()
        path.unlink()
        path.parent.rmdir()
        path.parent.parent.rmdir()
        sink.put({"n": 2}, 10)
        assert sink.flush()

    assert numbers(path) == [2]
    assert heard.messages == []


def test_a_file_deleted_between_opening_and_locking_takes_no_records_with_it(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=0) as sink:
        with locked(path):
            sink.put({"n": 1}, 10)
            while sink._writer.fd < 0:
                pass
            path.unlink()

        while not sink.flush():
            pass

    assert numbers(path) == [1]


def test_a_file_moved_away_by_rotation_is_left_alone(path: Path) -> None:
    with JsonLines(path) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush()
        path.rename(path.with_suffix(".1"))
        sink.put({"n": 2}, 10)

    assert (numbers(path.with_suffix(".1")), numbers(path)) == ([1], [2])


def test_a_torn_line_of_a_killed_process_is_ended_before_the_next(path: Path) -> None:
    path.write_bytes(b'{"n":0}\n{"n":1,"to')
    with JsonLines(path) as sink:
        sink.put({"n": 2}, 10)

    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [0, 2]
    assert report.broken == [2]


FILE_SIZE_LIMIT = """
import resource, sys
from guardrails.sinks import JsonLines, read

path = sys.argv[1]
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
sink = JsonLines(path)
for n in range(20):
    sink.put({"n": n, "text": "x" * 80}, 100)
assert not sink.flush()
assert not sink.flush()
data = open(path, "rb").read()
assert data.endswith(b"}\\n") and len(data) <= 1000, data[-80:]
assert sink.written == data.count(b"\\n") == len(list(read(path))) > 5
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert sink.flush()
sink.close()
print(sink.written, sink.dropped, sink.failed)
"""


@pytest.mark.system
def test_a_disk_that_fills_up_within_a_line_leaves_whole_lines(path: Path) -> None:
    said, complained = run(FILE_SIZE_LIMIT, path)

    kept = numbers(path)
    assert kept == list(range(len(kept)))
    assert said.split() == [str(len(kept)), "0", str(20 - len(kept))]
    assert complained.count("File too large") == 1


@pytest.mark.system
def test_when_there_is_room_again_the_rest_is_written(path: Path) -> None:
    said, _ = run(FILE_SIZE_LIMIT, path, "room again")

    assert numbers(path) == list(range(20))
    assert said.split() == ["20", "0", "0"]


@pytest.mark.system
def test_four_processes_write_one_file_and_every_line_is_whole(path: Path) -> None:
    script = """
import sys
from guardrails.sinks import JsonLines

with JsonLines(sys.argv[1], flush_interval_ms=1) as sink:
    for n in range(1000):
        sink.put({"process": sys.argv[2], "n": n, "text": "x" * (n % 300)}, 300)
"""
    processes = [python(script, path, name) for name in "abcd"]
    for process in processes:
        _, complained = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, complained) == (0, b"")

    report = ReadReport()
    records = list(read(path, report))
    assert (report.lines, report.broken) == (4000, [])
    for name in "abcd":
        assert [record["n"] for record in records if record["process"] == name] == list(range(1000))
