"""
Failures that anyone would call one, and their twins: honest results in which one field is another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from guardrails.core.outcome import outcome_of
from guardrails.core.outcome.hidden_failures import failure_in
from guardrails.core.outcome.plain_failures import Words, may_fail
from guardrails.core.values.types import Outcome
from tests.tables import table


def blocks(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


TWINS: list[tuple[Any, Any]] = [
    ({"error": "slot taken"}, {"error": "slot taken", "slots": ["10:00"]}),
    ({"error": "slot taken", "slots": []}, {"error": "", "slots": []}),
    ({"error": {"message": "gone"}}, {"error": {"message": ""}}),
    ({"error": True, "message": "gone"}, {"error": False, "message": "gone"}),
    ({"error": ["a"]}, {"error": [], "warnings": ["a"]}),
    ({"error": "none of these exist"}, {"error": "none"}),
    ({"error": "out of range", "value": None}, {"error": 0.02, "value": 3.1}),
    ({"error": "sensor is off", "value": None}, {"error": "sensor drifts", "value": 21.5}),
    ({"error": "not found", "path": "/x", "timestamp": "2026"}, {"error": None, "path": "/x", "timestamp": "2026"}),
    ({"error": "x", "documentation_url": "https://x"}, {"error": "x", "image_url": "https://x"}),
    ({"status": "error", "error": "out of memory", "id": 7}, {"status": "failed", "error": "out of memory", "id": 7}),
    ({"status": "failed", "error": "no disk"}, {"status": "completed", "error": "one row was skipped"}),
    ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602}}, {"jsonrpc": "2.0", "id": 1, "result": {"code": -32602}}),
    ({"data": None, "errors": [{"message": "x"}]}, {"data": {"user": 1}, "errors": [{"message": "x"}]}),
    ({"data": None, "errors": ["x"]}, {"errors": ["line 3: x"]}),
    ({"ok": False}, {"ok": None}),
    ({"ok": False, "reason": "closed"}, {"ok": False, "seats": 0}),
    ({"success": False, "message": "no such user"}, {"success": False, "valid": False, "message": "expired"}),
    ({"success": False, "results": []}, {"success": False, "results": [1]}),
    (
        {"success": False, "error": "2 of 3 failed", "rows": [1]},
        {"success": True, "error": "2 of 3 failed", "rows": [1]},
    ),
    ({"status": 404}, {"status": 399}),
    ({"status": 500, "message": "x"}, {"status": 500, "name": "Bob"}),
    (
        {"status": 503, "message": "down", "region": "eu"},
        {"status": 599, "message": "on its way", "parcel": 7},
    ),
    (
        {"status": 404, "title": "gone", "seats": 2},
        {"status": 404, "title": "gone", "seats": [1]},
    ),
    ({"status": "503", "detail": "busy"}, {"status": "busy", "detail": "503"}),
    ({"status": 404, "body": "<html>"}, {"status": 200, "body": "404"}),
    ({"statusCode": 429, "headers": {"a": "b"}}, {"statusCode": 204, "headers": {"a": "b"}}),
    ({"title": "no", "status": 400, "instance": "/a"}, {"title": "no", "status": 400, "chapters": ["a"]}),
    ({"isError": True, "rows": [1]}, {"isError": False, "rows": [1]}),
    ({"is_error": True, "result": "x"}, {"is_error": False, "result": "x"}),
]


def forms(value: Mapping[str, Any]) -> list[Any]:
    text = orjson.dumps(value).decode()
    return [
        value,
        MappingProxyType(value),
        text,
        f"\n{text}\n",
        text.encode(),
        blocks(text),
        {"content": blocks(text)},
        {"content": blocks("see there"), "structuredContent": value},
    ]


@table(("failure", "honest"), TWINS)
def test_an_object_is_a_failure_in_each_form_and_its_twin_in_none(failure: Any, honest: Any) -> None:
    assert [outcome_of(form).error_type is not None for form in forms(failure)] == [True] * 8
    assert [outcome_of(form).error_type for form in forms(honest)] == [None] * 8


def test_a_failure_that_is_found_keeps_what_the_tool_said() -> None:
    value = {"error": "no such user", "user": "bo"}
    text = '{"error":  "no such user"}\n'

    assert outcome_of(value, arguments={"user": "bo"}) == Outcome(value, "not_found", "no such user")
    assert outcome_of(text) == Outcome(text, "not_found", "no such user")


def test_an_echo_of_the_arguments_brings_nothing() -> None:
    value = {"error": "cannot ship there", "city": "Rome", "weight": 3}

    assert outcome_of(value, arguments={"city": "Rome", "weight": 3}).error_type == "other"
    assert outcome_of(value, arguments={"city": "Rome", "weight": 4}).error_type is None


def test_the_kind_status_and_wait_of_an_object_are_its_own() -> None:
    limited = {"status": 429, "error": {"message": "slow down", "retry_after": 7}}
    unpaid = {"status": 429, "error": {"message": "no", "code": "insufficient_quota"}}

    assert outcome_of(limited) == Outcome(limited, "rate_limit", "slow down", 429, 7000)
    assert outcome_of({"error": "busy", "retry_after_ms": 1500}).retry_after_ms == 1500
    assert outcome_of({"error": "busy: try again in 20s"}).retry_after_ms == 20_000
    assert outcome_of(unpaid).error_type == "permission"
    assert outcome_of({"error": {"code": -32602, "message": "no"}}).error_type == "validation"
    assert outcome_of({"error": "x", "error_type": "auth"}).error_type == "auth"


def test_dataclasses_and_models_are_objects_too() -> None:
    @dataclass
    class Row:
        success: bool
        message: str

    class Answer(BaseModel):
        error: str | None = None
        rows: list[int] = []

    assert outcome_of(Row(success=False, message="no such user")).error_type == "not_found"
    assert outcome_of(Row(success=True, message="no such user")).error_type is None
    assert outcome_of(Answer(error="timed out")).error_type == "timeout"
    assert outcome_of(Answer(error="timed out", rows=[1])).error_type is None


# Texts.

OWN: Words = "own"
TRACED = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nTimeoutError: slow'
NOTEBOOK = (
    f"{'-' * 75}\nKeyError                                  Traceback (most recent call last)\nCell In[1], line 1"
)


@table(
    ("failure", "honest"),
    [
        ("Error: it broke", "ok\nError: it broke"),
        ("error: unknown option", "errors: unknown option"),
        ("Error: 404", "Error: 0.5"),
        ("Error: nothing was found", "Error: none"),
        ("Error executing tool book: no such room", "Error handling: no such room"),
        ("Error (409): taken", "Error"),
        ("Input validation error: `path` is required", "Mean squared error: `path` is required"),
        ("httpx.ReadError: gone", "ReadError"),
        ("ValueError: bad date", "See ValueError: bad date"),
        (f"\n{TRACED}", f"The log says: {TRACED}"),
        (NOTEBOOK, f"In[1]\n{NOTEBOOK}"),
    ],
)
def test_a_text_is_a_failure_if_its_first_line_says_so(failure: str, honest: str) -> None:
    for text, failed in ((failure, True), (honest, False)):
        assert (failure_in(text, None, lambda _: OWN) is not None) is failed
        assert (failure_in({"content": blocks(text, "more")}, None, lambda _: OWN) is not None) is failed


@table(
    ("words", "plain", "json", "traced"),
    [
        ("own", True, True, True),
        ("data", False, True, False),
        ("code", False, False, True),
        ("shown", False, False, False),
    ],
)
def test_whose_words_a_text_is_decides(words: Words, plain: bool, json: bool, traced: bool) -> None:
    texts = "Error: it broke", '{"error": "it broke"}', TRACED

    assert [failure_in(text, None, lambda _: words) is not None for text in texts] == [plain, json, traced]
    assert failure_in({"error": "it broke"}, None, lambda _: words) is not None


def test_what_the_model_wrote_itself_is_no_failure() -> None:
    assert failure_in("Error: it broke", None, lambda _: OWN, {"text": "say `Error: it broke`"}) is None
    assert failure_in("Error: it broke", None, lambda _: OWN, {"text": "say something"}) is not None


@given(
    st.dictionaries(
        st.sampled_from(["error", "ok", "success", "status", "isError", "data", "rows", "id", "content"])
        | st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=5,
    ),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=2),
)
def test_no_object_raises_and_what_is_no_closer_look_worth_is_no_failure(value: Any, arguments: Any) -> None:
    found = failure_in(value, None, None, arguments)

    assert found is None or may_fail(value)
