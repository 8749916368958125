"""
Calls that a host runs: decided, claimed, completed by id, released.
"""

import asyncio

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from guardrails import Budget, Duplicates, MemorySink, MemoryStore, Policy, Success
from guardrails.core.state import SessionState
from guardrails.core.tool import Tool
from guardrails.errors import SessionError
from guardrails.session.session import scoped
from tests.session.conftest import Faulty, never, replays, state_of
from tests.tables import table


TOOLS = [
    Tool(name="pay", cost_usd=0.25, tokens=10),
    Tool(name="ask", cost_usd=0.25),
    Tool(name="look", read_only=True),
    Tool(name="slow", timeout=30),
]


def policy(*guards: Any, **more: Any) -> Policy:
    return Policy([Budget(max_calls=5, max_cost_usd=1.0, max_tokens=1_000), Duplicates(), *guards], tools=TOOLS, **more)


def used(state: SessionState) -> tuple[int, ...]:
    """
    Calls, turns, micro-dollars, tokens; the two latter held; admissions that are open.
    """
    charged = (state.calls, state.turns, state.cost, state.tokens)
    return (*charged, state.held_cost, state.held_tokens, len(state.pending))


NOTHING = (0,) * 7


def test_a_claimed_call_is_claimed_once_whoever_asks(clock: Any) -> None:
    session = policy().session("s", clock=clock)
    assert not session.decide("slow", {}, id="c1").claimed
    clock.advance(29)
    first = session.decide("slow", {}, id="c1", claim=True)
    assert (first.allowed, first.claimed) == (True, True)
    clock.advance(29)
    assert session.decide("slow", {}, id="c1", claim=True).code == "call.in_flight"
    assert session.call("slow", {}, never, id="c1").code == "call.in_flight"
    assert session.decide("slow", {}, id="c1").allowed
    assert session.complete(first, "done").ok
    assert session.ledger.progress["calls_used"] == 1


@table("how", ["complete", "release", "suspend"])
def test_a_call_is_told_of_by_its_decision_or_by_an_id_and_arguments_that_one_open_call_has(
    how: str, clock: Any
) -> None:
    store = MemoryStore()
    session = policy().session("s", clock=clock, store=store)

    def tell(which: Any, **more: Any) -> None:
        session.complete(which, 1, **more) if how == "complete" else getattr(session.calls, how)(which, **more)

    session.complete(session.decide("look", {}, id="done"), 1)
    first, second = (session.decide("look", {"n": n}, id="c1").call.sig for n in (1, 2))
    for which, more, said in (
        *((unknown, {}, f"no open calls have the id `{unknown}` in `s`: `decide` it first") for unknown in ("new", "done")),
        (policy().session("t").decide("look", {}), {}, "the decision is of the session `t`, not of `s`"),
        ("c1", {}, "2 open calls have the id `c1` in `s`: `decide` it first, or say which"),
        ("c1", {"arguments": {"n": 3}}, "no open calls have the id `c1` with these arguments"),
    ):  # fmt: skip
        with pytest.raises(SessionError, match=said):
            tell(which, **more)
    tell("c1", arguments='{"n": 2.0}')
    assert [one.sig for one in state_of(store).pending.values()] == ([first, second] if how == "suspend" else [first])


# What never ran


@table("claim", [False, True])
@table("by", ["decision", "id"])
def test_a_released_call_was_never_made(by: str, claim: bool, clock: Any) -> None:
    store, sink, made = MemoryStore(), MemorySink(), policy()
    session = made.session("s", clock=clock, store=store, records=sink)
    decision = session.decide("pay", {"usd": 1}, id="c1", claim=claim)
    session.calls.release(decision if by == "decision" else "c1")
    assert used(state_of(store)) == NOTHING
    assert session.call("pay", {"usd": 1}, lambda *_: "paid", id="c1").ok
    session.calls.release(decision)
    assert used(state_of(store)) == (1, 1, 250_000, 10, 0, 0, 0)
    assert [record["event"] for record in sink.records] == ["call", "release", "call", "settle"]
    assert replays(made, sink, store) == 2


# Tools that raise a host's control flow: it is raised on, the call held, made again and charged once


class Interrupt(Exception):
    pass


class Bubble(BaseException):
    pass


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


ALLOWS = policy(on_error="allow")


def passing(clock: Any, store: Any, *kinds: type[BaseException], **options: Any) -> Any:
    session = ALLOWS.session("s", store=store, clock=clock, **options)
    # Each scope lets more of them pass.
    return scoped(scoped(session, {}, passes=kinds or (Interrupt,)), {}, passes=[Bubble])


def held(store: MemoryStore) -> tuple[int, int, int, int]:
    """
    Calls, micro-dollars spent and held, admissions that are open.
    """
    state = state_of(store)
    return state.calls, state.cost, state.held_cost, len(state.pending)


FORMS: list[Callable[[Person], Any]] = [
    *(lambda person: person, lambda person: person.items, lambda person: lambda *_: Success(person.items(), cost_usd=0.5)),
    *(lambda person: person.later, lambda person: person.streamed, lambda person: person.listed),
]  # fmt: skip


@table("error", [Interrupt("who?"), Bubble("who?")])
@table("tool", ["ask", "slow"])
@table(("form", "awaited"), [*((form, False) for form in FORMS[:3]), *((form, True) for form in FORMS)])
def test_it_is_raised_on_and_the_call_is_taken_up_once(
    form: Any, awaited: bool, tool: str, error: Any, clock: Any
) -> None:
    store, person = MemoryStore(), Person(error)

    def call() -> Any:
        """
        Each time as in another process.
        """
        session, asked = passing(clock, store), (tool, {"q": 1}, form(person))
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


def test_a_wrapped_function_has_no_id_and_is_taken_up_by_its_arguments(clock: Any) -> None:
    store, person = MemoryStore(), Person(Interrupt("who?"))
    session = passing(clock, store)

    async def aask(question: str) -> str:
        return f"{question} {await person.later()}"

    with pytest.raises(Interrupt):
        asyncio.run(session.wrap(aask, returns="value")("tea?"))
    clock.advance(3_600)
    person.error = None
    assert asyncio.run(session.wrap(aask, returns="value")("tea?")) == "tea? yes"
    assert held(store)[::3] == (1, 0)


@table("stop", [KeyboardInterrupt, asyncio.CancelledError, SystemExit])
def test_ctrl_c_and_cancellation_end_the_call_whatever_is_passed(stop: type[BaseException], clock: Any) -> None:
    store = MemoryStore()
    with pytest.raises(stop):
        passing(clock, store, BaseException).call("ask", {}, Person(stop()), id="c1")
    assert held(store) == (1, 250_000, 0, 0)


def test_after_a_day_it_is_over_and_counts(clock: Any) -> None:
    store = MemoryStore()
    session = passing(clock, store)
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
    store.down = down

    def run(*_: Any) -> None:
        store.down = True
        raise Interrupt

    with pytest.raises(Interrupt):
        passing(clock, store).call("ask", {"q": 1}, run, id="c1")


def test_records_tell_of_it_and_replay_exactly(clock: Any) -> None:
    store, sink, person = MemoryStore(), MemorySink(), Person(Interrupt())
    session = passing(clock, store, records=sink)
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
    assert replays(ALLOWS, sink, store)
