"""
The front door: running tools, whatever they do.
"""

import asyncio
import contextvars
import json
import threading

from collections.abc import Iterator
from typing import Any

import pytest

from guardrails import (
    Budget,
    CallDenied,
    Decision,
    Duplicates,
    Envelope,
    MemoryStore,
    Policy,
    Retryable,
    Success,
    Tool,
    Truncate,
    Validation,
)
from guardrails.sinks import MemorySink, OnRecord
from tests.tables import table


def ok(*_: Any) -> str:
    return "ok"


def test_an_executor_gets_the_coerced_arguments_of_a_json_text(clock: Any) -> None:
    def book(nights: int, city: str = "Tokyo") -> str:
        raise AssertionError

    session = Policy([Validation()], tools=[book]).session("s", clock=clock)
    seen = []
    session.call("book", '{"nights": "3"}', lambda tool, arguments: seen.append((tool, arguments)))
    assert seen == [("book", {"nights": 3, "city": "Tokyo"})]


def test_a_free_form_tool_gets_its_text_as_it_is(clock: Any) -> None:
    seen = []
    session = Policy([Validation()]).session("s", clock=clock)
    session.call("apply_patch", "*** Begin Patch", lambda _, text: seen.append(text))
    session.call("calc", "42", lambda _, text: seen.append(text))
    assert seen == ["*** Begin Patch", "42"]


CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE
DEEP: Any = "end"
for _ in range(2_000):
    DEEP = {"d": DEEP}


@table(
    "arguments",
    [
        CYCLE,
        DEEP,
        {"x": float("nan")},
        {"x": "\ud800"},
        {"x": "y" * 10_000_000},
        {1: "a", (2, 3): "b"},
        {"x": b"\xff\x00"},
        {"x": {1, "a", None}},
        {"x": 10**400},
        [1, 2],
        None,
        object(),
    ],
)
def test_no_arguments_crash_a_call_or_lose_its_result(arguments: Any, clock: Any) -> None:
    policy, sink = Policy.load("default"), MemorySink()
    session = policy.session("s", clock=clock, records=sink)
    envelope = session.call("t", arguments, ok)
    assert envelope.value == "ok"
    assert json.loads(envelope.to_json())["result"] == "ok"
    assert [record["event"] for record in sink.records] == ["call", "settle"]


def endless() -> Iterator[int]:
    n = 0
    while True:
        yield n
        n += 1


@table(
    ("result", "status"),
    [
        (b"\xff\x00", "success"),
        ("x" * 10_000_000, "success"),
        (["row"] * 1_000_000, "success"),
        ({"k": "x" * 10_000_000}, "success"),
        (None, "success"),
        (CYCLE, "success"),
        (DEEP, "success"),
        ({"x": "\ud800"}, "success"),
        (object(), "success"),
        (ValueError("bad"), "error"),
    ],
)
def test_no_result_crashes_a_call(result: Any, status: str, clock: Any) -> None:
    envelope = Policy.load("default").session("s", clock=clock).call("t", {}, lambda *_: result)
    assert envelope.status == status
    assert len(envelope.to_json().encode()) < 70_000
    json.loads(envelope.to_json())


def test_a_generator_becomes_a_list_up_to_the_limit(clock: Any) -> None:
    session = Policy([Truncate(max_bytes=1_000)]).session("s", clock=clock)
    few = session.call("t", {"n": 1}, lambda *_: (n for n in range(3)))
    many = session.call("t", {"n": 2}, lambda *_: endless())
    assert few.value == [0, 1, 2]
    assert many.is_complete is False
    assert json.loads(many.to_json())["results"][:3] == [0, 1, 2]


def test_secrets_in_an_exception_do_not_reach_the_model(clock: Any) -> None:
    def boom(*_: Any) -> None:
        raise RuntimeError(
            "401 from https://user:hunter22@example.org with Authorization: Bearer sk-proj-abcdef0123456789abcdef"
        )

    text = Policy.load("default").session("s", clock=clock).call("t", {}, boom).to_json()
    assert "hunter22" not in text
    assert "abcdef0123456789" not in text


def test_an_interrupt_is_settled_and_goes_on_up(clock: Any) -> None:
    session = Policy([Budget(max_calls=2), Duplicates()]).session("s", clock=clock)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.call("t", {}, interrupted)
    assert session.ledger.read(lambda state, _: len(state.pending)) == 0
    assert session.ledger.progress["calls_used"] == 1


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
    assert session.call("pay", {"n": 2}, lambda *_: Success("ok", cost_usd=0.1)).ok
    assert session.ledger.progress["calls_used"] == 2
    assert session.ledger.progress["cost_left_usd"] == 0.65


