import threading

from pathlib import Path
from typing import Any

import pytest

from guardrails.sinks import JsonLines
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
