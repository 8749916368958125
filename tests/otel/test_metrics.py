"""
What is counted, and by which labels: few of them, and never a session.
"""

from typing import Any

import pytest

from guardrails import Budget, Policy, Success
from tests.otel.seen import Seen


pytest.importorskip("opentelemetry.sdk")

from guardrails.otel.telemetry import MAX_LABELS, OTHER


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
        ({tool: "b", said: "allow"}, 1),
        ({tool: "c", said: "deny", "guardrails.code": "budget.max_calls"}, 1),
    ]
    durations = [(labels[tool], labels.get("error.type")) for labels, _ in seen.metric("gen_ai.execute_tool.duration")]
    assert sorted(durations) == [("a", None), ("b", "connection")]


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
    assert "guardrails.calls" in said
    assert "the-session" not in said
    assert "the-tenant" not in said
