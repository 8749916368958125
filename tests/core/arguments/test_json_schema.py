"""
JSON Schemas as definitions: checked, never coerced; and what models and strangers write otherwise than draft 2020-12.
"""

import json
import logging
import socket

from pathlib import Path
from typing import Any

import pytest
import yaml

from pydantic import BaseModel

from guardrails import Policy, Tool
from guardrails.core.arguments import arguments_of, foreign_arguments
from guardrails.core.arguments.json_schema import ServerArguments, for_model
from guardrails.core.tool import tool_call
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem
from tests.tables import table


HOTELS = yaml.safe_load(Path(__file__).with_name("hotels.yaml").read_text())
NOT_TEXT = "must be an integer, not a string"


@table("mistake", HOTELS["mistakes"])
def test_a7_a_mistake_is_named_with_its_path_and_without_the_value(mistake: dict[str, Any]) -> None:
    checked, problems = arguments_of(HOTELS["schema"]).check(mistake["arguments"])
    assert checked is mistake["arguments"]
    assert problems == (tuple(mistake["problem"]),)


def test_all_mistakes_are_told_at_once_and_nothing_is_coerced_and_no_default_is_written() -> None:
    check = arguments_of(HOTELS["schema"]).check
    _, problems = check({"city": 1, "limit": 0, "x": 1, "hotels": [{}, {}]})
    assert {p.field for p in problems} == {"city", "limit", "x", "hotels.0.check_out", "hotels.1.check_out"}
    _, many = check({f"k{n}": 1 for n in range(50)})
    assert (len(many), many[-1].message) == (20, "there are more problems, not shown here")
    sent = {"city": "tokyo", "price": 10.0}
    checked, problems = check(sent)
    assert (checked is sent, sent, problems) == (True, {"city": "tokyo", "price": 10.0}, ())


