"""
Tools with a time limit, and those that give their result bit by bit.
"""

import asyncio
import functools
import threading
import time

from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest

from guardrails import Budget, Envelope, MemorySink, Policy, Retryable, Success, Summary, Tool, Truncate
from guardrails.session.running import is_async


def make(clock: Any, timeout: float | None = None, **settings: Any) -> Any:
    tool = Tool(name="t", timeout=timeout)
    policy = Policy([Summary(), Retryable(), Truncate(max_bytes=2_000), Budget(max_cost_usd=9)], tools=[tool])
    return policy.session("s", clock=clock, **settings)


def run(session: Any, execute: Any, *, awaited: bool) -> Envelope:
    envelope: Envelope = asyncio.run(session.acall("t", {}, execute)) if awaited else session.call("t", {}, execute)
    return envelope


async def numbers() -> AsyncIterator[int]:
    n = 0
    while True:
        yield n
        n += 1


def counted(limit: int) -> Iterator[int]:
    yield from range(limit)


@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_endless_async_generator_is_cut_and_said_not_to_be_complete(
    timeout: float | None, wrapped: bool, clock: Any
) -> None:
    def execute(*_: Any) -> Any:
        return Success(numbers(), cost_usd=0.5) if wrapped else numbers()

    session = make(clock, timeout)
    envelope = run(session, execute, awaited=True)
    assert envelope.ok
    assert envelope.value[:3] == [0, 1, 2]
    assert (envelope.is_complete, envelope.total_matches) == (False, None)
    assert session.cost_usd == (0.5 if wrapped else 0.0)


@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_generator_that_ends_is_whole(timeout: float | None, awaited: bool, clock: Any) -> None:
    envelope = run(make(clock, timeout), lambda *_: counted(4), awaited=awaited)
    assert (envelope.value, envelope.is_complete, envelope.total_matches) == ([0, 1, 2, 3], True, 4)


@pytest.mark.parametrize("kind", ["async generator", "generator", "generator, awaited", "from a coroutine"])
def test_d12_a_generator_that_hangs_half_way_ends_at_the_timeout(kind: str, clock: Any) -> None:
    release = threading.Event()

    async def slow() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    def stuck(*_: Any) -> Iterator[int]:
        yield 1
        release.wait(10)

    async def coroutine(*_: Any) -> Any:
        return slow()

    execute: Any = {"async generator": lambda *_: slow(), "from a coroutine": coroutine}.get(kind, stuck)
    started = time.monotonic()
    envelope = run(make(clock, 0.05), execute, awaited=kind != "generator")
    release.set()
    assert (envelope.status, envelope.error_type) == ("error", "timeout")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x"), ValueError("x")])
def test_whatever_a_tool_raises_is_an_error_at_once(
    error: Exception, timeout: float | None, awaited: bool, clock: Any
) -> None:
    def execute(*_: Any) -> Any:
        raise error

    envelope = run(make(clock, timeout), execute, awaited=awaited)
    assert envelope.status == "error"
    assert envelope.error_type != "timeout"


@pytest.mark.parametrize("awaited", [False, True])
def test_the_late_outcome_of_a_generator_is_recorded(awaited: bool, clock: Any) -> None:
    release, sink = threading.Event(), MemorySink()

    def stuck(*_: Any) -> Iterator[int]:
        yield 1
        release.wait(10)
        yield 2

    run(make(clock, 0.05, records=sink), stuck, awaited=awaited)
    release.set()
    for thread in threading.enumerate():
        if thread.name == "guardrails-tool":
            thread.join(10)
    last = sink.records[-1]
    assert (last["event"], last["late"], orjson.dumps(last["result"])) == ("settle", True, b"[1,2]")


@pytest.mark.parametrize("awaited", [False, True])
def test_a_tool_s_own_timeout_is_not_said_to_be_the_limit_s(awaited: bool, clock: Any) -> None:
    async def impatient(*_: Any) -> Any:
        raise TimeoutError

    def hasty(*_: Any) -> Any:
        raise TimeoutError

    envelope = run(make(clock, 5.0), impatient if awaited else hasty, awaited=awaited)
    assert (envelope.error_type, envelope.error_message) == ("timeout", "TimeoutError")


def test_an_async_generator_function_runs_within_its_limit(clock: Any) -> None:
    async def rows(*_: Any) -> AsyncIterator[int]:
        yield 1
        yield 2

    assert run(make(clock, 5.0), rows, awaited=True).value == [1, 2]


def test_an_async_tool_past_its_limit_reads_the_limit(clock: Any) -> None:
    async def endless(*_: Any) -> Any:
        await asyncio.Event().wait()

    envelope = run(make(clock, 0.05), endless, awaited=True)
    assert (envelope.error_type, envelope.error_message) == ("timeout", "no result within 0.05 s")


@pytest.mark.parametrize("awaited", [False, True])
def test_a_generator_that_is_interrupted_while_it_is_read_is_settled(awaited: bool, clock: Any) -> None:
    def interrupted(*_: Any) -> Iterator[int]:
        yield 1
        raise KeyboardInterrupt

    sink = MemorySink()
    session = make(clock, records=sink)
    with pytest.raises(KeyboardInterrupt):
        run(session, interrupted, awaited=awaited)
    assert [record["event"] for record in sink.records] == ["call", "settle"]
    assert sink.records[-1]["status"] == "error"


def test_what_is_asynchronous_is_seen_through_objects_and_partials() -> None:
    class Search:
        async def __call__(self, query: str) -> str:
            return query

        async def rows(self) -> AsyncIterator[int]:
            yield 1

    assert is_async(Search())
    assert is_async(functools.partial(Search(), "x"))
    assert is_async(functools.partial(Search().__call__, "x"))
    assert is_async(Search().rows)
    assert not any(is_async(each) for each in (Search, len, counted, functools.partial(counted, 1)))


def test_a_generator_that_fails_half_way_has_failed(clock: Any) -> None:
    async def fails() -> AsyncIterator[int]:
        yield 1
        raise ConnectionResetError("reset")

    envelope = run(make(clock), lambda *_: fails(), awaited=True)
    assert (envelope.status, envelope.error_type) == ("error", "connection")
