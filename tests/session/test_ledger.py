"""
The state of a session behind its store: what follows where that cannot be reached.
"""

from collections.abc import Callable
from typing import Any

import pytest

from guardrails import Budget, Policy, Session
from guardrails.errors import SessionError
from guardrails.sinks import MemorySink
from tests.session.conftest import Faulty
from tests.tables import table


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
    session.call("t", {"n": 1}, lambda *_: "ran")
    store.down = True
    return session, store


@table("name", ASKED)
def test_without_a_store_a_session_that_allows_goes_on_with_what_is_known(name: str, clock: Any) -> None:
    sink = MemorySink()
    session, store = cut_off("allow", clock, sink)
    ask, answer = ASKED[name]
    assert ask(session) == answer
    assert session.call("t", {"n": 2}, lambda *_: "ran").value == "ran"
    store.down = False
    assert session.ledger.progress["calls_used"] == 1
    assert session.call("t", {"n": 3}, lambda *_: "ran").ok
    assert [record["n"] for record in sink.records if record["n"]] == [1, 2, 3, 4]


@table("name", [*(name for name in ASKED if name not in {"close", "digest"}), *MOVED])
def test_without_a_store_a_session_that_denies_refuses_calls_and_raises_elsewhere(name: str, clock: Any) -> None:
    session, _ = cut_off("deny", clock)
    with pytest.raises(OSError, match="the database is gone"):
        (MOVED.get(name) or ASKED[name][0])(session)
    assert session.call("t", {"n": 2}, lambda *_: "ran").code == "store.error"


def test_the_digest_is_an_answer_even_without_a_store(clock: Any) -> None:
    session, _ = cut_off("deny", clock)
    assert session.digest() == "What was done cannot be told: the state of the session could not be read."


@table("name", MOVED)
def test_without_a_store_no_limit_is_moved_unseen(name: str, clock: Any) -> None:
    session, _ = cut_off("allow", clock)
    with pytest.raises(OSError, match="the database is gone"):
        MOVED[name](session)


def test_a_child_is_closed_without_a_store_where_that_is_allowed(clock: Any) -> None:
    session, store = cut_off("allow", clock)
    store.down = False
    with session.child("kid", max_calls=1):
        store.down = True


def test_what_a_session_does_not_allow_is_an_error_whatever_the_policy_says_of_failures(clock: Any) -> None:
    session = Policy([Budget(max_calls=3)], on_error="allow").session("s", clock=clock)
    with pytest.raises(SessionError, match="asks for max_calls 5"):
        session.child("kid", max_calls=5)
