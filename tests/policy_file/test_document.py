"""
What a policy file may say, and what it becomes.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy, PolicyError
from guardrails.guards import GUARDS
from guardrails.policy_file.document import adapter


RULES = """
version: 1
extends: default
tools:
  - match: [web_*, fetch]
    result: {status_field: status, ok_values: [200, 201], error_when: [{field: error, present: true}]}
    annotations: {readOnlyHint: true}
    ask_user: [city]
    retryable: true
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
    duplicates: {window: 3}
    rate: {max_calls_per_second: 2}
    budget: {max_tool_calls: 2}
    summary: {mode: off}
  - match: fetch
    timeout: 500ms
    duplicates: {window: 9, rule: always}
    retryable: {max_retries: 1}
  - {match: "*", mode: observe, on_error: allow}
"""


def load(text: str, tmp_path: Path) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return Policy.load(path)


def test_a_rule_declares_and_overrides_first_match_first_key_by_key(tmp_path: Path) -> None:
    plan = load(RULES, tmp_path).chain.plan("fetch")
    guards = {g.name: g for g in plan.guards}
    assert (plan.tool.read_only, plan.tool.retryable, plan.tool.timeout) == (True, True, 0.5)
    assert str(guards["duplicates"]) == "Duplicates(window=3)"
    assert str(guards["retryable"]) == "Retryable(max_retries=1)"
    assert str(guards["tools.budget"]) == "ToolBudget(amount=2)"
    assert guards["summary"].mode == "off"
    assert plan.deny_on_error is False
    assert not any(enforced for _, enforced, _ in plan.checks)


def test_a_declared_result_classifier_finds_a_failure_that_hides(tmp_path: Path, clock: Any) -> None:
    session = load(RULES, tmp_path).session("s", clock=clock)
    envelope = session.call("web_get", {"city": "x"}, lambda *_: {"status": 404, "error": "nope"})
    assert (envelope.status, envelope.error_type) == ("error", "not_found")


def test_every_guard_has_its_key() -> None:
    keys = adapter().json_schema()["properties"]
    assert {cls.name for cls in GUARDS} <= keys.keys()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("growth: {max_calls: 3}", "unknown key `max_calls`"),
        ("tools: [{match: x, growth: {}}]", "unknown key `growth`"),
        ("tools: [{polling: true}]", "missing key `match`"),
        ("duplicates: {rule: evidance}", "did you mean `evidence`"),
        ("truncate: {max_bytes: 10}", "at least 256"),
        ("budget: {max_calls: '20'}", "write 20"),
        ("prices: {m: {output_mtok: 1}}", "input_mtok"),
        ("fields: [progres]", "progress"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_way_out(text: str, mistake: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as error:
        load(f"version: 1\n{text}\n", tmp_path)
    assert mistake in str(error.value)
    assert "policy.yaml:2:" in str(error.value)
