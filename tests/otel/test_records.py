"""
Records and traces find each other, and our own reader finds in an export what the records say.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Duplicates, JsonLines, Policy, Success
from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.files import calls_in
from tests.otel.seen import Seen


pytest.importorskip("opentelemetry.sdk")


def rows(tool: str, arguments: Any) -> Any:
    return Success({"rows": [1]}, cost_usd=0.01)


def broken(tool: str, arguments: Any) -> Any:
    raise TimeoutError("no answer")


def test_each_record_names_the_span_it_was_made_in(seen: Seen) -> None:
    session = seen.session()
    with seen.tracer.start_as_current_span("agent") as agent:
        session.charge(model="m", usage=None)
        session.call("search", {}, rows)
    named = [(one["event"], one["trace"]["trace_id"], one["trace"]["span_id"]) for one in seen.sink.records]
    [call] = [one for one in seen.spans if one.name == "execute_tool search"]
    assert call.context is not None
    own, trace = f"{call.context.span_id:016x}", f"{call.context.trace_id:032x}"
    around = f"{agent.get_span_context().span_id:016x}"
    assert named == [("turn", trace, around), ("charge", trace, around), ("call", trace, own), ("settle", trace, own)]


def read(text: str) -> list[RecordedCall]:
    return calls_in(text.encode(), "given", Report())


def shown(call: RecordedCall) -> tuple[Any, ...]:
    said = (call.session_id, call.tool, call.id, call.arguments, call.decision, call.code)
    return (*said, call.has_result, call.is_error, call.error_type)


def as_lines(seen: Seen, folder: Path) -> list[dict[str, Any]]:
    """
    The records as a file has them.
    """
    sink = JsonLines(folder / "r.jsonl")
    for one in seen.sink.records:
        sink.put(one, 100)
    sink.close()
    return [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]


def test_an_export_read_back_has_the_calls_failures_and_denials_of_the_records(tmp_path: Path) -> None:
    seen = Seen(content=True)
    policy = Policy([Budget(max_calls=6), Duplicates(window=5)])
    session = seen.session(policy=policy)
    with seen.tracer.start_as_current_span("agent"):
        for n in (1, 1, 2):
            session.call("search", {"n": n, "text": "é 日本"}, rows)
        session.call("fetch", {"url": "x"}, broken)
        session.complete(session.decide("look", {}, id="c9", claim=True), "done")
        for n in (5, 6, 7, 8):
            session.call("search", {"n": n}, rows)
        session.decide("never", {"n": 9})
    records = "\n".join(json.dumps(one, default=str) for one in as_lines(seen, tmp_path))
    told, own = read(seen.otlp()), read(records)
    assert [shown(one) for one in told] == [shown(one) for one in own]
    assert [one.decision for one in told].count("deny") == 4
    assert [one.error_type for one in told].count("timeout") == 1
