"""
What a session hands to its sink.
"""

import gc
import logging
import threading
import tracemalloc

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.core.tools.tool import Tool
from guardrails.session.results import Results
from guardrails.sinks import JsonLines, MemorySink


MIB = 2**20


def rows(n: int, count: int) -> list[dict[str, Any]]:
    return [{"id": n + row, "name": f"row {n + row}"} for row in range(count)]


def lowest_traced(enough: float) -> float:
    """
    Bytes that are traced between two attempts of the writer, which take their own, and without what is garbage already.
    """
    lowest, tries = float("inf"), 0
    while lowest >= enough and tries < 200:
        gc.collect()
        lowest = min(lowest, tracemalloc.get_traced_memory()[0])
        tries += 1
        threading.Event().wait(0.01)
    return lowest


@pytest.mark.system
@pytest.mark.parametrize(("arguments", "result"), [
    (lambda n: {"n": n}, lambda n: {"value": n}), (lambda n: {"n": n}, lambda n: rows(n, 20)),
    (lambda n: {"n": n, "handle": object(), "rows": rows(n, 200)}, lambda n: None),
], ids=["small", "rows", "unsigned"])  # fmt: skip
def test_what_waits_for_the_writer_takes_the_memory_that_was_set(tmp_path: Path, arguments: Any, result: Any) -> None:
    """
    A folder cannot be written to, so that all of it waits.
    """
    policy = Policy([Budget(max_calls=1_000_000)], tools=[Tool(name="t", read_only=True)])
    policy.results = Results(max_bytes=0)
    with JsonLines(tmp_path, max_queued_bytes=MIB) as sink:
        session = policy.session("s", records=sink)
        tracemalloc.start()
        try:
            calls = 0
            while not sink.dropped:
                session.call("t", arguments(calls), lambda _, given: result(given["n"]))
                calls += 1
            used = lowest_traced(1.5 * MIB)
        finally:
            tracemalloc.stop()
        assert MIB / 5 < used < 1.5 * MIB


class Full:
    """
    A sink whose first *takes* records are taken; the others raise.
    """

    written = dropped = failed = 0

    def __init__(self, takes: int) -> None:
        self.takes = takes

    def put(self, record: Any, size_hint: int) -> None:
        self.takes -= 1
        if self.takes < 0:
            raise OSError("disk full")

    def flush(self, timeout: float | None = None) -> bool:
        raise OSError("disk full")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("takes", [0, 1, 9])
def test_a_sink_that_raises_loses_its_records_and_no_call(takes: int, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setattr("guardrails.core.values.logs._messages", set())
    with caplog.at_level(logging.WARNING), Policy([Budget(max_calls=5)]).session("s", records=Full(takes)) as session:
        session.begin_turn()
        envelopes = [session.call("t", {"n": n}, lambda *_: "result") for n in range(3)]
    assert [envelope.value for envelope in envelopes] == ["result"] * 3
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the sink `Full` raised: OSError('disk full'); its records are lost"]


def test_all_events_of_a_session_carry_its_run(clock: Any) -> None:
    sink = MemorySink()
    session = Policy([Budget(max_calls=9)]).session("s", records=sink, clock=clock)
    session.charge(model="m")
    session.request()
    session.decide("t", {"n": 1}, id="a")
    session.call("t", {"n": 1}, lambda *_: 1, id="a")
    session.decide("t", {"n": 2}, id="b")
    clock.advance(700)
    session.extend(max_calls=1)
    session.call("t", {"n": 3}, lambda *_: 1)
    events = [record["event"] for record in sink.records]
    assert set(events) == {"turn", "charge", "request", "call", "claim", "settle", "extend", "expire"}
    assert len({record["run"] for record in sink.records}) == 1
    assert len(sink.records[0]["run"]) == 16
