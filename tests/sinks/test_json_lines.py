import logging
import math
import threading

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails.sinks import JsonLines, read
from guardrails.sinks.writer import BATCH_BYTES
from tests.sinks.conftest import NEVER_MS, PATIENCE_S, Heard, locked, numbers, together
from tests.tables import table


def test_a_sink_without_records_touches_no_disk_and_starts_no_thread(path: Path) -> None:
    before = threading.active_count()
    with JsonLines(path) as sink:
        assert sink.flush()
        assert threading.active_count() == before

    assert not path.exists()


def test_a_record_is_written_without_anyone_asking(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=0) as sink:
        for n in range(200):
            turned_into_a_line = threading.Event()
            sink.put({"n": n, "x": turned_into_a_line.set}, 10)
            assert turned_into_a_line.wait(PATIENCE_S)

    assert numbers(path) == list(range(200))


def test_a_full_batch_does_not_wait_for_the_interval(path: Path) -> None:
    turned_into_a_line = threading.Event()
    with JsonLines(path, flush_interval_ms=NEVER_MS) as sink:
        sink.put({"n": 1, "x": turned_into_a_line.set}, 10)
        sink.put({"n": 2}, BATCH_BYTES)
        assert turned_into_a_line.wait(PATIENCE_S)


def test_a_flush_does_not_wait_for_the_interval(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=NEVER_MS) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush(timeout=PATIENCE_S)
        assert numbers(path) == [1]


def test_a_flush_from_the_writers_own_thread_is_false_and_does_not_hang(path: Path) -> None:
    with JsonLines(path) as sink:
        sink.put({"flushed": sink.flush}, 10)

    assert list(read(path)) == [{"flushed": False}]


def test_a_relative_path_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with JsonLines("records.jsonl") as sink:
        monkeypatch.chdir(tmp_path / "elsewhere")
        sink.put({"n": 1}, 10)

    assert numbers(tmp_path / "records.jsonl") == [1]


def test_beyond_the_bound_records_are_dropped_counted_and_said_once(path: Path, heard: Heard) -> None:
    with JsonLines(path, max_queued_bytes=1000, flush_interval_ms=0) as sink:
        with locked(path):
            for n in range(30):
                sink.put({"n": n}, 100)

            assert sink.dropped == 20

        assert sink.flush()
        assert sink.written == 10
        sink.put({"n": 30}, 1000)
        sink.put({"n": 31}, 1001)

    assert numbers(path) == [*range(10), 30]
    assert sink.dropped == 21
    assert len(heard.about("are dropped: over 1000 bytes queued")) == 1


def test_an_endless_interval_is_an_interval(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=math.inf) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush()


def test_what_was_written_no_longer_counts_against_the_bound(path: Path) -> None:
    last = threading.Event()

    def then(n: int) -> Callable[[], None]:
        # The queue is never empty when a batch is done.
        return lambda: sink.put({"n": n, "next": then(n + 1)}, 100) if n < 100 else last.set()

    with JsonLines(path, max_queued_bytes=1000, flush_interval_ms=0) as sink:
        sink.put({"n": 0, "next": then(1)}, 100)
        assert last.wait(PATIENCE_S)

    assert numbers(path) == list(range(100))
    assert sink.dropped == 0


@pytest.mark.usefixtures("quick_switches")
def test_the_bound_holds_against_many_threads(path: Path) -> None:
    def puts() -> None:
        for n in range(500):
            sink.put({"n": n}, 100)

    with JsonLines(path, max_queued_bytes=100_000, flush_interval_ms=0) as sink:
        with locked(path):
            together(*[puts] * 8)
            accepted = 4000 - sink.dropped

        # One record per thread is what a lost update could cost; none is, on CPython with its lock.
        assert 1000 <= accepted <= 1008

    assert sink.written == accepted == len(numbers(path))


def test_without_a_thread_to_be_had_flush_and_close_write(path: Path) -> None:
    sink = JsonLines(path)
    usual = threading.stack_size(1 << 46)
    try:
        sink.put({"n": 1}, 10)
        assert sink.flush()
        sink.put({"n": 2}, 10)
        sink.close()
    finally:
        threading.stack_size(usual)

    assert numbers(path) == [1, 2]


def test_a_log_handler_that_raises_does_not_end_the_writer(tmp_path: Path) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError

    log = logging.getLogger("guardrails")
    broken = Broken()
    log.addHandler(broken)
    try:
        with JsonLines(tmp_path) as sink:
            sink.put({"n": 1}, 10)
            assert not sink.flush()
            assert not sink.flush()
    finally:
        log.removeHandler(broken)

    assert sink.failed == 1


def test_records_that_keep_coming_do_not_hasten_the_next_try(tmp_path: Path) -> None:
    with JsonLines(tmp_path, flush_interval_ms=NEVER_MS) as sink:
        sink.put({"n": 1}, BATCH_BYTES)
        assert not sink.flush()
        for n in range(1000):
            sink.put({"n": n}, 10_000)

        # The full batch's, the flush's, and one that was under way.
        assert 1 <= sink._writer.faults <= 3


@table(
    ("settings", "message"),
    [
        ({"arguments": "none"}, "what stays of `arguments` must be full, hash or off, not `none`"),
        ({"results": None}, "what stays of `result` must be full, hash or off, not `None`"),
        ({"redact": ("arguments..a",)}, "not a dotted path: `arguments..a`"),
        ({"redact": ("",)}, "not a dotted path: ``"),
    ],
)
def test_a_setting_that_is_not_valid_is_refused(path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace(".", r"\.") + "$"):
        JsonLines(path, **settings)


def test_a_writer_without_work_ends_after_a_flush_and_starts_again_with_the_next_record(path: Path) -> None:
    with JsonLines(path) as sink:
        for n in range(3):
            sink.put({"n": n}, 10)
            thread = sink._thread
            assert thread is not None
            assert sink.flush()
            thread.join(PATIENCE_S)
            assert (thread.is_alive(), sink._thread) == (False, None)

    assert numbers(path) == [0, 1, 2]


def test_a_writer_that_always_just_ended_loses_no_record_and_answers_every_flush(
    path: Path, quick_switches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guardrails.sinks.emptying.IDLE_S", 0)
    monkeypatch.setattr("guardrails.sinks.emptying.IDLE_AFTER_FLUSH_S", 0)
    flushed: list[bool] = []
    with JsonLines(path, flush_interval_ms=0) as sink:

        def work(own: int) -> None:
            for n in range(60):
                sink.put({"n": own * 1_000 + n}, 10)
                if n % 7 == 0:
                    flushed.append(sink.flush(PATIENCE_S))

        together(*[lambda own=own: work(own) for own in range(4)])

    assert all(flushed)
    assert sorted(numbers(path)) == [own * 1_000 + n for own in range(4) for n in range(60)]
