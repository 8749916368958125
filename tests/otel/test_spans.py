"""
One span a call, whatever becomes of the call; what is counted of it; records and traces that find each other; an SDK that raises, and none.
"""

import asyncio
import json
import subprocess
import sys

from collections.abc import AsyncIterator, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, JsonLines, Policy, SqliteStore, Success, Summary
from guardrails.offline.transcripts import Report
from guardrails.offline.transcripts.files import calls_in
from guardrails.sinks import read
from tests.otel.seen import Seen, as_otlp


pytest.importorskip("opentelemetry.sdk")

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from guardrails.otel.telemetry import MAX_LABELS, OTHER


def ten(tool: str, arguments: Any) -> Any:
    return Success({"rows": [10]}, cost_usd=0.5, tokens=10)


def broken(tool: str, arguments: Any) -> Any:
    raise ConnectionError("password=hunter2hunter2")


told = attrgetter("session_id", "tool", "id", "arguments", "decision", "code", "is_error")


@pytest.fixture
def seen() -> Seen:
    return Seen()


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    made: int = span.context.span_id
    return made


def test_a_call_is_one_span_by_the_convention_and_a_limit_that_is_near_an_event_of_it(seen: Seen) -> None:
    policy = Policy([Budget(max_calls=2, warn_at=0.5), Summary()])
    seen.session(policy=policy).call("search", {"q": "x"}, ten, id="c1")
    [span] = seen.spans
    [event] = span.events
    assert (event.name, (event.attributes or {})["guardrails.code"]) == ("guardrails.warning", "budget.warning")
    assert (span.name, span.kind) == ("execute_tool search", SpanKind.INTERNAL)
    assert span.status.status_code == StatusCode.UNSET
    [shown] = seen.calls()
    assert len(shown.pop("guardrails.run")) == 16
    assert shown == json.loads(Path(__file__).with_name("span.json").read_text())


def test_what_a_tool_opens_is_a_child_of_its_call_and_the_call_one_of_who_makes_it(seen: Seen) -> None:
    def rows(tool: str, arguments: Any) -> Iterator[int]:
        with seen.tracer.start_as_current_span(f"in {tool}"):
            yield 1

    async def slowly(tool: str, arguments: Any) -> AsyncIterator[int]:
        with seen.tracer.start_as_current_span(f"in {tool}"):
            yield 2

    session = seen.session()
    with seen.tracer.start_as_current_span("agent"):
        session.call("run", {}, lambda *given: [*rows(*given)])
        session.call("read", {}, rows)
        asyncio.run(session.acall("stream", {}, slowly))
    names = {id_of(span): span.name for span in seen.spans}
    parents = {span.name: names[span.parent.span_id] for span in seen.spans if span.parent is not None}
    tools = ("run", "read", "stream")
    expected = {f"in {tool}": f"execute_tool {tool}" for tool in tools}
    assert parents == {f"execute_tool {tool}": "agent" for tool in tools} | expected


def test_a_failure_is_an_error_of_its_type_and_a_refusal_is_none(seen: Seen) -> None:
    envelope = seen.session().call("search", {}, broken)
    seen.session("run-2", Policy([Budget(max_calls=0)])).call("search", {}, ten)
    failed, refused = seen.calls()
    assert [span.status.status_code for span in seen.spans] == [StatusCode.ERROR, StatusCode.UNSET]
    assert (failed["error.type"], failed["guardrails.status"]) == ("connection", "error")
    assert (failed["guardrails.retryable"], failed["guardrails.retry_after_ms"]) == (True, envelope.retry_after_ms)
    assert "hunter2" not in f"{failed} {seen.spans[0].events} {seen.spans[0].status.description}", "it is content"
    assert (refused["guardrails.decision"], refused["guardrails.code"]) == ("deny", "budget.max_calls")
    assert "error.type" not in refused


