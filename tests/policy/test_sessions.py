"""
The sessions of a host's threads.
"""

import uuid

import pytest

from guardrails import Budget, MemoryStore, Policy
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
    monkeypatch.setattr(sessions, "MAX_KEPT", 2)
    made = Sessions(Policy([Budget(max_calls=1)]))
    first = made.of("t")
    first.call("f", {}, lambda *_: 1)
    made.of("u"), made.of("v")
    assert made.of("t") is not first
    assert made.of("t").exhausted
