"""
The sessions of a host's threads.
"""

import asyncio
import uuid

from pathlib import Path

import pytest

from guardrails import Budget, MemoryStore, Policy, SqliteStore, scoped
from guardrails.policy import sessions
from guardrails.policy.sessions import Sessions


def test_one_thread_has_one_session_and_another_its_own() -> None:
    made = Sessions(Policy([Budget(max_calls=1)]))
    assert made.of("t") is made.of("t")
    assert made.of("t") is not made.of("u")
    assert made.of("a/b").id != made.of("a\\b").id
    run = uuid.uuid4()
    assert made.of(run).id == str(run)


def test_a_session_that_is_given_is_that_of_every_thread() -> None:
    session = Policy([Budget(max_calls=1)]).session("s")
    made = Sessions(session)
    assert made.of("t") is made.of() is session
    made.end(session)
    session.call("f", {}, lambda *_: 1)
    assert session.exhausted
    with pytest.raises(TypeError, match="`records`"):
        Sessions(session, records="calls.jsonl")
    with pytest.raises(TypeError, match="no option `share`"):
        Sessions(Policy([]), share={"max_calls": 5})  # type: ignore[call-arg]


def test_a_run_without_a_name_is_a_session_of_its_own_and_leaves_nothing() -> None:
    store = MemoryStore()
    made = Sessions(Policy([Budget(max_calls=1)]), store=store)
    session = made.of()
    session.call("f", {}, lambda *_: 1)
    assert session.exhausted
    assert not made.of().exhausted
    made.end(session)
    assert len(store) == 1


def test_a_session_whose_object_is_not_kept_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_OPEN", 2)
    made = Sessions(Policy([Budget(max_calls=1)]))
    first = made.of("t")
    first.call("f", {}, lambda *_: 1)
    made.of("u"), made.of("v")
    assert made.of("t") is not first
    assert made.of("t").exhausted


def test_runs_that_nobody_can_name_again_leave_nothing_though_nobody_ended_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sessions, "MAX_OPEN", 2)
    for store in (MemoryStore(), SqliteStore(tmp_path / "s.db")):
        made = Sessions(Policy([Budget(max_calls=5)]), store=store)
        for number in range(20):
            made.of().call("f", {}, lambda *_: 1)
            made.of(f"run_{number}", run=True).call("f", {}, lambda *_: 1)
        asyncio.run(made.of("kept").ledger.off_loop(lambda: None))
        assert len(store) <= 3


def test_a_run_whose_session_is_held_or_whose_copy_is_goes_on_and_can_be_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "MAX_OPEN", 2)
    store = MemoryStore()
    made = Sessions(Policy([Budget(max_calls=5)]), store=store)
    held, copied = made.of(), scoped(made.of(), {})
    for session in (held, copied):
        session.call("f", {}, lambda *_: 1)
    for number in range(10):
        made.of(number)
    for session in (held, copied):
        assert session.ledger.progress["calls_used"] == 1
        made.end(session)
    assert len(store) == 0


def test_the_session_of_a_thread_is_never_forgotten_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_OPEN", 2)
    store = MemoryStore()
    made = Sessions(Policy([Budget(max_calls=5)]), store=store)
    for number in range(10):
        made.of(number).call("f", {}, lambda *_: 1)
    assert len(store) == 10


def test_a_store_that_fails_to_forget_a_run_fails_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(MemoryStore):
        def forget(self, key: str) -> None:
            raise OSError("no space left on device")

    monkeypatch.setattr(sessions, "MAX_OPEN", 1)
    made = Sessions(Policy([Budget(max_calls=5)]), store=Full())
    made.of().call("f", {}, lambda *_: 1)
    assert made.of("t").call("f", {}, lambda *_: 1).ok
