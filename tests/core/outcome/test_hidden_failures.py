"""
Failures that hide in results.
"""

from types import SimpleNamespace
from typing import Any

from guardrails.core.outcome.hidden_failures import Failure, failure_in
from guardrails.core.outcome.result_classifier import FailureRule, ResultClassifier
from tests.tables import table


def mcp(text: str, *, is_error: bool, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error, **more}


STATUS = ResultClassifier(status_field="status")
ERROR = ResultClassifier(error_when=(FailureRule(field="error", present=True),))
WORDS = ResultClassifier(text_matches=(r"^Error\b", r"(?i)^failed to"))


@table(
    ("value", "classifier", "failure"),
    [
        # The protocol's own flag needs no declaration.
        (mcp("Tool call timed out.", is_error=True), None, Failure("timeout", "Tool call timed out.", True)),
        (mcp("HTTP 429", is_error=True), None, Failure("rate_limit", "HTTP 429", True, 429)),
        (mcp("hm", is_error=True), None, Failure("other", "hm", True)),
        (
            {"isError": True, "content": []},
            None,
            Failure("other", "the tool reported an error and said nothing of it", False),
        ),
        (
            SimpleNamespace(is_error=True, content=[SimpleNamespace(type="text", text="Unknown tool: x")]),
            None,
            Failure("tool_missing", "Unknown tool: x", True),
        ),
        # A status in the data.
        ({"status": 400, "message": "bad date"}, STATUS, Failure("validation", "bad date", False, 400)),
        ({"status": "503"}, STATUS, Failure("unavailable", "status: '503'", False, 503)),
        ({"status": "error", "detail": "no such city"}, STATUS, Failure("not_found", "no such city", False)),
        ({"status": False}, STATUS, Failure("other", "status: False", False)),
        ('{"status": 404, "error": {"message": "gone"}}', STATUS, Failure("not_found", "gone", False, 404)),
        (mcp('{"status": 429}', is_error=False), STATUS, Failure("rate_limit", '{"status": 429}', True, 429)),
        (
            mcp("see there", is_error=False, structuredContent={"status": 500}),
            STATUS,
            Failure("server_error", "see there", True, 500),
        ),
        (
            {"code": 7, "msg": "later"},
            ResultClassifier(status_field="code", ok_values=(0, 1)),
            Failure("other", "later", False),
        ),
        # Rules on fields.
        ({"error": "quota exceeded"}, ERROR, Failure("rate_limit", "quota exceeded", False)),
        ({"error": {"message": "denied: forbidden"}}, ERROR, Failure("permission", "denied: forbidden", False)),
        ({"error": ["a", "b"]}, ERROR, Failure("other", "['a', 'b']", False)),
        ({"error": 17}, ERROR, Failure("other", "error: 17", False)),
        (
            {"ok": False, "why": "closed"},
            ResultClassifier(
                error_when=(FailureRule(field="ok", equals=False, error_type="conflict"),), message_field="why"
            ),
            Failure("conflict", "closed", False),
        ),
        (
            {"error": "slow down", "wait": 1.5},
            ResultClassifier(error_when=(FailureRule(field="error", present=True),), retry_after_field="wait"),
            Failure("rate_limit", "slow down", False, None, 1.5),
        ),
        (
            "Nothing here",
            ResultClassifier(error_when=(FailureRule(matches="^Nothing", error_type="not_found"),)),
            Failure("not_found", "Nothing here", True),
        ),
        # Words of a text.
        ("Error: User not found", WORDS, Failure("not_found", "Error: User not found", True)),
        (mcp("Failed to fetch", is_error=False), WORDS, Failure("other", "Failed to fetch", True)),
    ],
)
def test_a_declared_failure_is_found(value: Any, classifier: ResultClassifier | None, failure: Failure) -> None:
    assert failure_in(value, classifier) == failure


@table("classifier", [None, STATUS, ERROR, WORDS])
@table(
    "value",
    [
        {"status": "success", "results": []},
        {"status": 200},
        {"error": ""},
        "No Error here",
        mcp("all is well", is_error=False),
        [],
        None,
        0,
        object(),
    ],
)
def test_a_result_is_no_failure(value: Any, classifier: ResultClassifier | None) -> None:
    assert failure_in(value, classifier) is None


def test_what_is_declared_stands_above_what_is_plain() -> None:
    assert failure_in({"error": "it broke"}, ResultClassifier()) is None
    assert failure_in({"error": "it broke"}, STATUS) is None
    assert failure_in("Error: it broke", ResultClassifier(), lambda _: "own") is None


def test_the_first_rule_that_applies_decides() -> None:
    classifier = ResultClassifier(
        error_when=(
            FailureRule(field="code", at_least=500, error_type="unavailable"),
            FailureRule(field="code", at_least=400, error_type="validation"),
        )
    )

    assert [failure_in({"code": code}, classifier) for code in (399, 400, 500)] == [
        None,
        Failure("validation", "code: 400", False),
        Failure("unavailable", "code: 500", False),
    ]


def test_a_declared_kind_stands_above_the_flag() -> None:
    classifier = ResultClassifier(error_when=(FailureRule(matches="busy", error_type="unavailable"),))

    assert failure_in(mcp("conflict: busy", is_error=True), classifier) == Failure(
        "unavailable", "conflict: busy", True
    )


