"""
One span a call, whatever becomes of the call; the tool's own spans are its children.
"""

import asyncio

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Approve, Budget, Policy, SqliteStore, Success
from tests.otel.seen import Seen


pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode


def ten(tool: str, arguments: Any) -> Any:
    return {"rows": [10]}


def inner(seen: Seen, name: str = "inner") -> Callable[[str, Any], Any]:
    def run(tool: str, arguments: Any) -> str:
        with seen.tracer.start_as_current_span(name):
            return "done"

    return run


def named(spans: list[ReadableSpan], name: str) -> ReadableSpan:
    [found] = [one for one in spans if one.name == name]
    return found


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    made: int = span.context.span_id
    return made


def test_a_call_is_one_span_by_the_convention(seen: Seen) -> None:
    seen.session().call("search", {"q": "x"}, lambda *_: Success({"rows": 1}, cost_usd=0.25, tokens=7), id="c1")
    [span] = seen.spans
    assert (span.name, span.kind, span.status.status_code) == (
        "execute_tool search",
        SpanKind.INTERNAL,
        StatusCode.UNSET,
    )
    said = dict(span.attributes or {})
    assert len(str(said.pop("guardrails.run"))) == 16
    assert said == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "run-1",
        "guardrails.session": "run-1",
        "guardrails.n": 1,
        "guardrails.decision": "allow",
        "guardrails.status": "success",
        "guardrails.is_complete": True,
        "guardrails.cost_usd": 0.25,
        "guardrails.tokens": 7,
    }


def test_a_limit_that_is_near_is_an_event_of_the_span(seen: Seen) -> None:
    seen.session(policy=Policy([Budget(max_calls=2, warn_at=0.5)])).call("search", {}, lambda *_: "ok")
    [event] = seen.spans[0].events
    told = {"guardrails.code": "budget.warning", "message": "Left: 1 call of 2. Do what matters most first."}
    assert (event.name, dict(event.attributes or {})) == ("guardrails.warning", told)


def test_what_a_tool_opens_is_a_child_of_its_call_and_the_call_one_of_who_makes_it(seen: Seen) -> None:
    with seen.tracer.start_as_current_span("agent"):
        seen.session().call("search", {}, inner(seen))
    agent, call, own = (named(seen.spans, name) for name in ("agent", "execute_tool search", "inner"))
    assert (parent_of(agent), parent_of(call), parent_of(own)) == (None, id_of(agent), id_of(call))


def test_a_failure_is_an_error_of_its_type(seen: Seen) -> None:
    def gone(tool: str, arguments: Any) -> Any:
        raise ConnectionError("password=hunter2hunter2")

    envelope = seen.session().call("search", {}, gone)
    [span] = seen.spans
    assert span.status.status_code == StatusCode.ERROR
    said = seen.call()
    assert (said["error.type"], said["guardrails.status"]) == ("connection", "error")
    assert (said["guardrails.retryable"], said["guardrails.retry_after_ms"]) == (True, envelope.retry_after_ms)
    assert "hunter2" not in str(said) + str(span.events) + str(span.status.description), "a message is content"


def test_a_refusal_is_no_error(seen: Seen) -> None:
    session = seen.session(policy=Policy([Budget(max_calls=1)]))
    session.call("search", {"n": 1}, ten)
    session.call("search", {"n": 2}, ten)
    span = seen.spans[-1]
    said = seen.calls()[-1]
    assert span.status.status_code == StatusCode.UNSET
    assert (said["guardrails.decision"], said["guardrails.code"]) == ("deny", "budget.max_calls")
    assert "error.type" not in said


def test_a_stream_is_read_within_its_span(seen: Seen) -> None:
    def rows(tool: str, arguments: Any) -> Iterator[int]:
        with seen.tracer.start_as_current_span("inner"):
            yield 1

    async def slowly(tool: str, arguments: Any) -> AsyncIterator[int]:
        with seen.tracer.start_as_current_span("awaited"):
            yield 2

    session = seen.session()
    session.call("read", {}, rows)
    asyncio.run(session.acall("stream", {}, slowly))
    spans = seen.spans
    assert parent_of(named(spans, "inner")) == id_of(named(spans, "execute_tool read"))
    assert parent_of(named(spans, "awaited")) == id_of(named(spans, "execute_tool stream"))


