"""
What a file may lose, and what not; how it is rotated by one of many processes, and read back as one.
"""

import fcntl
import json
import re
import resource
import struct
import sys
import time

from pathlib import Path
from typing import Any

import pytest

from guardrails.sinks import JsonLines, ReadReport, Record, by_session, read, rotate
from guardrails.sinks.rotate import rotated
from tests.children import child, ran, until
from tests.conftest import together
from tests.sinks.conftest import numbers
from tests.tables import table


FULL = Path("/dev/full")
SATURATED, FORKING, ROTATING = (
    Path(__file__).with_name(f"{name}.py.txt").read_text() for name in ("saturated", "forking", "rotating")
)
"""Programs that put records, each until something happens to it."""


@pytest.mark.usefixtures("no_timer")
@table("fault, why", [("full", "No space left on device"), ("locked by another", "Resource temporarily unavailable")])
def test_a_fault_is_said_once_and_calls_go_on(
    fault: str, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "full" and not FULL.exists():
        pytest.skip("no /dev/full here")
    monkeypatch.setattr(rotate, "WAIT_S", 0.01)
    place = FULL if fault == "full" else tmp_path / "locked.jsonl"
    with place.open("ab") as file:
        if fault != "full":
            fcntl.flock(file, fcntl.LOCK_SH)
        durable = JsonLines(place, durable=True)
        durable.put({"n": 0}, 10)
        assert durable.undurable == 1
        caplog.clear()
        sink = JsonLines(place, max_queued_bytes=700)
        for n in range(8):
            sink.put({"n": n}, 100)
        assert (sink.flush(), sink.flush()) == (False, False)
        sink.put({"n": 8}, 100)
        sink.close()
        sink.put({"n": 9}, 100)
    assert (sink.written, sink.dropped, sink.failed) == (0, 2, 8)
    durable.close()
    assert caplog.messages[:4] == [
        f"`{place}`: records are dropped: over 700 bytes wait",
        f"`{place}`: records cannot be written: {why} (7 waiting)",
        f"`{place}`: 8 of its records could not be written and are lost",
        f"`{place}`: records are dropped: the sink is closed",
    ]


def test_a_record_is_written_without_anyone_asking(path: Path) -> None:
    sink = JsonLines(path)
    sink.put({"n": 1}, 10)
    until(lambda: path.exists() and path.stat().st_size)
    assert numbers(path) == [1]


def test_a_signal_handler_may_put_and_flush_while_its_thread_writes(path: Path) -> None:
    sink = JsonLines(path)

    def interrupted() -> dict[str, int]:
        sink.put({"n": 2}, 10)
        assert not sink.flush()
        return {"n": 1}

    sink.put(interrupted, 10)
    assert sink.flush()
    sink.close()
    assert numbers(path) == [1, 2]


def test_a_new_file_is_its_owners_only_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").touch()
    (tmp_path / "old.jsonl").chmod(0o640)
    for name, mode in (("new.jsonl", 0o600), ("old.jsonl", 0o640)):
        with JsonLines(tmp_path / name) as sink:
            sink.put({"n": 1}, 10)
        assert (tmp_path / name).stat().st_mode & 0o777 == mode


@pytest.mark.usefixtures("no_timer")
def test_a_disk_that_fills_up_takes_none_of_a_batch_and_all_of_it_once_there_is_room(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with JsonLines(path) as sink:
        sink.put({"n": 0}, 100)
        assert sink.flush()
        for n in range(1, 20):
            sink.put({"n": n, "text": "x" * 80}, 100)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        try:
            assert not sink.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_text() == '{"n":0}\n'
    assert numbers(path) == list(range(20))
    assert (sink.written, sink.dropped, sink.failed, caplog.text.count("File too large")) == (20, 0, 0, 1)


@pytest.mark.system
@table("threads, kind, after, most", [(1, "", 10_000, 1_000), (8, "", 10_000, 1_000), (8, "durable", 100, 0)])
def test_a_kill_under_load_takes_no_more_lines_than_are_said(
    threads: int, kind: str, after: int, most: int, tmp_path: Path
) -> None:
    path, counts = tmp_path / f"{threads}{kind}.jsonl", tmp_path / "counts"
    counts.write_bytes(bytes(8 * threads))

    def put() -> tuple[int, ...]:
        return struct.unpack(f"<{threads}q", counts.read_bytes())

    with child(sys.executable, "-c", SATURATED, path, counts, threads, kind):
        until(lambda: sum(put()) >= after)
    written = {(record["thread"], record["n"]) for record in read(path)}
    asked = {(thread, n) for thread, last in enumerate(put()) for n in range(1, last + 1)}
    assert len(asked - written) <= most


@pytest.mark.system
def test_a_forked_child_writes_its_own_records_and_not_the_parents(path: Path) -> None:
    done = ran(sys.executable, "-c", FORKING, path)
    assert done.returncode == 0, done.stderr
    assert sorted(numbers(path, "who")) == ["child", "child", "parent"]


@pytest.mark.system
@table("n, ending", enumerate(["sys.exit(3)", "raise RuntimeError", "os.kill(os.getpid(), signal.SIGINT)"], 1))
def test_a_clean_exit_loses_nothing(path: Path, n: int, ending: str) -> None:
    put = f"import os, signal, sys; from guardrails.sinks import JsonLines; JsonLines(sys.argv[1]).put({{'n': {n}}}, 9)"
    ran(sys.executable, "-c", f"{put}\n{ending}", path)
    assert numbers(path) == [*range(1, n + 1)]


def test_a_file_that_would_grow_too_large_is_renamed_and_all_are_read_in_order(path: Path) -> None:
    def write(**settings: Any) -> None:
        with JsonLines(path, **settings) as sink:
            for n in range(100):
                sink.put({"n": n, "text": "x" * 90}, 10)
                assert sink.flush()

    write(rotate_bytes=2_000)
    names = sorted(each.name for each in path.parent.iterdir())
    assert names[:2] == ["records.000001.jsonl", "records.000002.jsonl"]
    assert names[-1] == "records.jsonl"
    assert all(each.stat().st_size <= 2_000 for each in path.parent.iterdir())
    assert numbers(path) == list(range(100))
    write(rotate_bytes=200, keep=2)
    assert len(rotated(path)) == 2
    found = numbers(path)
    assert found == list(range(found[0], 100)), "the latest are kept"


def test_a_file_is_rotated_once_its_first_record_is_old(path: Path) -> None:
    old: Record = {"n": 1, "ts_ms": round((time.time() - 7_200) * 1000)}
    path.write_text(json.dumps(old, separators=(",", ":")) + "\n")
    with JsonLines(path, rotate_after="1h") as sink:
        for n in (2, 3):
            sink.put({"n": n, "ts_ms": round(time.time() * 1000)}, 10)
            assert sink.flush()
    assert numbers(rotated(path)[0]) == [1]
    assert numbers(path) == [1, 2, 3]


@pytest.mark.system
def test_processes_that_rotate_one_file_lose_no_line_and_tear_none(path: Path) -> None:
    together(lambda who: ran(sys.executable, "-c", ROTATING, path, who, check=True), 4)
    found: dict[str, list[int]] = {}
    for record in read(path):
        found.setdefault(record["who"], []).append(record["n"])
    assert found == {f"{who}": list(range(400)) for who in range(4)}
    assert len(rotated(path)) > 10
    assert all(re.fullmatch(r"records\.\d{6}\.jsonl", each.name) for each in rotated(path))


def test_broken_and_torn_lines_are_skipped_and_noted(path: Path) -> None:
    broken = b'{"n":1}\n\n[2]\n{"n":3\n\x00\x00\n{"n":4,"x":"\\ud800"}\n"text"\n{"n":5}\n' + b"[" * 5000
    path.write_bytes(broken + b'\n{"n":6,"to')
    with JsonLines(path) as sink:
        sink.put({"n": 7}, 10)
    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [1, 4, 5, 7]
    assert report == ReadReport(lines=11, broken=[3, 4, 5, 7, 9, 10])


def test_records_by_session_are_in_the_order_of_their_number() -> None:
    keys: list[Record] = [{"session_id": "a"}, {"session_id": "b"}, {}]
    records = [{**keys[0], "n": 2}, {**keys[1], "n": 1}, keys[0], {**keys[0], "n": 1}, {"n": 1}]
    assert by_session(records) == {
        "a": [{"session_id": "a", "n": 1}, {"session_id": "a", "n": 2}, {"session_id": "a"}],
        "b": [{"session_id": "b", "n": 1}],
        None: [{"n": 1}],
    }
