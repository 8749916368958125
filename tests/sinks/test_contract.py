"""
What every sink must do, run over each of them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guardrails.sinks import JsonLines, MemorySink, OnRecord, Record, Sink, read
from tests.conftest import together


Case = tuple[Sink, Callable[[], list[Record]]]


@pytest.fixture(params=["memory", "callable", "lines"])
def case(request: pytest.FixtureRequest, path: Path) -> Iterator[Case]:
    memory, seen = MemorySink(), list[Record]()
    made: dict[str, Callable[[], Case]] = {
        "memory": lambda: (memory, lambda: memory.records),
        "callable": lambda: (OnRecord(seen.append), lambda: seen),
        "lines": lambda: (JsonLines(path), lambda: list(read(path))),
    }
    sink, records = made[request.param]()
    assert isinstance(sink, Sink)
    yield sink, records
    sink.close()


def raises() -> Record:
    raise RuntimeError("password is hunter2")


def test_a_record_may_be_made_late_and_one_that_cannot_be_made_has_failed(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    sink, records = case
    assert sink.flush(timeout=0)
    for record in (lambda: {"n": 1}, raises, raises, {"n": 2}):
        sink.put(record, 100)
    assert sink.flush()
    assert records() == [{"n": 1}, {"n": 2}]
    assert (sink.written, sink.dropped, sink.failed) == (2, 0, 2)
    (message,) = caplog.messages
    assert "hunter2" not in message


@pytest.mark.usefixtures("quick_switches")
def test_no_record_of_many_threads_is_lost_or_doubled(case: Case) -> None:
    sink, records = case

    def puts(name: int) -> None:
        for n in range(300):
            sink.put({"thread": name, "n": n}, 50)
            if n % 100 == name:
                sink.flush()

    together(puts, 8)
    sink.close()
    assert sink.written == 2400
    for name in range(8):
        assert [record["n"] for record in records() if record["thread"] == name] == list(range(300))


def test_what_is_put_after_close_is_dropped_and_counted(case: Case) -> None:
    sink, records = case
    sink.put({"n": 1}, 10)
    sink.close()
    sink.put({"n": 2}, 10)
    sink.close()
    assert sink.flush()
    assert records() == [{"n": 1}]
    assert (sink.written, sink.dropped, sink.failed) == (1, 1, 0)
