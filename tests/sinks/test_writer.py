import contextlib
import os
import tempfile

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, append
from tests.sinks.conftest import NEVER_MS, Heard, locked


@contextlib.contextmanager
def a_directory(folder: Path) -> Iterator[Path]:
    yield folder


@contextlib.contextmanager
def a_full_disk(folder: Path) -> Iterator[Path]:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    yield Path("/dev/full")


@contextlib.contextmanager
def a_fifo_nobody_reads(folder: Path) -> Iterator[Path]:
    os.mkfifo(folder / "fifo")
    yield folder / "fifo"


@contextlib.contextmanager
def a_folder_that_became_a_file(folder: Path) -> Iterator[Path]:
    (folder / "file").touch()
    yield folder / "file" / "records.jsonl"


@contextlib.contextmanager
def a_read_only_file(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "records.jsonl").touch(mode=0o444)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(name) / "records.jsonl"
        finally:
            os.seteuid(user)


@contextlib.contextmanager
def a_file_locked_by_another(folder: Path) -> Iterator[Path]:
    with locked(folder / "records.jsonl"):
        yield folder / "records.jsonl"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (a_directory, "Is a directory"),
        (a_full_disk, "No space left on device"),
        (a_fifo_nobody_reads, "No such device or address"),
        (a_folder_that_became_a_file, "Not a directory"),
        (a_read_only_file, "Permission denied"),
        (a_file_locked_by_another, "locked by another process"),
    ],
)
def test_a_fault_is_counted_and_said_once_and_the_caller_goes_on(
    fault: Callable[[Path], contextlib.AbstractContextManager[Path]],
    why: str,
    tmp_path: Path,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(append, "WAIT_S", 0.01)
    with fault(tmp_path) as path:
        sink = JsonLines(path, max_queued_bytes=1000, flush_interval_ms=NEVER_MS)
        for n in range(7):
            sink.put({"n": n}, 100)
        assert not sink.flush()
        assert not sink.flush()
        for n in range(7, 12):
            sink.put({"n": n}, 100)
        assert not sink.flush()
        sink.close()

    assert (sink.written, sink.dropped, sink.failed) == (0, 2, 10)
    assert heard.messages == [
        f"records cannot be written to `{path}`: {why} (7 waiting)",
        f"records for `{path}` are dropped: over 1000 bytes queued (2 so far)",
        f"10 records for `{path}` could not be written and are lost",
    ]
