"""
Calls whose tools raise a host's control flow: raised on, held, made again, charged once.
"""

import asyncio

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from guardrails import Budget, Duplicates, MemorySink, MemoryStore, Policy, Success, Tool
from guardrails.session.session import scoped
from tests.session.conftest import Faulty, replays, state_of
from tests.tables import table


class Interrupt(Exception):
    pass


class Bubble(BaseException):
    pass


def policy(**more: Any) -> Policy:
    tools = [Tool(name="ask", cost_usd=0.25), Tool(name="slow", timeout=30), Tool(name="look", read_only=True)]
    return Policy([Budget(max_calls=5, max_cost_usd=1.0), Duplicates()], tools=tools, **more)


def passing(session: Any, *kinds: type[BaseException]) -> Any:
    return scoped(session, {}, passes=kinds or (Interrupt, Bubble))


def held(store: MemoryStore) -> tuple[int, int, int, int]:
    """
    Calls, micro-dollars spent and held, admissions that are open.
    """
    state = state_of(store)
    return state.calls, state.cost, state.held_cost, len(state.pending)


class Person:
    """
    A tool that interrupts until there is an answer.
    """

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error
        self.runs = 0

    def __call__(self, *_: Any) -> str:
        self.runs += 1
        if self.error is not None:
            raise self.error
        return "yes"

    async def later(self, *_: Any) -> str:
        await asyncio.sleep(0)
        return self()

    def items(self, *_: Any) -> Iterator[str]:
        yield "thinking"
        yield self()

    async def streamed(self, *_: Any) -> AsyncIterator[str]:
        yield "thinking"
        yield self()

    async def listed(self, *_: Any) -> Iterator[str]:
        return self.items()


FORMS: dict[str, Callable[[Person], Any]] = {
    "function": lambda person: person,
    "generator": lambda person: person.items,
    "success": lambda person: lambda *_: Success(person.items(), cost_usd=0.5),
    "coroutine": lambda person: person.later,
    "stream": lambda person: person.streamed,
    "coroutine of a generator": lambda person: person.listed,
}
CALLS = [(form, False) for form in list(FORMS)[:3]] + [(form, True) for form in FORMS]


@table("error", [Interrupt("who?"), Bubble("who?")])
@table("tool", ["ask", "slow"])
@table(("form", "awaited"), CALLS)
def test_it_is_raised_on_and_the_call_is_taken_up_once(
    form: str, awaited: bool, tool: str, error: Any, clock: Any
) -> None:
    store, person = MemoryStore(), Person(error)

    def call() -> Any:
        """
        Each time as in another process, by a session that lets each of them pass.
        """
        session = scoped(
            scoped(policy().session("s", store=store, clock=clock), {}, passes=(Interrupt,)), {}, passes=[Bubble]
        )
        asked = (tool, {"q": 1}, FORMS[form](person))
        return asyncio.run(session.acall(*asked, id="c1")) if awaited else session.call(*asked, id="c1")

    with pytest.raises(type(error)) as raised:
        call()
    assert raised.value is error
    assert held(store) == (1, 0, 250_000 if tool == "ask" else 0, 1)
    clock.advance(3_600)
    person.error = None
    assert call().ok
    assert person.runs == 2
    assert (held(store)[0], *held(store)[2:]) == (1, 0, 0)


@table("returns", ["json", "envelope", "value"])
def test_a_wrapped_function_has_no_id_and_is_taken_up_by_its_arguments(returns: Any, clock: Any) -> None:
    store, person = MemoryStore(), Person(Interrupt("who?"))
    session = passing(policy().session("s", store=store, clock=clock))

    async def aask(question: str) -> str:
        return f"{question} {await person.later()}"

    wrapped = session.wrap(aask, returns=returns)
    with pytest.raises(Interrupt):
        asyncio.run(wrapped("tea?"))
    clock.advance(3_600)
    person.error = None
    said = asyncio.run(wrapped("tea?"))
    assert "tea? yes" in str(getattr(said, "value", said))
    assert held(store)[::3] == (1, 0)


@table("stop", [KeyboardInterrupt, asyncio.CancelledError, SystemExit])
def test_ctrl_c_and_cancellation_end_the_call_whatever_is_passed(stop: type[BaseException], clock: Any) -> None:
    store = MemoryStore()
    session = passing(policy().session("s", store=store, clock=clock), BaseException)
    with pytest.raises(stop):
        session.call("ask", {}, Person(stop()), id="c1")
    assert held(store) == (1, 250_000, 0, 0)


def test_after_a_day_it_is_over_and_counts(clock: Any) -> None:
    store = MemoryStore()
    session = passing(policy().session("s", store=store, clock=clock))
    with pytest.raises(Interrupt):
        session.call("ask", {"q": 1}, Person(Interrupt()), id="c1")
    clock.advance(86_401)
    session.call("look", {}, lambda *_: 1)
    assert held(store) == (2, 250_000, 0, 0)
    assert session.call("ask", {"q": 1}, lambda *_: 1, id="c1").ok
    assert held(store) == (3, 500_000, 0, 0)


@table("down", [True, False])
def test_a_store_that_fails_loses_no_control_flow(down: bool, clock: Any) -> None:
    store = Faulty()
    session = passing(policy(on_error="allow").session("s", store=store, clock=clock))
    store.down = down

    def run(*_: Any) -> None:
        store.down = True
        raise Interrupt

    with pytest.raises(Interrupt):
        session.call("ask", {"q": 1}, run, id="c1")


def test_records_tell_of_it_and_replay_exactly(clock: Any) -> None:
    store, sink, made = MemoryStore(), MemorySink(), policy()
    session = passing(made.session("s", store=store, clock=clock, records=sink))
    person = Person(Interrupt())
    for again in ("c1", "c1", "c2"):
        with pytest.raises(Interrupt):
            session.call("ask", {"q": 1}, person, id=again)
        clock.advance(3_600)
    session.call("look", {"n": 1}, lambda *_: 1)
    person.error = None
    for _ in range(2):
        session.call("ask", {"q": 1}, person, id="c3")
    assert [record["event"] for record in sink.records] == [
        *("call", "suspend", "claim", "suspend", "claim", "suspend"),
        *("call", "settle", "claim", "settle", "call"),
    ]
    assert sink.records[1]["call_n"] == 1
    assert replays(made, sink, store)
