"""
Python functions behind a session.
"""

import asyncio
import threading

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from guardrails import Budget, CallDenied, Duplicates, Policy, Tool, Validation
from guardrails.core.envelope.envelope import CallFailed
from guardrails.core.values.errors import SessionError
from tests.tables import table


SMALL = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}, "required": ["amount"]}


class Hotels:
    def search(self, nights: int) -> Any:
        return ["hotels", nights]


class Flights:
    def search(self, city: str) -> Any:
        return ["flights", city]


def pay(amount: int) -> int:
    return amount


def make(clock: Any, **tool: Any) -> Any:
    tools = [Tool(**tool)] if tool else []
    return Policy([Budget(max_calls=50), Validation(), Duplicates()], tools=tools).session("s", clock=clock)


def test_a_second_function_of_a_name_is_refused_and_the_first_keeps_its_check(clock: Any) -> None:
    session = make(clock)
    hotels = session.wrap(Hotels().search, returns="value")
    with pytest.raises(SessionError, match="`search` is another function in this session already"):
        session.wrap(Flights().search)
    flights = session.wrap(Flights().search, name="search_flights", returns="value")
    assert (hotels(2), flights("Kyoto")) == (["hotels", 2], ["flights", "Kyoto"])


def test_the_parameters_of_a_policy_stand_above_those_of_a_function(clock: Any) -> None:
    session = make(clock, name="pay", parameters=SMALL)
    wrapped = session.wrap(pay, returns="envelope")
    assert (wrapped(5).value, wrapped(50).status) == (5, "validation_error")
    assert session.call("pay", {"amount": 50}, lambda *_: 1).status == "validation_error"


# What is raised where the value is wanted


def test_a_failure_seen_in_the_result_is_raised_with_its_envelope(clock: Any) -> None:
    def search() -> Any:
        return {"isError": True, "content": [{"type": "text", "text": "no such city"}]}

    with pytest.raises(CallFailed, match=r"^[a-z_]+: no such city$") as failed:
        make(clock).wrap(search, returns="value")()
    assert failed.value.envelope.status == "error"


@table("awaited", [False, True])
@table("generator", [False, True])
def test_a_tool_out_of_time_raises_a_timeout(awaited: bool, generator: bool, clock: Any) -> None:
    release = threading.Event()

    def slow() -> None:
        release.wait(10)

    def slow_rows() -> Iterator[int]:
        yield 1
        release.wait(10)

    async def aslow() -> None:
        await asyncio.Event().wait()

    async def aslow_rows() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    session = make(clock, name="slow", timeout=0.05)
    functions: Any = {(0, 0): slow, (0, 1): slow_rows, (1, 0): aslow, (1, 1): aslow_rows}
    wrapped = session.wrap(functions[awaited, generator], name="slow", returns="value")
    with pytest.raises(TimeoutError, match=r"^no result within 0\.05 s$"):
        asyncio.run(wrapped()) if awaited else wrapped()
    release.set()


def test_a_refusal_is_denied_and_what_does_not_fit_a_signature_is_a_type_error(clock: Any) -> None:
    wrapped = make(clock).wrap(pay, returns="value")
    with pytest.raises(CallDenied, match=r"^validation\.arguments: "):
        wrapped("much")
    with pytest.raises(TypeError):
        wrapped(1, 2)


# Kinds of callables
