"""
Sessions of a process that forks.
"""

import asyncio
import os

import pytest

from guardrails import MemorySink, Policy, SqliteStore
from guardrails.session.ledger import new_id
from tests.system.stores.test_forks import ended, forked


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def test_a_forked_child_draws_no_id_of_its_parent() -> None:
    session = Policy().session("s")

    def drawn() -> str:
        return f"{new_id()} {session.decide('t', {}).call.id}"

    drawn()
    read, write = os.pipe()
    child = forked(lambda: os.write(write, drawn().encode()) > 0)
    own = drawn()
    assert ended(child) == 0
    theirs = os.read(read, 100).decode()
    os.close(read)
    os.close(write)
    assert not set(theirs.split()) & set(own.split())


def test_a_forked_child_awaits_calls_on_a_file_in_a_thread_of_its_own(tmp_path: object) -> None:
    store = SqliteStore(f"{tmp_path}/state.db")
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
