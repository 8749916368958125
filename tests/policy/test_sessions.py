"""
The sessions of a host's threads.
"""

import asyncio
import uuid

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, MemoryStore, Policy, SqliteStore
from guardrails.policy import sessions
from guardrails.policy.sessions import Sessions
from guardrails.session.session import scoped


@pytest.fixture(autouse=True)
def two_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_OPEN", 2)


def called(session: Any) -> Any:
    session.call("f", {}, lambda *_: 1)
    return session


def of(calls: int = 1, **options: Any) -> Sessions:
    return Sessions(Policy([Budget(max_calls=calls)]), **options)


def test_one_thread_has_one_session_and_another_its_own() -> None:
    made, run = of(), uuid.uuid4()
    assert made.of("t") is made.of("t") is not made.of("u")
    assert made.of("a/b").id != made.of("a\\b").id
    assert made.of(run).id == str(run)


def test_a_session_that_is_given_is_that_of_every_thread() -> None:
    session = Policy([Budget(max_calls=1)]).session("s")
    made = Sessions(session)
    assert made.of("t") is made.of() is session
    made.end(session)
    assert called(session).exhausted
    with pytest.raises(TypeError, match="`records`"):
        Sessions(session, records="calls.jsonl")
    with pytest.raises(TypeError, match="no option `share`"):
        of(share={"max_calls": 5})


def test_a_run_without_a_name_is_a_session_of_its_own_and_leaves_nothing() -> None:
    store = MemoryStore()
    made = of(store=store)
    session = called(made.of())
    assert (bool(session.exhausted), bool(made.of().exhausted)) == (True, False)
    made.end(session)
    assert len(store) == 1


def test_a_session_whose_object_is_not_kept_goes_on_where_it_was() -> None:
    store = MemoryStore()
    made = of(store=store)
    first = called(made.of("t"))
    for number in range(10):
        called(made.of(number))
    assert made.of("t") is not first
    assert made.of("t").exhausted
    assert len(store) == 11, "the session of a thread is never forgotten unasked"


def test_runs_that_nobody_can_name_again_leave_nothing_though_nobody_ended_them(tmp_path: Path) -> None:
    for store in (MemoryStore(), SqliteStore(tmp_path / "s.db")):
        made = of(5, store=store)
        for number in range(20):
            called(made.of())
            called(made.of(f"run_{number}", run=True))
        asyncio.run(made.of("thread").ledger.off_loop(lambda: None))
        assert len(store) <= 3


def test_a_run_that_is_in_use_goes_on_and_can_be_ended() -> None:
    store = MemoryStore()
    made = of(5, store=store)
    used = [called(made.of()), called(scoped(made.of(), {}))]
    for number in range(10):
        made.of(number)
    for session in used:
        assert session.ledger.progress["calls_used"] == 1
        made.end(session)
    assert len(store) == 0


def test_a_store_that_fails_to_forget_a_run_fails_no_other() -> None:
    class Full(MemoryStore):
        def forget(self, key: str) -> None:
            raise OSError("no space left on device")

    made = of(5, store=Full())
    for _ in range(3):
        called(made.of())
    assert made.of("t").call("f", {}, lambda *_: 1).ok
