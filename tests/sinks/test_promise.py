"""
What a kill may take of the records, what waits for the disk, and files that are rotated.
"""

import json
import re
import signal
import time

from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, Record, read
from guardrails.sinks.rotate import rotated
from tests.sinks.conftest import NEVER_MS, Heard, numbers, python, run, together


SATURATED = """
import os, sys, threading
from guardrails.sinks import JsonLines

path, told, threads, durable = sys.argv[1], os.open(sys.argv[2], os.O_RDWR), int(sys.argv[3]), sys.argv[4] == "durable"
import mmap
put = mmap.mmap(told, 8 * threads)
sink = JsonLines(path, durable=durable)

def puts(thread):
    n = 0
    while True:
        n += 1
        if not durable:
            # Told before: a kill in between counts for the worse.
            put[8 * thread : 8 * thread + 8] = n.to_bytes(8, "little")
        sink.put({"thread": thread, "n": n, "text": "x" * 300}, 400)
        if durable:
            put[8 * thread : 8 * thread + 8] = n.to_bytes(8, "little")

for thread in range(threads):
    threading.Thread(target=puts, args=(thread,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


def lost(folder: Path, *, threads: int, kind: str, after_s: float) -> int:
    """
    How many records a kill in the middle of a flood takes.
    """
    told, path = folder / "told", folder / "records.jsonl"
    told.write_bytes(bytes(8 * threads))
    child = python(SATURATED, path, told, threads, kind)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(after_s)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    put = [int.from_bytes(told.read_bytes()[8 * each : 8 * each + 8], "little") for each in range(threads)]
    written: dict[int, set[int]] = {each: set() for each in range(threads)}
    for record in read(path):
        written[record["thread"]].add(record["n"])
    assert sum(put) > 100
    return sum(len(set(range(1, put[each] + 1)) - written[each]) for each in range(threads))


@pytest.mark.system
@pytest.mark.parametrize("threads", [1, 8])
def test_a_kill_under_load_takes_no_more_lines_than_are_said(threads: int, tmp_path: Path) -> None:
    # Those that may wait, the batch that is being written, and one in the hand of each thread.
    batch = 2 * 64 * 1024 // 300
    assert lost(tmp_path, threads=threads, kind="", after_s=0.6) <= 1_000 + batch + threads


@pytest.mark.system
def test_what_waited_for_the_disk_survives_a_kill(tmp_path: Path) -> None:
    assert lost(tmp_path, threads=8, kind="durable", after_s=0.6) == 0


def test_a_disk_that_fails_holds_nobody_up_for_long(tmp_path: Path, heard: Heard) -> None:
    (tmp_path / "folder").write_text("none")
    sink = JsonLines(tmp_path / "folder" / "records.jsonl", durable=True)
    sink.put({"n": 1}, 10)
    assert sink.undurable == 1
    assert len(heard.about("not on the disk")) == 1
    sink.close()


def test_whoever_puts_more_than_may_wait_waits_for_room(path: Path) -> None:
    with JsonLines(path, max_lines=10, flush_interval_ms=NEVER_MS) as sink:
        for n in range(500):
            sink.put({"n": n}, 10)
            assert len(sink._queue) <= 10
    assert numbers(path) == list(range(500))


def test_each_reason_for_a_drop_has_its_own_count_and_words(path: Path, heard: Heard) -> None:
    sink = JsonLines(path, max_queued_bytes=100, flush_interval_ms=NEVER_MS)
    for _ in range(3):
        sink.put({"n": 1}, 101)
    sink.close()
    for _ in range(2):
        sink.put({"n": 2}, 1)
    assert sink.dropped_by == {"full": 3, "closed": 2}
    assert sink.dropped == 5
    assert [message.partition("dropped: ")[2] for message in heard.about("dropped")] == [
        "over 100 bytes queued (3 so far)",
        "the sink is closed",
    ]


def test_a_file_that_would_grow_too_large_is_renamed_and_all_are_read_in_order(path: Path) -> None:
    with JsonLines(path, rotate_bytes=2_000) as sink:
        for n in range(100):
            sink.put({"n": n, "text": "x" * 90}, 10)
            assert sink.flush()
    names = sorted(each.name for each in path.parent.iterdir())
    assert names[:2] == ["records.000001.jsonl", "records.000002.jsonl"]
    assert names[-1] == "records.jsonl"
    assert all(each.stat().st_size <= 2_000 for each in path.parent.iterdir())
    assert numbers(path) == list(range(100))


def test_of_rotated_files_the_latest_are_kept(path: Path) -> None:
    with JsonLines(path, rotate_bytes=200, keep=2) as sink:
        for n in range(50):
            sink.put({"n": n, "text": "x" * 90}, 10)
            assert sink.flush()
    assert len(rotated(path)) == 2
    found = numbers(path)
    assert found == list(range(found[0], 50))


def test_a_file_is_rotated_once_its_first_record_is_old(path: Path) -> None:
    old: Record = {"n": 1, "ts_ms": round((time.time() - 7_200) * 1000)}
    path.write_text(json.dumps(old, separators=(",", ":")) + "\n")
    with JsonLines(path, rotate_after="1h") as sink:
        for n in (2, 3):
            sink.put({"n": n, "ts_ms": round(time.time() * 1000)}, 10)
            assert sink.flush()
    assert numbers(rotated(path)[0]) == [1]
    assert numbers(path) == [1, 2, 3]


def test_a_clock_of_its_own_rotates_nothing(path: Path) -> None:
    last_year = round((time.time() - 366 * 86_400) * 1000)
    with JsonLines(path, rotate_after="1h") as sink:
        for n, at_ms in enumerate((last_year, 1_000_000_000_000, 9_000_000_000_000, 1_000_000_000_001)):
            sink.put({"n": n, "ts_ms": at_ms}, 10)
            assert sink.flush()
    assert rotated(path) == []


ROTATING = """
import sys
from guardrails.sinks import JsonLines

with JsonLines(sys.argv[1], rotate_bytes=4_000, flush_interval_ms=1) as sink:
    for n in range(400):
        sink.put({"n": n, "who": sys.argv[2], "text": "x" * 60}, 10)
        if n % 5 == 0:
            sink.flush()
assert (sink.written, sink.failed, sink.dropped) == (400, 0, 0)
"""


@pytest.mark.system
def test_processes_that_rotate_one_file_lose_no_line_and_tear_none(path: Path) -> None:
    together(*[lambda who=who: run(ROTATING, path, who) for who in "abcd"])
    found: dict[str, list[int]] = {}
    for record in read(path):
        found.setdefault(record["who"], []).append(record["n"])
    assert found == {who: list(range(400)) for who in "abcd"}
    assert len(rotated(path)) > 10
    assert all(re.fullmatch(r"records\.\d{6}\.jsonl", each.name) for each in rotated(path))


@pytest.mark.parametrize("wrong", [{"keep": 0}, {"rotate_bytes": 0}, {"rotate_after": "soon"}])
def test_a_setting_that_is_none_is_refused(path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)) if wrong != {"rotate_after": "soon"} else "soon"):
        JsonLines(path, **wrong)  # type: ignore[arg-type]
