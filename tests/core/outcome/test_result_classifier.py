"""
Declarations of what a failure looks like.
"""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from pydantic import ConfigDict, TypeAdapter, ValidationError

from guardrails.core.outcome.result_classifier import FailureRule, ResultClassifier
from tests.tables import table


@table(
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


ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "total"],
    "properties": {"id": {"type": "string"}, "total": {"type": "number"}},
}


@table(
    ("value", "unfit"),
    [
        ({"id": "A", "total": 3}, False),
        ({"id": "A", "total": 3, "more": None}, False),
        ({"id": "A"}, True),
        ({"id": "A", "total": "3"}, True),
        ({"data": {"id": "A", "total": 3}}, True),
        ([{"id": "A", "total": 3}], True),
        ("id=A; total=3", True),
        (None, True),
        ("{" + " " * 70_000, False),
        ({"id": "A", 3: "a key that is no text"}, False),
        (object(), False),
    ],
)
def test_a_rule_finds_what_does_not_fit_a_schema_where_that_can_be_checked(value: Any, unfit: bool) -> None:
    assert FailureRule(unfit=ORDER).applies((value,)) is unfit


def test_a_result_fits_if_one_of_the_forms_in_which_it_can_be_read_does() -> None:
    rule = FailureRule(unfit=ORDER)
    assert not rule.applies(('{"id": "A", "total": 3}', {"id": "A", "total": 3}))
    assert rule.applies(('{"id": "A"}', {"id": "A"}))
    assert not rule.applies(())
    assert not FailureRule(field="order", unfit=ORDER).applies(({"orders": []},))


@table(
    ("value", "given", "other"),
    [
        ({"id": "B-03"}, "A-17", True),
        ({"id": "A-17"}, "A-17", False),
        ({"id": " a-17 "}, "A-17", False),
        ({"id": 17}, "17", False),
        ({"id": 17.0}, 17, False),
        ({"id": 18}, "17", True),
        ({"id": ""}, "A-17", False),
        ({"id": None}, "A-17", False),
        ({"id": ["B-03"]}, "A-17", False),
        ({"id": True}, "A-17", False),
        ({"name": "B-03"}, "A-17", False),
        ({"id": "B-03"}, None, False),
        ({"id": "B-03"}, ["A-17", "B-03"], False),
        ("B-03", "A-17", False),
    ],
)
def test_a_rule_finds_another_text_or_number_than_was_asked_for(value: Any, given: Any, other: bool) -> None:
    rule = FailureRule(field="id", other_than="order.id")
    assert rule.applies((value,), {"order": {"id": given}}) is other
    assert not rule.applies((value,), {"order": {}})
    assert not rule.applies((value,))


@table("schema", [{"type": "no such type"}, {"$ref": "https://example.com/order.json"}, {"a": {1, 2}}])
def test_a_rule_takes_a_schema_that_can_be_checked_without_another_document(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a JSON Schema"):
        FailureRule(unfit=schema)


@table("rule", [FailureRule(field="x", present=False), FailureRule(field="x", present=True), FailureRule(equals="x")])
def test_a_rule_finds_nothing_where_there_is_nothing_to_look_at(rule: FailureRule) -> None:
    assert not rule.applies(())


@table("settings", [{}, {"field": "x"}, {"equals": 1, "present": True}, {"matches": "("}, {"matches": "(?<n>a)"}])
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


@table(
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
