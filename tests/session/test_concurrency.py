"""
One session in many threads, tasks and pools at once.
"""

import threading

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from guardrails import Budget, Duplicates, Policy, Success
from guardrails.sinks import MemorySink
from tests.replaying import replay


def in_threads(number: int, work: Callable[[int], object]) -> None:
    barrier = threading.Barrier(number)

    def run(index: int) -> None:
        barrier.wait()
        work(index)

    with ThreadPoolExecutor(number) as pool:
        list(pool.map(run, range(number)))


@pytest.mark.usefixtures("quick_switches")
def test_16_threads_of_300_calls_against_a_cap_of_1000_admit_exactly_1000(clock: Any) -> None:
    session, ran = Policy([Budget(max_calls=1000)]).session("s", clock=clock), list[int]()

    def work(index: int) -> None:
        for n in range(300):
            session.call("t", {"thread": index, "n": n}, lambda *_: ran.append(1))

    in_threads(16, work)
    assert (len(ran), session.exhausted) == (1000, "budget.max_calls")


@pytest.mark.usefixtures("quick_switches")
def test_two_concurrent_calls_of_one_id_execute_once(clock: Any) -> None:
    for number in range(50):
        session, inside = Policy([Budget(max_calls=100)]).session(f"s{number}", clock=clock), threading.Barrier(2)
        ran, codes = list[int](), list[str]()

        def execute(*_: Any, ran: Any = ran, inside: Any = inside) -> str:
            ran.append(1)
            inside.wait()
            return "done"

        def work(index: int, session: Any = session, inside: Any = inside, codes: Any = codes) -> None:
            envelope = session.call("pay", {"n": 1}, execute, id="call_0")
            if not envelope.ok:
                codes.append(envelope.code)
                inside.wait()

        in_threads(2, work)
        assert (len(ran), codes) == (1, ["call.in_flight"])


@pytest.mark.usefixtures("quick_switches")
def test_what_threads_did_replays_exactly_from_the_records(clock: Any) -> None:
    policy, sink = Policy([Budget(max_calls=150, max_cost_usd=2), Duplicates(rule="evidence", window=20)]), MemorySink()
    session = policy.session("s", records=sink, clock=clock)

    def work(index: int) -> None:
        for n in range(30):
            session.call("t", {"n": n % 7}, lambda *_: Success("same", cost_usd=0.01))
            if n % 10 == 0:
                session.charge(model="m", usage={"prompt_tokens": 3}, cost_usd=0.01)

    in_threads(8, work)
    assert sorted(r["n"] for r in sink.records) == list(range(1, len(sink.records) + 1))
    replayed = list(replay(policy.chain, sink.records))
    assert len(replayed) == 240
    assert all(again.same for again in replayed)
