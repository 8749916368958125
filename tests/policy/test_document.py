"""
What a policy file may say, and what it becomes.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import Guard, Policy, PolicyError, guard
from guardrails.core.guards import GUARDS


@guard
class Mine(Guard):
    """
    A person's own guard.
    """


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
    assert not any(enforced for _, _, enforced, _ in plan.checks)


def test_a_declared_result_classifier_finds_a_failure_that_hides(tmp_path: Path, clock: Any) -> None:
    session = load(RULES, tmp_path).session("s", clock=clock)
    envelope = session.call("web_get", {"city": "x"}, lambda *_: {"status": 404, "error": "nope"})
    assert (envelope.status, envelope.error_type) == ("error", "not_found")


def test_every_guard_has_its_key() -> None:
    keys = Policy.schema()["properties"]
    assert {cls.name for cls in GUARDS} <= keys.keys()


def test_words_for_a_guard_of_ones_own_need_that_guard(tmp_path: Path) -> None:
    text = "version: 1\nmessages: {mine.limit: {message: no}}\n"
    with pytest.raises(PolicyError, match=r"policy\.yaml:2:12: no guard says `mine\.limit`"):
        load(text, tmp_path)
    assert Policy.load(tmp_path / "policy.yaml", guards=[Mine()]).chain.messages
