"""
Declarations of what a failure looks like.
"""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from pydantic import ConfigDict, TypeAdapter, ValidationError

from guardrails.core.outcome.result_classifier import FailureRule, ResultClassifier


@pytest.mark.parametrize(
    ("rule", "value", "applies"),
    [
        (FailureRule(field="ok", equals=False), {"ok": False}, True),
        (FailureRule(field="ok", equals=False), {"ok": 0}, False),
        (FailureRule(field="ok", equals=False), {}, False),
        (FailureRule(field="state", equals=("failed", "lost")), {"state": "lost"}, True),
        (FailureRule(field="state", equals=("failed", "lost")), {"state": "done"}, False),
        (FailureRule(field="code", at_least=400), {"code": 404}, True),
        (FailureRule(field="code", at_least=400), {"code": "404"}, True),
        (FailureRule(field="code", at_least=400), {"code": 399.9}, False),
        (FailureRule(field="code", at_least=0), {"code": True}, False),
        (FailureRule(field="error", present=True), {"error": "no"}, True),
        (FailureRule(field="error", present=True), {"error": ""}, False),
        (FailureRule(field="error", present=True), {"error": None}, False),
        (FailureRule(field="error", present=True), {}, False),
        (FailureRule(field="data", present=False), {}, True),
        (FailureRule(field="data", present=False), {"data": [1]}, False),
        (FailureRule(field="errors.0.message", matches="(?i)denied"), {"errors": [{"message": "Denied."}]}, True),
        (FailureRule(field="errors.0.message", matches="denied"), {"errors": []}, False),
        (FailureRule(field="n", matches="1"), {"n": 1}, False),
        (FailureRule(equals=-1), -1, True),
        (FailureRule(present=False), None, True),
    ],
)
def test_a_rule_finds_its_sign(rule: FailureRule, value: Any, applies: bool) -> None:
    assert rule.applies((value,)) is applies


@pytest.mark.parametrize(
    "rule",
    [FailureRule(field="x", present=False), FailureRule(field="x", present=True), FailureRule(equals="x")],
)
def test_a_rule_finds_nothing_where_there_is_nothing_to_look_at(rule: FailureRule) -> None:
    assert not rule.applies(())


@pytest.mark.parametrize(
    "settings",
    [{}, {"field": "x"}, {"equals": 1, "present": True}, {"matches": "("}, {"matches": "(?<n>a)"}],
)
def test_a_rule_takes_one_condition_that_makes_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"exactly one|not a regular expression"):
        FailureRule(**settings)


def test_a_classifier_refuses_what_is_no_regular_expression() -> None:
    with pytest.raises(ValueError, match=r"not a regular expression: `a\[`"):
        ResultClassifier(text_matches=("ok", "a["))


def test_a_classifier_is_a_value() -> None:
    one, other = (ResultClassifier(error_when=(FailureRule(field="x", present=True),)) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(FrozenInstanceError):
        one.status_field = "status"  # type: ignore[misc]


ADAPTER = TypeAdapter(ResultClassifier)
STRICT = TypeAdapter(dict[str, ResultClassifier], config=ConfigDict(extra="forbid", strict=True))


def test_a_classifier_comes_from_plain_data() -> None:
    data = """{"search": {"status_field": "status", "ok_values": [200, "ok", true],
               "error_when": [{"field": "code", "at_least": 400, "error_type": "server_error"},
                              {"field": "state", "equals": ["lost", false]}],
               "text_matches": ["^Error"], "message_field": "detail", "retry_after_field": "wait"}}"""

    assert STRICT.validate_json(data)["search"] == ResultClassifier(
        status_field="status",
        ok_values=(200, "ok", True),
        error_when=(
            FailureRule(field="code", at_least=400, error_type="server_error"),
            FailureRule(field="state", equals=("lost", False)),
        ),
        text_matches=("^Error",),
        message_field="detail",
        retry_after_field="wait",
    )


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ('{"error_when": [{"field": "x"}]}', ("error_when", 0)),
        ('{"error_when": [{"matches": "("}]}', ("error_when", 0)),
        ('{"error_when": [{"equals": 1, "error_type": "server_5xx"}]}', ("error_when", 0, "error_type")),
        ('{"status_field": ""}', ("status_field",)),
        ('{"text_matches": [""]}', ("text_matches", 0)),
        ('{"text_matches": ["("]}', ()),
    ],
)
def test_a_mistake_in_plain_data_is_found_at_its_place(data: str, where: tuple[str | int, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_json(data)

    assert caught.value.errors()[0]["loc"] == where