def test_another_form_than_the_declared_one_is_a_failure_whose_own_words_say_which() -> None:
    schema = {"type": "object", "required": ["id"]}
    rules = ResultClassifier(error_when=(FailureRule(unfit=schema),))
    bare, told, page = (
        failure_in(value, rules)
        for value in ({}, {"message": "Service Unavailable"}, "<title>503 Service Temporarily Unavailable</title>")
    )
    assert bare is not None
    assert (bare.error_type, bare.message, bare.whole) == (
        "other",
        "the result does not have the form that is declared of it",
        False,
    )
    assert told is not None
    assert (told.error_type, told.message) == (
        "unavailable",
        "the result does not have the form that is declared of it: Service Unavailable",
    )
    assert page is not None
    assert (page.error_type, page.whole) == ("unavailable", False)
    assert failure_in({"id": 1}, rules) is None
    assert failure_in('{"id": 1}', rules) is None
    assert failure_in({"content": [], "structuredContent": {"id": 1}}, rules) is None


def test_what_was_not_taken_whole_is_held_against_no_schema() -> None:
    rules = ResultClassifier(error_when=(FailureRule(unfit={"type": "object"}),))
    assert failure_in('{"id": 1, "na', rules) is not None
    assert failure_in('{"id": 1, "na', rules, whole=False) is None


def test_data_of_another_than_was_asked_for_is_a_failure_that_says_so() -> None:
    rules = ResultClassifier(error_when=(FailureRule(field="id", other_than="order_id"),))
    found = failure_in({"id": "B-03", "message": "gone 404"}, rules, None, {"order_id": "A-17"})
    assert found is not None
    assert found.error_type == "other"
    assert found.message.startswith("`id` of the result is 'B-03', where 'A-17' was asked for")
    assert failure_in({"id": "A-17"}, rules, None, {"order_id": "A-17"}) is None


@table("result", [{"error": "no such order"}, '{"error": "no such order"}', {"status": 503}])
@table("rule", [FailureRule(field="id", other_than="order_id"), FailureRule(field="id", unfit={"type": "string"})])
def test_a_check_of_the_answer_hides_no_failure_that_is_plain(rule: FailureRule, result: object) -> None:
    rules, asked = ResultClassifier(error_when=(rule,)), {"order_id": "A-17"}
    assert failure_in(result, rules, lambda _: "data", asked) == failure_in(result, None, lambda _: "data", asked)
    assert failure_in(result, rules, lambda _: "data", asked) is not None
    assert failure_in({"id": "A-17", "note": "error"}, rules, lambda _: "data", asked) is None


@table(
    "declared",
    [{}, {"status_field": "ok"}, {"text_matches": ("boom",)}, {"error_when": (FailureRule(field="no", present=True),)}],
)
def test_a_declaration_of_how_a_tool_fails_still_decides_alone(declared: dict[str, Any]) -> None:
    check = FailureRule(field="id", other_than="order_id")
    rules = ResultClassifier(**{**declared, "error_when": (*declared.get("error_when", ()), check)})
    assert (failure_in({"error": "none of ours"}, rules, lambda _: "data") is None) is bool(declared)
    assert failure_in({"error": "none of ours"}, ResultClassifier(**declared), lambda _: "data") is None


SUM = ResultClassifier(error_when=(FailureRule(unfit={"type": "object", "properties": {"sum": {"type": "number"}}}),))


@table("result", [{"sum": float("nan")}, '{"sum": NaN}', '\ufeff{"sum": 1}', {"sum": "\ud800"}])
def test_what_only_some_parsers_read_is_held_against_no_schema(result: object) -> None:
    assert failure_in(result, SUM) is None


def test_a_result_of_any_depth_is_held_against_a_schema_that_refers_to_itself() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200_000):
        deep = {"in": deep}
    endless = FailureRule(unfit={"type": "object", "additionalProperties": {"$ref": "#"}})
    assert failure_in(deep, ResultClassifier(error_when=(endless,))) is None


@table(
    "result",
    [
        {"error": "permission denied"},
        {"content": [{"type": "text", "text": "permission denied"}], "isError": True},
    ],
)
def test_a_result_that_says_that_it_failed_is_of_the_kind_that_it_says(result: object) -> None:
    form = FailureRule(unfit={"type": "object", "required": ["id"]}, error_type="server_error")
    failure = failure_in(result, ResultClassifier(error_when=(form,)))
    assert failure is not None
    assert (failure.error_type, failure.message) == ("permission", "permission denied")


@table(
    ("said", "asked", "other"),
    [
        ("7.0", 7, False),
        ("007", "7", False),
        ("caf\u00e9", "cafe\u0301", False),
        ("1234567890123456789", "1234567890123456788", True),
        ("sNaN", "1", True),
        ("9" * 200, "9" * 201, True),
    ],
)
def test_spellings_of_one_number_or_word_are_the_same_entity(said: object, asked: object, other: bool) -> None:
    rules = ResultClassifier(error_when=(FailureRule(field="id", other_than="id"),))
    assert (failure_in({"id": said}, rules, arguments={"id": asked}) is not None) is other
