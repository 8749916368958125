"""
What may be lost, and what not: the promises of the module, each with its test.
"""

import contextlib
import fcntl
import signal
import struct
import time

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, ReadReport, read, rotate
from tests.sinks.conftest import PATIENCE_S, Heard, numbers, python, run


@contextlib.contextmanager
def a_full_disk(folder: Path) -> Iterator[Path]:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    yield Path("/dev/full")


@contextlib.contextmanager
def a_file_locked_by_another(folder: Path) -> Iterator[Path]:
    with (folder / "records.jsonl").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield folder / "records.jsonl"


@pytest.mark.parametrize(
    ("fault", "why"),
    [(a_full_disk, "No space left on device"), (a_file_locked_by_another, "Resource temporarily unavailable")],
)
def test_a_fault_is_said_once_and_calls_go_on(
    fault: Callable[[Path], contextlib.AbstractContextManager[Path]],
    why: str,
    tmp_path: Path,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rotate, "WAIT_S", 0.01)
    with fault(tmp_path) as path:
        durable = JsonLines(path, durable=True)
        durable.put({"n": 0}, 10)
        assert durable.undurable == 1
        heard.messages.clear()
        sink = JsonLines(path, max_queued_bytes=700)
        for n in range(7):
            sink.put({"n": n}, 100)
        sink.put({"n": 7}, 100)
        assert not sink.flush()
        assert not sink.flush()
        sink.put({"n": 8}, 100)
        sink.close()
        sink.put({"n": 9}, 100)
    assert (sink.written, sink.dropped, sink.failed) == (0, 2, 8)
    durable.close()
    assert heard.messages[:4] == [
        f"`{path}`: records are dropped: over 700 bytes wait",
        f"`{path}`: records cannot be written: {why} (7 waiting)",
        f"`{path}`: 8 of its records could not be written and are lost",
        f"`{path}`: records are dropped: the sink is closed",
    ]


def test_a_faulty_file_is_not_tried_at_every_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []

    def failing(path: Path, *_: object, **__: object) -> None:
        tries.append(path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("guardrails.sinks.json_lines.append", failing)
    sink = JsonLines(tmp_path / "records.jsonl", max_lines=4)
    for n in range(50):
        sink.put({"n": n}, 10)
    assert len(tries) == 1
    sink.close()


def test_a_record_is_written_without_anyone_asking(path: Path) -> None:
    sink = JsonLines(path)
    sink.put({"n": 1}, 10)
    until = time.monotonic() + PATIENCE_S
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < until
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
    for name in ("new.jsonl", "old.jsonl"):
        with JsonLines(tmp_path / name) as sink:
            sink.put({"n": 1}, 10)

    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "old.jsonl").stat().st_mode & 0o777 == 0o640


def test_a_torn_line_of_a_killed_process_is_ended_before_the_next(path: Path) -> None:
    path.write_bytes(b'{"n":0}\n{"n":1,"to')
    with JsonLines(path) as sink:
        sink.put({"n": 2}, 10)

    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [0, 2]
    assert report.broken == [2]


FILE_SIZE_LIMIT = """
import resource, sys
from guardrails.sinks import JsonLines

path = sys.argv[1]
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
sink = JsonLines(path)
sink.put({"n": 0}, 100)
assert sink.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
for n in range(1, 20):
    sink.put({"n": n, "text": "x" * 80}, 100)
assert not sink.flush()
assert open(path).read() == '{"n":0}\\n'
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert sink.flush()
print(sink.written, sink.dropped, sink.failed)
"""


@pytest.mark.system
def test_a_disk_that_fills_up_takes_none_of_a_batch_and_all_of_it_once_there_is_room(path: Path) -> None:
    said, complained = run(FILE_SIZE_LIMIT, path)

    assert numbers(path) == list(range(20))
    assert said.split() == ["20", "0", "0"]
    assert complained.count("File too large") == 1


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


def lost(folder: Path, *, threads: int, kind: str, after: int) -> int:
    """
    How many records a kill takes in the middle of a flood, once *after* of them were put.
    """
    told, path = folder / "told", folder / "records.jsonl"
    told.write_bytes(bytes(8 * threads))
    child = python(SATURATED, path, told, threads, kind)
    assert child.stdout is not None
    child.stdout.readline()
    until = time.monotonic() + PATIENCE_S
    while sum(struct.unpack(f"<{threads}q", told.read_bytes())) < after:
        assert time.monotonic() < until
    child.send_signal(signal.SIGKILL)
    child.communicate()
    put = struct.unpack(f"<{threads}q", told.read_bytes())
    written: dict[int, set[int]] = {each: set() for each in range(threads)}
    for record in read(path):
        written[record["thread"]].add(record["n"])
    return sum(len(set(range(1, put[each] + 1)) - written[each]) for each in range(threads))


@pytest.mark.system
@pytest.mark.parametrize("threads", [1, 8])
def test_a_kill_under_load_takes_no_more_lines_than_are_said(threads: int, tmp_path: Path) -> None:
    assert lost(tmp_path, threads=threads, kind="", after=10_000) <= 1_000


@pytest.mark.system
def test_what_waited_for_the_disk_survives_a_kill(tmp_path: Path) -> None:
    assert lost(tmp_path, threads=8, kind="durable", after=100) == 0


FORK = """
import multiprocessing, os, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")
sink = JsonLines(sys.argv[1])

def child():
    assert sink.flush()
    assert (sink.written, sink.dropped, sink.failed) == (0, 0, 0)
    sink.put({"who": "child"}, 10)

sink.put({"who": "parent"}, 10)
if (pid := os.fork()) == 0:
    child()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
sys.exit(process.exitcode)
"""


@pytest.mark.system
def test_a_forked_child_writes_its_own_records_and_not_the_parents(path: Path) -> None:
    run(FORK, path)
    assert sorted(numbers(path, "who")) == ["child", "child", "parent"]


@pytest.mark.system
@pytest.mark.parametrize("ending", ["sys.exit(3)", "raise RuntimeError", "os.kill(os.getpid(), signal.SIGINT)"])
def test_a_clean_exit_loses_nothing(path: Path, ending: str) -> None:
    put = "import os, signal, sys; from guardrails.sinks import JsonLines; JsonLines(sys.argv[1]).put({'n': 1}, 9)"
    python(f"{put}\n{ending}", path).communicate(timeout=PATIENCE_S)
    assert numbers(path) == [1]
