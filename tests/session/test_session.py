"""
The front door: running tools, whatever they are given, return or do.
"""

import asyncio
import contextvars
import json
import threading

from typing import Any

import pytest

from guardrails import Budget, Guard, MemorySink, MemoryStore, Policy, Success, Tool, Validation, guard
from guardrails.session.steps import current_session
from guardrails.sinks import read as read_records
from tests.core.guards.calls import gives, make, ok
from tests.session.conftest import read
from tests.tables import table


def test_an_executor_gets_the_coerced_arguments_of_a_json_text_and_other_text_as_it_is(clock: Any) -> None:
    def book(nights: int, city: str = "Tokyo") -> str:
        raise AssertionError

    session, seen = make(clock, Validation(), tools=[book]), list[Any]()
    for tool, text in (("book", '{"nights": "3"}'), ("apply_patch", "*** Begin Patch"), ("calc", "42")):
        session.call(tool, text, lambda _, arguments: seen.append(arguments))
    assert seen == [{"nights": 3, "city": "Tokyo"}, "*** Begin Patch", "42"]


CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE
DEEP: Any = "end"
for _ in range(2_000):
    DEEP = {"d": DEEP}
ODD: list[Any] = [
    *(CYCLE, DEEP, {"x": float("nan")}, {"x": "\ud800"}, {"x": "y" * 10_000_000}, {1: "a", (2, 3): "b"}),
    *({"x": b"\xff\x00"}, {"x": {1, "a", None}}, {"x": 10**400}, [1, 2], None, object()),
    *(b"\xff\x00", "x" * 10_000_000, ["row"] * 1_000_000),
]


@table("odd", ODD)
def test_no_arguments_and_no_result_crash_a_call_or_lose_its_result(odd: Any, clock: Any) -> None:
    sink = MemorySink()
    session = Policy.load("default").session("s", clock=clock, records=sink)
    given, returned = session.call("t", odd, ok), session.call("u", {}, gives(odd))
    assert (given.value, read(given)["result"]) == ("ok", "ok")
    assert returned.ok
    assert len(returned.to_json().encode()) < 70_000
    json.loads(returned.to_json())
    assert [record["event"] for record in sink.records] == ["call", "settle"] * 2


def test_a_call_that_a_signal_leaves_open_between_two_lines_expires_and_stays_charged(clock: Any) -> None:
    class Interrupted(MemoryStore):
        armed = True

        def update(self, keys: Any, step: Any) -> Any:
            made = super().update(keys, step)
            if self.armed:
                self.armed = False
                raise KeyboardInterrupt
            return made

    policy = Policy([Budget(max_calls=9, max_cost_usd=1.0)], tools=[Tool(name="pay", cost_usd=0.25, timeout=30)])
    session = policy.session("s", store=Interrupted(), clock=clock)
    with pytest.raises(KeyboardInterrupt):
        session.call("pay", {}, ok, id="c1")
    assert session.call("pay", {}, ok, id="c1").code == "call.in_flight"
    clock.advance(31)
    assert session.call("pay", {"n": 2}, gives(Success("ok", cost_usd=0.1))).ok
    progress = session.ledger.progress
    assert (progress["calls_used"], progress["cost_left_usd"]) == (2, 0.65)


def test_records_of_a_path_are_there_when_the_session_is_left(clock: Any, tmp_path: Any) -> None:
    path = tmp_path / "calls.jsonl"
    with Policy().session("s", clock=clock, records=path) as session:
        session.call("t", {"a": 1}, ok)

    async def main() -> None:
        async with Policy().session("s2", clock=clock, records=path) as session:
            await session.acall("t", {"a": 1}, ok)

    asyncio.run(main())
    lines = [(line["session_id"], line["event"], line["n"]) for line in read_records(path)]
    assert lines == [(name, event, n) for name in ("s", "s2") for n, event in ((1, "call"), (2, "settle"))]


@guard
class Odd(Guard):
    """
    Remembers what is no plain data.
    """

    counts: Any = None

    def admit(self, *_: Any) -> Any:
        return {"fine": 1, **self.counts}


@table("counts", [{"odd": object()}, {"odd": {1, 2}}, {"odd": b"1"}, {7: 1}])
def test_what_cannot_be_packed_is_the_error_of_the_guard_that_would_remember_it(counts: Any, clock: Any) -> None:
    session = make(clock, Odd(counts=counts), Budget(max_calls=5))
    assert session.call("t", {}, ok).code == "call.error"
    assert session.ledger.read(lambda state, _: (state.own.get("odd"), state.calls)) == (None, 0)


def test_a_tool_has_the_session_whose_call_it_is_and_the_variables_of_its_caller(clock: Any) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("ada")

    def name(*_: Any) -> str | None:
        session = current_session()
        return None if session is None else session.id

    def told(*_: Any) -> list[str | None]:
        return [name(), who.get(), threading.current_thread().name]

    async def told_later(*_: Any) -> str | None:
        await asyncio.sleep(0)
        return name()

    session = make(clock, tools=[Tool(name="t", timeout=10)])

    def delegate(*_: Any) -> list[str | None]:
        others = (session.child("sub"), Policy().session("other"))
        return [name(), *(other.call("u", {}, name).value for other in others), name()]

    assert session.call("delegate", {}, delegate).value == ["s", "s/sub", "other", "s"]
    assert session.call("t", {}, told).value == ["s", "ada", "guardrails-tool"]
    assert asyncio.run(session.acall("t", {"a": 1}, told)).value[:2] == ["s", "ada"]
    assert asyncio.run(session.acall("t", {"a": 2}, told_later)).value == "s"
    assert name() is None


ROWS = {"status": "success", "results": [1], "total_matches": 9, "is_complete": False, "next_action_hint": "Ask on."}
CLAIM = {
    "status": "error",
    "error_type": "timeout",
    "error_message": "no answer",
    "retryable": True,
    "retry_after_ms": 2,
}


@table(("value", "told"), [
    (ROWS, ROWS), (Success(ROWS, 0.1), ROWS), (CLAIM, CLAIM),
    ({"status": "success", "hotels": [1]}, {"status": "success", "result": {"hotels": [1]}}),
    # What is no envelope claims nothing.
    *((odd, {"status": "success", "result": odd}) for odd in (
        {"status": "limit_reached", "limit_message": "stop"}, {"status": ["error"], "retryable": True},
    )),
])  # fmt: skip
def test_an_object_of_a_tool_that_returns_envelopes_is_one(value: Any, told: Any, clock: Any) -> None:
    session = make(clock, tools=[Tool(name="book", returns_envelope=True)])
    found = read(session.call("book", {}, gives(value)))
    assert found.items() >= told.items()
    assert "result" in told or "result" not in found
