"""
What a session hands to its sink.
"""

import logging

from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.sinks import MemorySink


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
