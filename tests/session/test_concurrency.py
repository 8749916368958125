"""
One session in many threads, tasks and pools at once.
"""

import logging
import threading

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Budget, Duplicates, MemorySink, Policy, Session, Success
from tests.conftest import together
from tests.session.conftest import Faulty, ok, replays
from tests.tables import table


@pytest.mark.usefixtures("quick_switches")
def test_16_threads_of_300_calls_against_a_cap_of_1000_admit_exactly_1000(clock: Any) -> None:
    session, ran = Policy([Budget(max_calls=1000)]).session("s", clock=clock), list[int]()

    def work(index: int) -> None:
        for n in range(300):
            session.call("t", {"thread": index, "n": n}, lambda *_: ran.append(1))

    together(work, 16)
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

        together(work, 2)
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

    together(work, 8)
    assert replays(policy, sink) == 240


# What a session hands to its sink


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


# The state of a session behind its store: what follows where that cannot be reached


ASKED: dict[str, tuple[Callable[[Session], Any], Any]] = {
    "begin_turn": (lambda s: s.begin_turn(), None),
    "request": (lambda s: s.request().allowed, True),
    "charge": (lambda s: s.charge(model="m", usage={"prompt_tokens": 5}).cost, None),
    "exhausted": (lambda s: s.exhausted, None),
    "limit_message": (lambda s: s.ledger.limit_message, None),
    "tool_choice": (lambda s: s.tool_choice("auto"), "auto"),
    "progress": (lambda s: s.ledger.progress["calls_used"], 0),
    "cost_usd": (lambda s: s.ledger.cost_usd, 0.0),
    "digest": (lambda s: s.digest().startswith("No tool was run."), True),
    "close": (lambda s: s.close(), None),
}
MOVED: dict[str, Callable[[Session], Any]] = {
    "extend": lambda s: s.extend(max_calls=1),
    "child": lambda s: s.child("kid", max_calls=1),
}


def cut_off(on_error: Any, clock: Any, sink: MemorySink | None = None) -> tuple[Session, Faulty]:
    store = Faulty()
    session = Policy([Budget(max_calls=3)], on_error=on_error).session("s", store=store, records=sink, clock=clock)
    session.call("t", {"n": 1}, ok)
    store.down = True
    return session, store


@table("name", ASKED)
def test_without_a_store_a_session_that_allows_goes_on_with_what_is_known(name: str, clock: Any) -> None:
    sink = MemorySink()
    session, store = cut_off("allow", clock, sink)
    ask, answer = ASKED[name]
    assert ask(session) == answer
    assert session.call("t", {"n": 2}, ok).value == "ok"
    store.down = False
    assert session.ledger.progress["calls_used"] == 1
    assert session.call("t", {"n": 3}, ok).ok
    assert [record["n"] for record in sink.records if record["n"]] == [1, 2, 3, 4]


NO_DIGEST = "What was done cannot be told: the state of the session could not be read."


@table("name", [*(name for name in ASKED if name not in {"close", "digest"}), *MOVED])
def test_without_a_store_a_session_that_denies_refuses_calls_and_raises_elsewhere(name: str, clock: Any) -> None:
    session, _ = cut_off("deny", clock)
    with pytest.raises(OSError, match="the database is gone"):
        (MOVED.get(name) or ASKED[name][0])(session)
    assert session.call("t", {"n": 2}, ok).code == "store.error"
    assert session.digest() == NO_DIGEST


def test_without_a_store_no_limit_is_moved_unseen_and_a_child_is_closed(clock: Any) -> None:
    session, store = cut_off("allow", clock)
    for move in MOVED.values():
        with pytest.raises(OSError, match="the database is gone"):
            move(session)
    store.down = False
    with session.child("kid", max_calls=1):
        store.down = True