def test_a_cancelled_task_is_settled_as_cancelled(clock: Any) -> None:
    sink = MemorySink()
    session = Policy([Budget(max_calls=2)]).session("s", clock=clock, records=sink)

    async def main() -> None:
        started = asyncio.Event()

        async def hang(*_: Any) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(session.acall("t", {}, hang))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert sink.records[-1]["error_type"] == "cancelled"


def test_d12_an_async_tool_that_hangs_is_cancelled_at_its_timeout(clock: Any) -> None:
    session = Policy([Retryable()], tools=[Tool(name="t", timeout=0.02)]).session("s", clock=clock)
    cancelled = []

    async def hang(*_: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    envelope = asyncio.run(session.acall("t", {}, hang))
    assert (envelope.error_type, cancelled) == ("timeout", [True])


@table("awaited", [False, True])
def test_d12_a_sync_tool_that_hangs_is_abandoned_and_its_late_outcome_recorded(clock: Any, awaited: bool) -> None:
    release, recorded, records = threading.Event(), threading.Event(), list[Any]()

    def see(record: Any) -> None:
        records.append(record)
        if record.get("late"):
            recorded.set()

    session = Policy(tools=[Tool(name="t", timeout=0.02)]).session("s", clock=clock, records=OnRecord(see))

    def hang(*_: Any) -> str:
        release.wait()
        return "too late"

    envelope = asyncio.run(session.acall("t", {}, hang)) if awaited else session.call("t", {}, hang)
    release.set()
    assert recorded.wait(5)
    assert envelope.error_type == "timeout"
    assert [(r["event"], r.get("late"), r.get("status")) for r in records] == [
        ("call", None, None),
        ("settle", False, "error"),
        ("settle", True, "ok"),
    ]


def test_a_tool_with_a_timeout_sees_the_callers_context_variables(clock: Any) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("ada")
    session = Policy(tools=[Tool(name="t", timeout=5)]).session("s", clock=clock)
    assert session.call("t", {}, lambda *_: who.get()).value == "ada"


def test_an_async_tool_called_the_synchronous_way_is_a_clear_error(clock: Any) -> None:
    async def search(*_: Any) -> str:
        return "never"

    envelope = Policy().session("s", clock=clock).call("t", {}, search)
    assert "use `acall`" in (envelope.error_message or "")


def test_wrap_gives_the_value_and_raises_what_the_tool_raised_or_the_refusal(clock: Any) -> None:
    session = Policy([Budget(max_calls=2)]).session("s", clock=clock)

    def divide(a: int, b: int) -> float:
        return a / b

    value = session.wrap(divide, returns="value")
    assert value(4, b=2) == 2.0
    with pytest.raises(ZeroDivisionError):
        value(1, 0)
    with pytest.raises(CallDenied) as refused:
        value(1, 1)
    assert refused.value.envelope.code == "budget.max_calls"
    assert isinstance(session.wrap(divide, returns="envelope")(1, 1), Envelope)


def test_every_decision_is_told_and_a_host_that_fails_changes_nothing(clock: Any) -> None:
    told: list[Decision] = []

    def tell(decision: Decision) -> None:
        told.append(decision)
        raise RuntimeError("host")

    session = Policy([Budget(max_calls=1)]).session("s", clock=clock, on_decision=tell)
    assert session.call("a", {}, ok).ok
    assert session.call("b", {}, ok).status == "limit_reached"
    assert [decision.allowed for decision in told] == [True, False]


def test_records_of_a_path_are_there_when_the_session_is_left(clock: Any, tmp_path: Any) -> None:
    from guardrails.sinks import read

    path = tmp_path / "calls.jsonl"
    with Policy().session("s", clock=clock, records=path) as session:
        session.call("t", {"a": 1}, ok)

    async def main() -> None:
        async with Policy().session("s2", clock=clock, records=path) as session:
            await session.acall("t", {"a": 1}, ok)

    asyncio.run(main())
    lines = list(read(path))
    assert [(line["session_id"], line["event"], line["n"]) for line in lines] == [
        ("s", "call", 1),
        ("s", "settle", 2),
        ("s2", "call", 1),
        ("s2", "settle", 2),
    ]
    wanted = {"sig", "seq", "retry_source", "mutates"}
    assert wanted <= lines[0].keys()
    assert {"result_hash", "result_hash_masked", "duration_ms", "http_status", "retry_after_ms"} <= lines[1].keys()
