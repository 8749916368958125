"""
What the tests of sessions share: executors, a session's state as a store has it, a store that fails, records that are decided again.
"""

import json

from typing import Any

from guardrails import Envelope, MemorySink, MemoryStore, Policy
from guardrails.core.guards.base import SessionState
from guardrails.core.packing import pack, unpack
from tests.replaying import replay


def ok(*_: Any) -> str:
    return "ok"


def never(*_: Any) -> None:
    raise AssertionError("it must not run")


def read(envelope: Envelope) -> dict[str, Any]:
    """
    The fields that the model reads.
    """
    text: dict[str, Any] = json.loads(envelope.to_json())
    return text


def state_of(store: Any, key: str = "s") -> SessionState:
    """
    The state of *key* as it is once it was packed and read again.
    """
    states: list[SessionState] = []
    store.update((key,), lambda kept: states.append(unpack(pack(kept[0]))))
    return states[0]


def replays(policy: Policy, sink: MemorySink, store: Any = None, key: str = "s") -> int:
    """
    How many calls of *sink* are decided the same again; the state of *key* in *store*, too, is what its records make of it.
    """
    # The state is that of the life of the last of them.
    records = sorted(sink.records, key=lambda one: bool(one["session_id"] == key))
    state = SessionState()
    again = replay(policy.chain, records, state, scopes=policy.scopes)
    assert all(one.same for one in again)
    if store is not None:
        assert state == state_of(store, key)
    return len(again)


class Faulty(MemoryStore):
    """
    A store that is gone while it is *down*.
    """

    down = False

    def update(self, keys: Any, step: Any) -> Any:
        if self.down:
            raise OSError("the database is gone")
        return super().update(keys, step)
