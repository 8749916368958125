"""
What a fork leaves to both processes: threads, stores, records and ids.
"""

import asyncio
import os
import signal
import threading
import warnings

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrails import MemorySink, MemoryStore, Policy, SqliteStore
from guardrails.core.state import SessionState
from guardrails.session.ledger import new_id
from tests.children import PATIENCE_S, is_gone, until
from tests.stores.mapped import MappedStore
from tests.stores.test_contract import made, spend


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def forked(in_child: Callable[[], bool]) -> int:
    """
    The id of a new process that ends with 0 if *in_child* is true.
    """
    with warnings.catch_warnings():
        # Later Pythons warn of a fork beside threads, which is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            signal.alarm(int(PATIENCE_S) // 2)
            os._exit(0 if in_child() else 1)
        finally:
            os._exit(2)
    return child


def ended(child: int) -> int:
    until(lambda: is_gone(child))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@made
def test_both_processes_go_on_after_a_fork_while_a_thread_is_in_an_update(make: Callable[[], Any]) -> None:
    store = make()
    store.update(["a"], spend(1))
    inside, leave = threading.Event(), threading.Event()

    def wait(states: list[SessionState]) -> bool:
        inside.set()
        # A store may let a fork wait until the update is over.
        return leave.wait(0.3)

    thread = threading.Thread(target=store.update, args=(["b"], wait))
    thread.start()
    inside.wait(PATIENCE_S)
    child = forked(lambda: store.update(["a"], spend(1)) == [2])
    leave.set()
    thread.join(PATIENCE_S)
    assert ended(child) == 0
    # A file, or a server, is shared with the child, memory is not.
    assert store.update(["a"], spend(1)) == [2 if isinstance(store, MemoryStore | MappedStore) else 3]


def test_a_forked_child_draws_no_id_of_its_parent(tmp_path: Path) -> None:
    session, file = Policy().session("s"), tmp_path / "ids"

    def drawn() -> set[str]:
        return {new_id(), session.decide("t", {}).call.id}

    drawn()
    child = forked(lambda: file.write_text(" ".join(drawn())) > 0)
    own = drawn()
    assert ended(child) == 0
    assert not own & {*file.read_text().split()}


def test_a_forked_child_awaits_calls_on_a_file_in_a_thread_of_its_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    policy, sink = Policy(), MemorySink()

    async def call(name: str) -> bool:
        async def run(*_: object) -> str:
            return name

        return (await policy.session(name, store=store, records=sink).acall("t", {}, run)).ok

    assert asyncio.run(call("before"))
    child = forked(lambda: asyncio.run(call("child")))
    assert asyncio.run(call("after"))
    assert ended(child) == 0
    assert len(store) == 3