@table(("schema", "message"), [
    ({"type": "array"}, "must be of an object, not of `array`"), ({"type": ["string", "null"]}, "must be of an object"),
    ({"type": "nope"}, "is not valid at `type`: "),
    ({"properties": {"a": {"minimum": "x"}}}, 'is not valid at `properties.a.minimum`: "x" is not of type "number"'),
    ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "is not valid: pointer '/\\$defs/none' does not exist"),
    ({"properties": {"a": {"enum": {1}}}}, "is not valid: unsupported type: 'set'"), ({1: 2}, "is not valid: dict key must be str"),
])  # fmt: skip
def test_a_wrong_schema_is_refused_when_made(schema: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        arguments_of(schema)


@pytest.mark.system
@pytest.mark.parametrize("reference", ["http://{address}/a.json", "file:///etc/hostname", "other.json"])
def test_another_document_is_never_fetched(reference: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        host, port = server.getsockname()
        target = reference.format(address=f"{host}:{port}")
        with pytest.raises(PolicyError, match="is another document, which is never fetched"):
            arguments_of({"$id": f"http://{host}:{port}/root", "properties": {"a": {"$ref": target}}})
        with pytest.raises(BlockingIOError):
            server.accept()


@table(("schema", "expected"), HOTELS["unions"])
def test_a_union_at_the_root_becomes_one_object(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    made = for_model(schema)
    assert (made, list(made)) == (expected, list(expected))


# Habits of models and of older dialects


EDIT = {"type": "object", "properties": {"n": {"type": "integer"}}}
EITHER, MAYBE = (
    {"anyOf": [{"type": one}, {"type": other}]} for one, other in (("array", "string"), ("object", "null"))
)
ONE_OF = [{"type": "object", "properties": {name: {"type": "array"}}, "required": [name]} for name in ("ids", "names")]
FIELDS = {"edits": {"type": "array", "items": EDIT}, "note": {"type": "string"}, "either": EITHER, "maybe": MAYBE}
EDITS = {"type": "object", "properties": {**FIELDS, "target": {"anyOf": ONE_OF}}}


class Edit(BaseModel):
    n: int = 0


class Ids(BaseModel):
    ids: list[str]


class Names(BaseModel):
    names: list[str]


class Edits(BaseModel):
    edits: list[Edit] = []
    note: str = ""
    either: list[int] | str = ""
    maybe: dict[str, int] | None = None
    target: Ids | Names | None = None


CHECKS = [arguments_of(EDITS), arguments_of(Edits)]


@table("arguments", [*CHECKS, ServerArguments(EDITS)])
@table(("sent", "plain"), HOTELS["texts"])
def test_json_text_is_read_once_where_the_schema_says_so(sent: Any, plain: Any, arguments: Any) -> None:
    call = tool_call("t", sent, "-", arguments)
    assert call.problems == ()
    assert call.arguments == arguments.check(plain)[0]


@table("arguments", CHECKS)
@table(("sent", "field"), HOTELS["no_texts"])
def test_text_that_does_not_fit_is_told_and_stays(sent: Any, field: str, arguments: Any) -> None:
    call = tool_call("t", sent, "-", arguments)
    assert call.arguments is sent
    assert [(problem.field, "not an object" in problem.message) for problem in call.problems] == [(field, False)]


def test_a_call_that_was_encoded_twice_is_the_same_call() -> None:
    session = Policy([], tools=[Tool(name="edit", parameters=EDITS)]).session("s")
    once = {"edits": [{"n": 1}]}
    written = (once, {"edits": '[{"n": 1}]'}, json.dumps(json.dumps(once)))
    assert len({session.decide("edit", each).call.signature for each in written}) == 1


@table(("schema", "right", "wrong"), HOTELS["dialects"])
def test_habits_of_older_dialects_are_read(schema: Any, right: list[Any], wrong: list[Any]) -> None:
    arguments = arguments_of({"type": "object", "properties": {"a": schema}})
    assert [each for each in (*right, *wrong) if arguments.check({"a": each})[1]] == wrong


def test_a_required_property_is_required_and_named_older_drafts_keep_their_tuples_and_references() -> None:
    fields = {"a": {"type": "integer", "required": True}, "b": {}, "required": {"required": True, "nullable": True}}
    arguments = arguments_of({"type": "object", "properties": fields, "required": ["b"]})
    assert arguments.schema()["required"] == ["a", "required", "b"]
    assert [problem.field for problem in arguments.check({})[1]] == ["a", "required", "b"]
    tuples = {"a": {"type": "array", "items": [{"type": "integer"}]}, "n": {"$ref": "#/definitions/n"}}
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": tuples}
    arguments = arguments_of({**schema, "definitions": {"n": {"type": "integer"}}})
    assert [bool(arguments.check({"a": each})[1]) for each in ([1], ["x"])] == [False, True]
    assert arguments.check({"n": "x"})[1] == (Problem("n", NOT_TEXT, "type"),)
    assert "$schema" not in arguments.schema()


def test_a_strangers_schema_that_is_none_is_one_warning_and_no_check(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            arguments = foreign_arguments("bad", {"type": "object", "properties": {"a": {"type": "nope"}}})
    assert caplog.text.count("the arguments of `bad` are not checked: ") == 1
    assert arguments is not None
    assert arguments.schema() == {"type": "object", "properties": {"a": {}}}
    assert arguments.check({"a": 1})[1] == ()
    assert foreign_arguments("none", None) is foreign_arguments("odd", {"type": "array"}) is None
    # As YAML reads `on:`.
    partly = foreign_arguments("partly", {"type": "object", "properties": {True: {}, "a": {}}})
    assert partly is not None
    assert partly.schema()["properties"] == {"a": {}}
    for none in (True, [1], "x", {"properties": [1]}):
        assert foreign_arguments("none at all", none) is None


@table(("more", "fits"), [
    ({}, True), ({"additionalProperties": False}, True), ({"required": ["a"]}, True), ({"required": ["b"]}, False),
])  # fmt: skip
def test_null_is_left_to_the_server_unless_more_is_wrong(more: dict[str, Any], fits: bool) -> None:
    spec = ServerArguments({"type": "object", "properties": {key: {"type": "number"} for key in "ab"}, **more})
    given: dict[str, Any] = {"a": None}
    fitted, problems = spec.check(given)
    assert fitted == given
    assert sorted(problem.field for problem in problems) == ([] if fits else ["a", "b"])