def test_a_call_that_is_cancelled_or_interrupted_is_ended(seen: Seen) -> None:
    session = seen.session(policy=Policy())

    async def cancelled() -> None:
        async with asyncio.timeout(0.01):
            await session.acall("wait", {}, lambda *_: asyncio.sleep(60))

    def interrupted(tool: str, arguments: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    with pytest.raises(KeyboardInterrupt):
        session.call("stop", {}, interrupted)
    ended = [(call["gen_ai.tool.name"], call["error.type"]) for call in seen.calls()]
    assert ended == [("wait", "cancelled"), ("stop", "cancelled")]


def test_a_call_of_another_process_has_a_span_from_its_admission(seen: Seen, tmp_path: Path, clock: Any) -> None:
    store = SqliteStore(tmp_path / "s.db")
    seen.session(store=store, clock=clock, telemetry=None).decide("search", {}, id="c1", claim=True)
    clock.advance(2.5)
    seen.session(store=store, clock=clock).complete("c1", "done")
    [span] = seen.spans
    assert 2.5 <= ((span.end_time or 0) - (span.start_time or 0)) / 1e9 < 60
    assert seen.calls()[0]["guardrails.status"] == "success"


def test_what_a_call_brings_is_shown_to_who_asks_for_it_only_and_without_secrets() -> None:
    quiet, loud = Seen(), Seen(content=True)
    for seen in (quiet, loud):
        seen.session().call("login", {"password": "hunter2hunter2"}, lambda *_: "token=ghp_abcdefghijklmnopqrstuv")
    assert not any("call.arguments" in name or "call.result" in name for name in quiet.calls()[0])
    [call] = loud.calls()
    assert call["gen_ai.tool.call.arguments"] == '{"password":"[redacted]"}'
    assert call["gen_ai.tool.call.result"] == '"token=[redacted]"'


def test_calls_money_and_tokens_are_counted_by_few_labels_and_never_by_a_session(seen: Seen) -> None:
    policy = Policy([Budget(max_calls=2)], scopes={"tenant": [Budget(max_calls=9)]})
    session = seen.session("the-session", policy, scopes={"tenant": "the-tenant"})
    for tool, execute in (("a", ten), ("b", broken), ("c", ten)):
        session.call(tool, {}, execute)
    for _ in range(2):  # the same response
        session.charge(model="m", usage={"prompt_tokens": 3, "completion_tokens": 4}, cost_usd=0.25, key="r1")
    tool, decision, used_by = "gen_ai.tool.name", "guardrails.decision", "guardrails.used_by"
    calls = {labels[tool]: labels | {"calls": value} for labels, value in seen.metric("guardrails.calls")}
    assert [calls[name][decision] for name in "abc"] == ["allow", "allow", "deny"]
    assert calls["c"] == {tool: "c", decision: "deny", "guardrails.code": "budget.max_calls", "calls": 1}
    durations = [(labels[tool], labels.get("error.type")) for labels, _ in seen.metric("gen_ai.execute_tool.duration")]
    assert sorted(durations) == [("a", None), ("b", "connection")]
    for name, used in {"cost": {"tool": 0.5, "model": 0.25}, "tokens": {"tool": 10, "model": 7}}.items():
        assert {labels[used_by]: value for labels, value in seen.metric(f"guardrails.{name}") if value} == used
    shown: Any = seen.reader.get_metrics_data()
    assert "the-" not in shown.to_json()


def test_labels_are_bounded_whatever_a_model_calls(seen: Seen) -> None:
    session = seen.session(policy=Policy())
    for n in range(MAX_LABELS + 50):
        session.call(f"tool{n}", {}, ten)
    names = {labels["gen_ai.tool.name"] for labels, _ in seen.metric("guardrails.calls")}
    assert (len(names), OTHER in names) == (MAX_LABELS + 1, True)


def test_each_record_names_its_span_and_an_export_read_back_says_what_the_records_say(tmp_path: Path) -> None:
    seen, path = Seen(content=True), tmp_path / "r.jsonl"
    policy = Policy([Budget(max_calls=6), Duplicates(window=5)])
    traced = seen.session(policy=policy, records=JsonLines(path))
    with traced as session, seen.tracer.start_as_current_span("agent") as agent:
        session.charge(model="m", usage=None)
        for n in (1, 1, 2):
            session.call("search", {"n": n, "text": "é 日本"}, ten)
        session.call("fetch", {"url": "x"}, broken)
        session.complete(session.decide("look", {}, id="c9", claim=True), "done")
        for n in (5, 6, 7, 8):
            session.call("search", {"n": n}, ten)
        session.decide("never", {"n": 9})
    spans = {f"{id_of(span):016x}" for span in seen.spans if span.name.startswith("execute_tool ")}
    named = [(record["event"], record["trace"]["span_id"]) for record in read(path)]
    assert {span for event, span in named if event in ("call", "settle")} == spans
    around = f"{agent.get_span_context().span_id:016x}"
    assert {span for event, span in named if event in ("turn", "charge")} == {around}
    texts = (json.dumps(as_otlp(encode_spans(seen.spans))), path.read_text())
    exported, recorded = ([*map(told, calls_in(text.encode(), "given", Report()))] for text in texts)
    assert exported == recorded
    assert [call[4] for call in exported].count("deny") == 4


class Raises(SpanProcessor):
    """
    Raises wherever it is asked.
    """

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("start")

    def on_end(self, span: Any) -> None:
        raise RuntimeError("end")


def test_an_sdk_that_raises_fails_no_call(seen: Seen) -> None:
    seen.traces.add_span_processor(Raises())
    session = seen.session(policy=Policy())
    assert session.call("search", {}, ten).ok
    assert session.complete(session.decide("search", {"n": 2}, id="c2", claim=True), "done").ok
    assert sum(value for _, value in seen.metric("guardrails.calls")) == 2, "they are counted all the same"


WITHOUT = Path(__file__).with_name("without.py.txt").read_text()


@pytest.mark.system
def test_without_telemetry_nothing_is_imported_and_a_session_is_a_plain_one() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=120)
