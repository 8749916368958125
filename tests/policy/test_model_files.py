"""
Model files are loaded, and loaded again when they change, never in part.
"""

import logging
import os
import threading

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, Retryable
from guardrails.core.retries.model_format import MAX_BYTES
from guardrails.offline.learning.train import write
from guardrails.policy.model_files import CHECK_MS, ModelFiles, cold_model, read_model
from tests.core.retries.conftest import text


def names(files: ModelFiles) -> list[str]:
    return [model.name for model in files.models.loaded.values()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "retry.json"


def test_until_there_is_a_file_the_shipped_model_is_asked(path: Path) -> None:
    files = ModelFiles([str(path)])
    assert files.models.loaded[str(path)] is cold_model()
    path.write_bytes(text())
    files.refresh(CHECK_MS)
    assert names(files) == [read_model(path).name]


def test_a_changed_file_is_looked_for_at_most_every_few_seconds(path: Path) -> None:
    path.write_bytes(text())
    files = ModelFiles([str(path)])
    files.refresh(1_000_000)
    before = names(files)
    write(path, text(training={"days": [1, 2]}))
    files.refresh(1_000_000 + CHECK_MS - 1)
    assert names(files) == before
    files.refresh(1_000_000 + CHECK_MS)
    assert names(files) == [read_model(path).name] != before


def test_a_file_that_is_written_over_with_the_times_and_size_of_the_one_before_is_loaded(path: Path) -> None:
    first, second = text(training={"days": [1, 2]}), text(training={"days": [3, 4]})
    assert len(first) == len(second)
    path.write_bytes(first)
    files, found = ModelFiles([str(path)]), path.stat()
    path.write_bytes(second)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    files.refresh(CHECK_MS)
    assert names(files) == [read_model(path).name]


def test_a_clock_that_goes_back_does_not_stop_the_looking(path: Path) -> None:
    files = ModelFiles([str(path)])
    files.refresh(10**12)
    path.write_bytes(text())
    files.refresh(5)
    assert names(files) == [read_model(path).name]


@pytest.mark.parametrize(
    "bad", [b"", b"{}", text()[:-10], text().replace(b"0.25", b"0.26"), b"\x80\x04K\x01.", b"x" * (MAX_BYTES + 10)]
)
def test_a_file_that_is_no_good_leaves_what_was_loaded_and_is_told_of_once(
    bad: bytes, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(text())
    files = ModelFiles([str(path)])
    before = names(files)
    path.write_bytes(bad)
    with caplog.at_level(logging.ERROR, "guardrails"):
        for second in range(1, 60, 6):
            files.refresh(second * 1_000 + CHECK_MS)
    assert names(files) == before
    assert len(caplog.records) == 1
    assert "what was loaded before stays" in caplog.text
    path.write_bytes(text(training={"days": [1, 2]}))
    files.refresh(10**9)
    assert names(files) == [read_model(path).name] != before


def test_a_file_that_is_no_good_from_the_start_leaves_the_shipped_model(path: Path) -> None:
    path.write_bytes(b"no model")
    assert ModelFiles([str(path)]).models.loaded[str(path)] is cold_model()


def test_a_file_that_was_deleted_leaves_what_was_loaded(path: Path) -> None:
    path.write_bytes(text())
    files = ModelFiles([str(path)])
    before = names(files)
    path.unlink()
    files.refresh(CHECK_MS)
    assert names(files) == before


def test_sixteen_threads_score_while_the_model_is_replaced(path: Path, clock: Any, quick_switches: None) -> None:
    texts = [text(training={"days": [n, n]}) for n in range(2)]
    path.write_bytes(texts[0])
    known = set()
    for data in texts:
        path.write_bytes(data)
        known.add(read_model(path).name)
    policy = Policy([Retryable(model=str(path), max_retries=99, max_same_error=999)])
    sink: list[dict[str, Any]] = []
    stop = threading.Event()
    broken: list[BaseException] = []

    def fail(tool: str, arguments: Any) -> None:
        raise TimeoutError("slow")

    def score(number: int) -> None:
        try:
            now = [clock.now]
            session = policy.session(f"s{number}", clock=lambda: now[0])
            for _ in range(40):
                now[0] += 200
                envelope = session.call("search", {"n": number}, fail)
                assert envelope.judged is not None
                assert envelope.judged.model in known
                sink.append({"p": envelope.retry_success_probability})
        except BaseException as error:
            broken.append(error)

    def replace() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            write(path, texts[turn % 2])

    writer = threading.Thread(target=replace)
    threads = [threading.Thread(target=score, args=(number,)) for number in range(16)]
    writer.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    writer.join()
    assert broken == []
    assert len(sink) == 16 * 40


def test_writing_leaves_the_old_file_where_it_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in path.parent.iterdir()] == [path.name]
