"""
Python functions behind a session.
"""

import asyncio
import functools
import inspect
import json
import threading

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from guardrails import Budget, CallDenied, Duplicates, Policy, ResultClassifier, Tool, Validation
from guardrails.core.envelope.errors import CallFailed
from guardrails.core.values.errors import PolicyError, SessionError
from tests.tables import table


SMALL = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}, "required": ["amount"]}


class Hotels:
    def search(self, nights: int) -> Any:
        return ["hotels", nights]


class Flights:
    def search(self, city: str) -> Any:
        return ["flights", city]


class Search:
    """
    An object that is called.
    """

    async def __call__(self, query: str) -> str:
        return query


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


def test_two_lambdas_are_two_functions(clock: Any) -> None:
    session = make(clock)
    one = session.wrap(lambda x: x + 1, returns="value")
    with pytest.raises(SessionError, match="`<lambda>` is another function"):
        session.wrap(lambda y: y * 2)
    assert one(1) == 2


def test_the_same_function_may_be_wrapped_as_often_as_it_is_made(clock: Any) -> None:
    session = make(clock)

    def closure(n: int) -> Any:
        return lambda x: n + x

    for n, wrapped in enumerate([session.wrap(closure(n), returns="value") for n in range(3)]):
        assert wrapped(10 * n) == 11 * n
    assert session.wrap(Hotels().search, returns="value")(1) == session.wrap(
        Hotels().search, returns="value", name="h"
    )(1)
    assert session.wrap(len, returns="value")([1]) == session.wrap(len, returns="value", name="size")([1]) == 1


def test_the_parameters_of_a_policy_stand_above_those_of_a_function(clock: Any) -> None:
    session = make(clock, name="pay", parameters=SMALL)
    wrapped = session.wrap(pay, returns="envelope")
    assert (wrapped(5).value, wrapped(50).status) == (5, "validation_error")
    assert session.call("pay", {"amount": 50}, lambda *_: 1).status == "validation_error"


def test_the_parameters_that_a_host_defined_stand_above_those_of_a_function(clock: Any) -> None:
    session = make(clock)
    session.declare(Tool(name="pay", parameters=SMALL))
    assert session.wrap(pay, returns="envelope")(50).status == "validation_error"


def test_what_the_policy_let_pass_still_becomes_what_the_function_annotates(clock: Any) -> None:
    schema = {"type": "object", "properties": {"tags": {"type": "array"}}}

    def tag(tags: set[str], limit: int = 3) -> Any:
        return [sorted(tags), limit]

    session = make(clock, name="tag", parameters=schema)
    assert session.wrap(tag, returns="value")(["b", "a", "b"]) == [["a", "b"], 3]


def test_who_calls_a_wrapped_function_by_its_name_is_checked_too(clock: Any) -> None:
    session = make(clock)
    session.wrap(pay)
    assert session.call("pay", {"amount": "much"}, lambda *_: 1).status == "validation_error"


def test_a_child_knows_which_function_has_a_name(clock: Any) -> None:
    session = make(clock)
    session.wrap(Hotels().search)
    with session.child("kid", max_calls=5) as child:
        assert child.wrap(Hotels().search, returns="value")(2) == ["hotels", 2]
        with pytest.raises(SessionError, match="`search` is another function"):
            child.wrap(Flights().search)


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


def test_a_result_that_tells_of_a_timeout_is_no_timeout_of_the_call(clock: Any) -> None:
    def search() -> Any:
        return {"status": 504, "error": "gateway timed out"}

    session = make(clock, name="search", result=ResultClassifier(status_field="status"))
    with pytest.raises(CallFailed, match="timed out"):
        session.wrap(search, returns="value")()


def test_a_refusal_is_denied_and_what_does_not_fit_a_signature_is_a_type_error(clock: Any) -> None:
    wrapped = make(clock).wrap(pay, returns="value")
    with pytest.raises(CallDenied, match=r"^validation\.arguments: "):
        wrapped("much")
    with pytest.raises(TypeError):
        wrapped(1, 2)


# Kinds of callables


def test_an_object_with_an_async_call_is_wrapped_asynchronously(clock: Any) -> None:
    session = make(clock)
    wrapped = session.wrap(Search(), returns="value")
    assert inspect.iscoroutinefunction(wrapped)
    assert asyncio.run(wrapped("x")) == "x"
    assert session.call("Search", {}, lambda *_: 1).status == "validation_error"


def test_a_partial_has_the_name_of_its_function(clock: Any) -> None:
    def search(city: str, limit: int) -> Any:
        return [city, limit]

    session = make(clock)
    assert session.wrap(functools.partial(search, limit=2), returns="value")("Nara") == ["Nara", 2]
    assert session.call("search", {}, lambda *_: 1).status == "validation_error"


class Database:
    rows = ("a", "b")


@table("awaited", [False, True])
def test_hidden_parameters_pass_by_the_chain(awaited: bool, clock: Any) -> None:
    def search(query: str, *, database: Database) -> Any:
        return [query, *database.rows]

    async def asearch(query: str, *, database: Database) -> Any:
        return [query, *database.rows]

    told: list[Any] = []
    session = Policy([Validation()]).session("s", clock=clock, on_decision=lambda d: told.append(d.call.arguments))
    wrapped: Any = session.wrap(asearch if awaited else search, hidden=["database"])
    said = asyncio.run(wrapped("x", database=Database())) if awaited else wrapped("x", database=Database())
    assert json.loads(said)["results"] == ["x", "a", "b"]
    assert told == [{"query": "x"}]


def test_a_parameter_that_cannot_be_read_says_what_to_do(clock: Any) -> None:
    def search(query: str, database: Database) -> Any:
        return query

    with pytest.raises(PolicyError, match="goes into `hidden`"):
        make(clock).wrap(search)
    assert make(clock).wrap(search, hidden=["database"], returns="value")("x", database=Database()) == "x"


def test_an_unknown_return_is_refused(clock: Any) -> None:
    with pytest.raises(ValueError, match="`returns` is json, envelope or value, not `text`"):
        make(clock).wrap(pay, returns="text")