def test_a_call_that_is_cancelled_or_interrupted_is_ended(seen: Seen) -> None:
    session = seen.session(policy=Policy())

    async def cancelled() -> None:
        task = asyncio.create_task(session.acall("wait", {}, lambda *_: asyncio.sleep(60)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    def interrupted(tool: str, arguments: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.call("stop", {}, interrupted)
    assert [(one["gen_ai.tool.name"], one["error.type"]) for one in seen.calls()] == [
        ("wait", "cancelled"),
        ("stop", "cancelled"),
    ]


def test_a_call_that_waits_is_a_span_and_so_is_the_one_that_runs(seen: Seen) -> None:
    session = seen.session(policy=Policy([Approve(tools=("pay",))]))
    session.call("pay", {"usd": 5}, ten, id="c1")
    session.approve("c1")
    session.call("pay", {"usd": 5}, ten, id="c2")
    assert [(one["guardrails.decision"], one.get("guardrails.code"), one["guardrails.n"]) for one in seen.calls()] == [
        ("pending", "approve.pending", 1),
        ("allow", None, 1),
    ]


# Calls that run elsewhere


def test_a_call_that_another_process_decided_has_a_span_from_its_admission(
    seen: Seen, tmp_path: Path, clock: Any
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    seen.session(store=store, clock=clock, telemetry=None).decide("search", {}, id="c1", claim=True)
    clock.advance(2.5)
    seen.session(store=store, clock=clock).complete("c1", "done")
    [span] = seen.spans
    assert span.start_time is not None
    assert span.end_time is not None
    assert 2.5 <= (span.end_time - span.start_time) / 1e9 < 60
    assert seen.call()["guardrails.status"] == "success"


def test_open_spans_are_bounded(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.otel.telemetry.MAX_OPEN", 3)
    session = seen.session(policy=Policy())
    for n in range(5):
        session.decide("search", {"n": n}, id=f"c{n}", claim=True)
    for n in range(5):
        session.complete(f"c{n}", "done")
    assert sorted(one["gen_ai.tool.call.id"] for one in seen.calls()) == ["c0", "c1", "c2", "c3", "c4"]


# What is shown


def test_what_a_call_brings_is_shown_to_who_asks_for_it_only_and_without_secrets() -> None:
    quiet, loud = Seen(), Seen(content=True)
    for seen in (quiet, loud):
        seen.session().call("login", {"password": "hunter2hunter2"}, lambda *_: "token=ghp_abcdefghijklmnopqrstuv")
    assert not any("call.arguments" in name or "call.result" in name for name in quiet.call())
    said = loud.call()
    assert said["gen_ai.tool.call.arguments"] == '{"password":"[redacted]"}'
    assert said["gen_ai.tool.call.result"] == '"token=[redacted]"'


# Hosts that have spans of their own


def host_span(seen: Seen, tool: str) -> Any:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    return seen.tracer.start_as_current_span(f"tools/call {tool}", attributes=said)


@pytest.mark.parametrize("awaited", [False, True])
def test_the_span_of_a_call_is_a_child_of_the_one_that_its_host_has_for_it(seen: Seen, awaited: bool) -> None:
    session = seen.session()

    def fails(tool: str, arguments: Any) -> Any:
        raise ConnectionError

    with host_span(seen, "search"):
        if awaited:
            asyncio.run(session.acall("search", {}, fails))
        else:
            session.call("search", {}, fails)
    span, host = seen.spans
    assert (span.name, host.name) == ("execute_tool search", "tools/call search")
    assert span.parent is not None
    assert span.parent.span_id == id_of(host)
    assert (span.attributes or {})["guardrails.decision"] == "allow"
    assert (span.attributes or {})["error.type"] == "connection"
    assert span.status.status_code == StatusCode.ERROR
    assert sum(value for _, value in seen.metric("guardrails.calls")) == 1
    assert seen.sink.records[0]["trace"]["span_id"] == f"{id_of(span):016x}"
