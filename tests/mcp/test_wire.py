"""
The one shape of what clients of guarded servers read, and that it stays valid for what a tool promises.
"""

import json

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from guardrails import Envelope, Policy, Truncate
from guardrails.core.result.content import read_mcp
from guardrails.mcp.wire import BESIDE, ENVELOPE, UNKNOWN, ServerArguments, answered, refused
from tests.tables import table


ROWS = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
    },
    "required": ["rows", "count"],
    "additionalProperties": False,
}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def result(structured: Any = None, text: str = "some text", *more: Any, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}, *more]
    return {"content": content, "structuredContent": structured, **fields}


def guarded(one: dict[str, Any], schema: dict[str, Any] | None = None, limit: int = 1_000) -> Mapping[str, Any]:
    value = read_mcp(one)
    envelope = Policy([Truncate(max_bytes=limit)]).session("s").call("t", {}, lambda *_: value)
    return answered(envelope, one, value, schema)


def texts(one: Mapping[str, Any]) -> list[str]:
    return [block["text"] for block in one["content"] if block["type"] == "text"]


def test_a_success_of_which_there_is_nothing_to_say_is_the_very_same() -> None:
    one = result({"rows": ["a"], "count": 1}, "a", IMAGE)
    assert guarded(one, ROWS) is one


def test_a_result_that_is_too_long_keeps_the_form_that_its_schema_promises() -> None:
    one = result({"rows": ["x" * 50] * 500, "count": 500}, "x" * 30_000, IMAGE)
    made = guarded(one, ROWS)
    assert jsonschema_rs.is_valid(ROWS, made["structuredContent"])
    assert 10 < len(made["structuredContent"]["rows"]) < 20
    assert made["structuredContent"]["count"] == 500
    [text] = texts(made)
    assert json.loads(text)["is_complete"] is False
    assert len(text) < 2_000
    assert IMAGE in made["content"]
    assert made["_meta"][ENVELOPE]["is_complete"] is False
    assert not made.get("isError")


@table(("schema", "there"), [(None, True), (ROWS, False), (UNKNOWN, False)])
def test_what_is_to_be_said_stands_in_the_structured_content_where_the_schema_has_room(
    schema: dict[str, Any] | None, there: bool
) -> None:
    one = result({"rows": [], "count": 0})
    envelope = Envelope.success({"rows": [], "count": 0})
    envelope.limit("that was the last one", "write your answer", "budget.max_calls")
    made = answered(envelope, one, envelope.value, schema)
    assert (BESIDE in made["structuredContent"]) is there
    assert made["_meta"] == {ENVELOPE: {"limit_reached": True, "limit_message": "that was the last one"}}
    assert texts(made)[0] == "some text"
    assert texts(made)[1] == '[guardrails] {"limit_reached":true,"limit_message":"that was the last one"}'


def test_what_a_guard_puts_in_place_of_a_value_is_shown_in_its_place() -> None:
    one = result({"result": "my secret"}, "my secret")
    made = answered(Envelope.success("hidden"), one, "my secret", {"type": "object"})
    assert "secret" not in json.dumps(made)
    assert made["structuredContent"] == {"result": "hidden"}


def test_what_a_guard_puts_in_place_of_a_value_and_does_not_fit_is_a_failure() -> None:
    one = {"rows": ["my secret"], "count": 1}
    made = answered(Envelope.success("hidden"), result(one, "my secret"), one, ROWS)
    assert made["isError"]
    assert "secret" not in json.dumps(made)


def test_a_refusal_is_one_line_and_the_envelope_flagged_and_without_structured_content() -> None:
    envelope = Envelope.error("timeout", "the supplier\ndid not answer")
    made = refused(envelope, result({"a": 1}, "boom", IMAGE, isError=True))
    line, _, below = texts(made)[0].partition("\n")
    assert line == "[guardrails:timeout] the supplier did not answer"
    assert json.loads(below)["error_type"] == "timeout"
    assert made["isError"]
    assert "structuredContent" not in made
    assert made["_meta"] == {ENVELOPE: json.loads(below)}
    assert made["content"][1:] == [IMAGE]


NUMBER = {"type": "integer"}


@table(
    ("arguments", "schema", "fields"),
    [
        ({"a": 1, "b": None}, {}, []),
        ({"a": 1, "b": None}, {"additionalProperties": False}, []),
        ({"a": 1, "b": None}, {"required": ["a"]}, []),
        ({"a": None, "b": None}, {"required": ["a"]}, ["a", "b"]),
    ],
)
def test_null_in_the_place_of_a_member_that_may_be_left_out_is_left_to_the_server(
    arguments: dict[str, Any], schema: dict[str, Any], fields: list[str]
) -> None:
    spec = ServerArguments({"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, **schema})
    kept, problems = spec.check(arguments)
    assert kept == arguments
    assert [problem.field for problem in problems] == fields
