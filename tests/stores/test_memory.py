"""
Sessions in memory, and a guard that asks its session from inside of a call.
"""

import logging

from typing import Any

import pytest

from guardrails import Budget, Guard, Policy, guard
from guardrails.core.guards.base import SessionState
from guardrails.stores.memory import MemoryStore


def test_a_state_that_cannot_be_packed_stays_and_fails_no_other_session(caplog: pytest.LogCaptureFixture) -> None:
    def spoil(states: list[SessionState]) -> None:
        states[0].now_ms = 1 << 80
        states[0].own["odd"] = object()

    def count(states: list[SessionState]) -> int:
        states[0].calls += 1
        return states[0].calls

    store = MemoryStore(live=1)
    store.update(["odd"], spoil)
    with caplog.at_level(logging.ERROR):
        seen = [[store.update([key], count) for key in ("a", "b", "odd")] for _ in range(3)]
    assert seen == [[n, n, n] for n in (1, 2, 3)]
    logged = {record.getMessage().partition(",")[0] for record in caplog.records}
    assert logged == {"the state of `odd` cannot be packed"}
    assert (len(store._live), len(store)) == (1, 3)
    store.forget("odd")
    assert store.update(["odd"], count) == 1


@guard
class Curious(Guard):
    """
    Asks the session itself instead of the state.
    """

    ask: Any = None

    def check(self, *_: Any) -> None:
        self.ask()


def test_a_guard_that_asks_its_session_is_a_guard_that_failed() -> None:
    policy: Policy = Policy([Curious(ask=lambda: policy.session("s").exhausted), Budget(max_calls=3)])
    session = policy.session("s")
    assert session.call("t", {}, lambda *_: "ran").code == "call.error"
    assert session.ledger.progress["calls_used"] == 0
