"""
What clients of guarded servers read stays valid for what a tool promises.
"""

import json

from typing import Any

from guardrails import Envelope
from guardrails.mcp.calls import ENVELOPE, NOTES, UNKNOWN, ServerArguments, answered, refused
from tests.tables import table


NUMBER = {"type": "integer"}
FIELDS = {"rows": {"type": "array", "items": {"type": "string"}}, "count": NUMBER}
ROWS = {"type": "object", "properties": FIELDS, "required": ["rows", "count"], "additionalProperties": False}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def result(structured: Any = None, text: str = "some text", *more: Any, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}, *more], "structuredContent": structured, **fields}


@table(("schema", "there"), [(None, True), (ROWS, False), (UNKNOWN, False)])
def test_what_is_to_be_said_stands_in_the_structured_content_where_the_schema_has_room(
    schema: dict[str, Any] | None, there: bool
) -> None:
    one = {"rows": [], "count": 0}
    envelope, given = Envelope.success(one), result(one)
    assert answered(envelope, given, one, schema) is given
    envelope.limit("that was the last one", "write your answer", "budget.max_calls")
    made = answered(envelope, given, one, schema)
    assert (NOTES in made["structuredContent"]) is there
    assert made["_meta"] == {ENVELOPE: {"limit_reached": True, "limit_message": "that was the last one"}}
    note = '[guardrails] {"limit_reached":true,"limit_message":"that was the last one"}'
    assert [block["text"] for block in made["content"]] == ["some text", note]


@table(
    ("given", "schema", "shown"),
    [({"result": "my secret"}, {"type": "object"}, {"result": "hidden"}), ({"rows": ["my secret"]}, ROWS, None)],
)
def test_what_a_guard_puts_in_place_of_a_value_is_shown_in_its_place_or_it_is_a_failure(
    given: dict[str, Any], schema: dict[str, Any], shown: Any
) -> None:
    made = answered(Envelope.success("hidden"), result(given, "my secret"), given, schema)
    assert "secret" not in json.dumps(made)
    assert made.get("structuredContent") == shown
    assert made.get("isError", False) is (shown is None)


def test_a_refusal_is_one_line_and_the_envelope_flagged_and_without_structured_content() -> None:
    envelope = Envelope.error("timeout", "the supplier\ndid not answer")
    made = refused(envelope, result({"a": 1}, "boom", IMAGE, isError=True))
    line, _, below = made["content"][0]["text"].partition("\n")
    assert line == "[guardrails:timeout] the supplier did not answer"
    assert json.loads(below)["error_type"] == "timeout"
    assert made == {"content": [made["content"][0], IMAGE], "isError": True, "_meta": {ENVELOPE: json.loads(below)}}


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
