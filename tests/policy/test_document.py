"""
What a policy file may say, and what it becomes.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails import Guard, Policy, PolicyError, guard
from guardrails.core.guards import GUARDS
from tests.tables import table


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


@table(
    ("text", "mistake"),
    [
        ("growth: {max_calls: 3}", "unknown key `max_calls`"),
        (
            "guards: {budget: {}}",
            "unknown key `guards`: a guard is a key by its own name, `budget: {max_calls: 20}`, and",
        ),
        ("tools: [{match: x, growth: {}}]", "unknown key `growth`"),
        ("tools: [{polling: true}]", "missing key `match`"),
        ("duplicates: {rule: evidance}", "did you mean `evidence`"),
        ("truncate: {max_bytes: 10}", "at least 256"),
        ("budget: {max_calls: '20'}", "write 20"),
        ("prices: {m: {output_mtok: 1}}", "input_mtok"),
        ("fields: [progres]", "progress"),
        ("tools: [{match: x, parameters: {type: strng}}]", "the schema of the arguments is not valid"),
        ("tools: [{match: 'b['}]", "a glob that matches no name"),
        ("tools: [{match: [a, '']}]", "a glob that matches no name"),
        ("shell: {allow: [false]}", "shell.allow.0: not text"),
        ("tool_filter: {deny: ['rm[']}", "a glob that matches no name"),
        ("budget: {max_cost_usd: 0.5, final_answer_reserve_usd: 0.6}", "($0.60) must be below max_cost_usd ($0.50)"),
        ("tools: [{match: x, budget: {final_answer_reserve_usd: 1}}]", "unknown key `final_answer_reserve_usd`"),
        ("messages: {budget.max_cals: {message: x}}", "no guard says `budget.max_cals`, did you mean"),
        (
            "messages: {budget.max_calls: {message: $limt}}",
            "`$limt` stands for nothing in any message, did you mean `limit`?",
        ),
        ("messages: {budget.max_calls: {mesage: x}}", "unknown key `mesage`, did you mean `message`?"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_way_out(text: str, mistake: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as error:
        load(f"version: 1\n{text}\n", tmp_path)
    assert mistake in str(error.value)
    assert "policy.yaml:2:" in str(error.value)


def test_mistakes_of_every_kind_are_told_at_once(tmp_path: Path) -> None:
    text = """version: 1
budget: {max_cost_usd: 1, final_answer_reserve_usd: 1}
tools:
  - {match: "b[", parameters: {type: strng}}
messages:
  budget.max_cals: {message: x}
  streak.max_same: {message: $n}
  nope.code: {message: x}
"""
    with pytest.raises(PolicyError) as error:
        load(text, tmp_path)
    places = [mistake.partition("policy.yaml:")[2].partition(": ")[0] for mistake in error.value.mistakes]
    assert places == ["2:9", "4:13", "4:31", "6:3", "7:30", "8:3"]


def test_words_for_a_guard_of_ones_own_need_that_guard(tmp_path: Path) -> None:
    text = "version: 1\nmessages: {mine.limit: {message: no}}\n"
    with pytest.raises(PolicyError, match=r"policy\.yaml:2:12: no guard says `mine\.limit`"):
        load(text, tmp_path)
    assert Policy.load(tmp_path / "policy.yaml", guards=[Mine()]).chain.messages
