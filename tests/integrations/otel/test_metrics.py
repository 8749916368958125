"""
What is counted, and by which labels: few of them, and never a session.
"""

import gc
import weakref

from typing import Any

import pytest

from guardrails import Budget, Failed, Policy, Retryable, Success
from tests.integrations.otel.seen import Seen


pytest.importorskip("opentelemetry.sdk")

from guardrails.integrations.otel.metrics import MAX_LABELS, OTHER


def ten(tool: str, arguments: Any) -> Any:
    return Success("done", cost_usd=0.5, tokens=10)


def broken(tool: str, arguments: Any) -> Any:
    raise ConnectionError("gone")


def test_calls_are_counted_by_what_was_decided_and_what_came_of_them(seen: Seen) -> None:
    session = seen.session(policy=Policy([Budget(max_calls=2)]))
    session.call("a", {}, ten)
    session.call("b", {}, broken)
    session.call("c", {}, ten)
    tool, said = "gen_ai.tool.name", "guardrails.decision"
    assert sorted(seen.metric("guardrails.calls"), key=str) == [
        ({tool: "a", said: "allow"}, 1),
        ({tool: "b", said: "allow", "error.type": "connection"}, 1),
        ({tool: "c", said: "deny"}, 1),
    ]
    assert seen.metric("guardrails.denials") == [({tool: "c", "guardrails.code": "budget.max_calls"}, 1)]
    durations = [labels for labels, _ in seen.metric("gen_ai.execute_tool.duration")]
    assert {labels[tool] for labels in durations} == {"a", "b"}


def test_money_and_tokens_are_counted_for_tools_and_models(seen: Seen) -> None:
    session = seen.session()
    session.call("a", {}, ten)
    session.charge(model="m", usage={"prompt_tokens": 3, "completion_tokens": 4}, cost_usd=0.25, key="r1")
    session.charge(model="m", usage={"prompt_tokens": 3, "completion_tokens": 4}, cost_usd=0.25, key="r1")
    assert {labels["guardrails.used_by"]: value for labels, value in seen.metric("guardrails.cost")} == {
        "tool": 0.5,
        "model": 0.25,
    }
    assert {labels["guardrails.used_by"]: value for labels, value in seen.metric("guardrails.tokens")} == {
        "tool": 10,
        "model": 7,
    }


def test_retries_are_counted_by_who_caused_them(seen: Seen) -> None:
    session = seen.session(policy=Policy([Retryable()]))
    session.call("a", {}, lambda *_: Failed("no such row", error_type="not_found"))
    session.call("a", {}, ten)
    [(labels, value)] = seen.metric("guardrails.retries")
    assert (labels["gen_ai.tool.name"], value) == ("a", 1)
    assert labels["guardrails.retry_source"] in {"agent", "policy"}


def left(seen: Seen) -> dict[str, float]:
    return {labels["guardrails.unit"]: value for labels, value in seen.metric("guardrails.budget.left")}


def test_what_is_left_is_the_least_of_the_sessions_that_are_alive(seen: Seen) -> None:
    policy = Policy([Budget(max_calls=10, max_cost_usd=3)])
    kept = seen.session("a", policy)
    kept.call("a", {}, ten)
    other = seen.session("b", policy)
    for n in range(4):
        other.call("a", {"n": n}, ten)
    assert left(seen) == {"calls": 6, "usd": 1}
    alive = weakref.ref(other)
    del other
    gc.collect()
    assert alive() is None
    assert left(seen) == {"calls": 9, "usd": 2.5}


def test_labels_are_bounded_whatever_a_model_calls(seen: Seen) -> None:
    session = seen.session(policy=Policy())
    for n in range(MAX_LABELS + 50):
        session.call(f"tool{n}", {}, ten)
    labels = [found for found, _ in seen.metric("guardrails.calls")]
    names = {found["gen_ai.tool.name"] for found in labels}
    assert len(names) == MAX_LABELS + 1
    assert OTHER in names


def test_no_label_is_a_session(seen: Seen) -> None:
    policy = Policy([Budget(max_calls=1)], scopes={"tenant": [Budget(max_calls=9)]})
    session = seen.session("the-session", policy, scopes={"tenant": "the-tenant"})
    for n in range(2):
        session.call("a", {"n": n}, ten)
    session.charge(model="m", usage=None)
    data = seen.reader.get_metrics_data()
    assert data is not None
    said = data.to_json()
    assert "guardrails.denials" in said
    assert "the-session" not in said
    assert "the-tenant" not in said
