"""
What leases did, from the records of all workers: decided again exactly, and forged grants are found.
"""

import itertools

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Lease, Leases, MemorySink, MemoryStore, Policy, Session, SessionError, Success, Tool
from guardrails.core.records.replay import Record, replay_together
from guardrails.core.values.usage import Usage
from guardrails.offline.judge.exact import replayed
from guardrails.offline.readers.inputs import Input
from tests.interrupting import at


RULES = Policy(
    [Budget(max_calls=1_000)],
    tools=[Tool(name="pay", cost_usd=0.01)],
    scopes={"tenant": [Budget(max_calls=60, max_cost_usd=0.5, max_tokens=900), Lease(time=5)]},
)


def work(steps: Iterable[tuple[int, int]], workers: int = 3) -> list[list[Record]]:
    """
    The records of each worker after *steps*, each (worker, what it does).
    """
    now = [1_800_000_000.0]
    common, sinks = MemoryStore(), [MemorySink() for _ in range(workers)]
    stores = [Leases(common, records=sink, clock=lambda: now[0], timer=lambda: now[0], look=None) for sink in sinks]
    sessions = [
        RULES.session(f"s{number}", scopes={"tenant": "acme"}, store=store, records=sink, clock=lambda: now[0])
        for number, (store, sink) in enumerate(zip(stores, sinks, strict=True))
    ]
    for number, (which, what) in enumerate(steps):
        session, store = sessions[which], stores[which]
        now[0] += 0.03
        match what:
            case 0:
                store.tend()
            case 1:
                session.call("pay", {"n": number}, lambda *_: Success("paid", cost_usd=0.03))
            case 2:
                session.charge(model="m", usage=Usage(20, 5), cost_usd=0.001)
            case 3:
                session.extend(scope="tenant", max_calls=2)
            case 4:
                now[0] += 6
            case 5:
                store.close()
            case _:
                session.call("look", {"n": number}, lambda *_: "seen")
    return [list(sink.records) for sink in sinks]


def same(records: Iterable[Record]) -> bool:
    again = list(replay_together(RULES.chain, records, scopes=RULES.scopes))
    return all(one.same for one in again)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=80))
def test_what_all_workers_did_is_decided_again(steps: list[tuple[int, int]]) -> None:
    assert same(record for records in work(steps) for record in records)


STEPS = [(number % 3, 9) for number in range(70)]


def trips(records: list[list[Record]]) -> list[Record]:
    return [record for each in records for record in each if record["event"] == "lend"]


def test_a_grant_that_was_raised_is_found() -> None:
    records = work(STEPS)
    forged: Any = trips(records)[4]
    forged["granted"] = [forged["granted"][0] + 1, *forged["granted"][1:]]
    with pytest.raises(SessionError, match="was granted"):
        same(record for each in records for record in each)


def test_a_grant_that_nobody_made_is_found() -> None:
    records = work(STEPS)
    last = max((record for record in trips(records)), key=lambda record: record["shared"][1])
    calls, *others = last["granted"]
    (run, n, at), (own, own_n, own_at) = last["shared"], last["own"]
    forged = {**last, "n": last["n"] + 1, "granted": [calls + 9, *others], "known": True}
    for shared, local in (([run, n, at], [own, own_n, own_at]), ([run, n + 1, at], [own, own_n + 1, own_at])):
        made = {**forged, "shared": shared, "own": local}
        with pytest.raises(SessionError):
            same([*(record for each in records for record in each), made])


def test_calls_beyond_what_was_granted_are_found() -> None:
    records = work(STEPS)
    trip: Any = next(record for record in trips(records) if record["n"] == 2)
    trip["used"] = [trip["used"][0] + 1, *trip["used"][1:]]
    with pytest.raises(SessionError):
        same(record for each in records for record in each)


def test_the_records_of_all_workers_are_needed() -> None:
    records = work(STEPS)
    with pytest.raises(SessionError, match="gap"):
        same(record for each in records[:2] for record in each)


def test_files_of_workers_are_replayed_together(tmp_path: Path) -> None:
    files = []
    for number, records in enumerate(work(STEPS)):
        path = tmp_path / f"calls-{number}.jsonl"
        path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
        files.append(Input(str(path), found=True))
    found = replayed(RULES, files)
    assert (found.differing, found.sessions, found.calls) == (0, 3, len(STEPS)), found.first


def call(session: Session, now: list[float], ran: list[float]) -> None:
    now[0] += 0.03
    session.call("look", {"n": now[0]}, lambda *_: ran.append(now[0]))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("fresh", [True, False], ids=["with its first trip", "with parts at hand"])
def test_a_call_that_a_signal_breaks_off_is_never_over_and_a_lost_record_of_a_trip_is_named(*, fresh: bool) -> None:
    gaps = 0
    for place in itertools.count(0, 13):
        now, common, ran = [1_800_000_000.0], MemoryStore(), list[float]()
        clock = partial(now.__getitem__, 0)
        sinks = [MemorySink(), MemorySink()]
        stores = [Leases(common, records=sink, clock=clock, timer=clock, look=None) for sink in sinks]
        sessions = [
            RULES.session(f"s{number}", scopes={"tenant": "acme"}, store=store, records=sink, clock=clock)
            for number, (store, sink) in enumerate(zip(stores, sinks, strict=True))
        ]
        for session in [] if fresh else sessions * 3:
            call(session, now, ran)
        reached = at(place, partial(call, sessions[0], now, ran))
        for _ in range(60):
            for session, store in zip(sessions, stores, strict=True):
                call(session, now, ran)
                store.tend()
            now[0] += 0.2
        assert 58 <= len(ran) <= 60, place
        assert [session._read(lambda state, _: len(state.pending)) for session in sessions] == [0, 0], place
        records = {(each["session_id"], each["run"], each["n"]): each for sink in sinks for each in sink.records}
        told = said(records.values())
        assert told == "" or "have a gap before event" in told, place
        gaps += bool(told)
        if not reached:
            break
    assert bool(gaps) is fresh


def said(records: Iterable[Record]) -> str:
    """
    Why *records* cannot be decided again; empty if they can, and are the same.
    """
    try:
        return "" if same(records) else "differs"
    except SessionError as error:
        return str(error)
