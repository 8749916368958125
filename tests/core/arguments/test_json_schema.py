"""
JSON Schemas as definitions: checked, never coerced.
"""

import socket

from typing import Any

import pytest

from guardrails.core.arguments import arguments_of
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem
from tests.tables import table


HOTELS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "multipleOf": 5, "default": 10},
        "price": {"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 100},
        "sort": {"enum": ["price", 1, None]},
        "version": {"const": 2},
        "day": {"type": "string", "format": "date"},
        "search": {"type": "string", "format": "regex"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2, "uniqueItems": True},
        "has": {"type": "array", "contains": {"type": "integer"}},
        "pair": {"type": "array", "prefixItems": [{}], "items": False},
        "few": {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"maxLength": 3}},
        "empty": {"type": "object", "additionalProperties": False},
        "hotels": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"check_in": {"type": "string"}, "check_out": {"type": "string"}},
                "required": ["check_out"],
                "additionalProperties": False,
            },
        },
        "guest": {
            "anyOf": [
                {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                {"type": "string"},
                {"type": "null"},
            ]
        },
        "pet": {
            "oneOf": [
                {"properties": {"kind": {"const": "cat"}}, "required": ["kind", "lives"]},
                {"properties": {"kind": {"const": "dog"}}, "required": ["kind", "bark", "size"]},
            ]
        },
        "both": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        "no_text": {"not": {"type": "string"}},
        "never": False,
    },
    "dependentRequired": {"day": ["city"]},
    "additionalProperties": False,
}


@table(
    ("arguments", "expected"),
    [
        ({"city": "x"}, ("city", "is shorter than 2 characters", "value")),
        ({"city": "xxxxxx"}, ("city", "is longer than 5 characters", "value")),
        ({"city": "ABC"}, ("city", 'does not match "^[a-z]+$"', "value")),
        ({"city": True}, ("city", "must be a string, not a boolean", "type")),
        ({"limit": "10"}, ("limit", "must be an integer, not a string", "type")),
        ({"limit": True}, ("limit", "must be an integer, not a boolean", "type")),
        ({"limit": 0}, ("limit", "is less than the minimum of 1", "value")),
        ({"limit": 55}, ("limit", "is greater than the maximum of 50", "value")),
        ({"limit": 7}, ("limit", "is not a multiple of 5", "value")),
        ({"price": 0}, ("price", "is less than or equal to the minimum of 0", "value")),
        ({"price": 100}, ("price", "is greater than or equal to the maximum of 100", "value")),
        ({"price": "x"}, ("price", "must be null or a number, not a string", "type")),
        ({"sort": "stars"}, ("sort", 'must be one of `"price"`, `1`, `null`', "type")),
        ({"version": 3}, ("version", "must be `2`", "type")),
        ({"city": "tokyo", "day": "tomorrow"}, ("day", "must be a valid `date`", "type")),
        ({"day": "2025-01-01"}, ("city", "is required", "missing")),
        ({"tags": []}, ("tags", "has less than 1 item", "value")),
        ({"tags": ["a", "b", "c"]}, ("tags", "has more than 2 items", "value")),
        ({"tags": ["a", "a"]}, ("tags", "has non-unique elements", "value")),
        ({"tags": ["a", 1]}, ("tags.1", "must be a string, not an integer", "type")),
        ({"has": ["a"]}, ("has", "None of the value are valid under the given schema", "value")),
        ({"pair": [1, 2]}, ("pair.1", "is not allowed", "value")),
        ({"few": {}}, ("few", "has less than 1 property", "value")),
        ({"few": {"a": 1, "b": 2}}, ("few", "has more than 1 property", "value")),
        ({"few": {"long": 1}}, ("few", '"long" is longer than 3 characters', "value")),
        ({"empty": {"a": 1}}, ("", "the arguments cannot be checked: `TypeError`", "type")),
        ({"hotels": [{"check_out": "x"}, {}]}, ("hotels.1.check_out", "is required", "missing")),
        (
            {"hotels": [{"check_out": "x", "checkIn": "y"}]},
            ("hotels.0.checkIn", "is unknown; did you mean `check_in`?", "unknown"),
        ),
        ({"guest": {}}, ("guest.name", "is required", "missing")),
        ({"guest": 3}, ("guest", "must be an object or a string or null, not an integer", "type")),
        ({"pet": {"kind": "cat"}}, ("pet.lives", "is required", "missing")),
        ({"both": 3}, ("both", "is valid under more than one of the schemas listed in the 'oneOf' keyword", "value")),
        ({"no_text": "x"}, ("no_text", '{"type":"string"} is not allowed for the value', "value")),
        ({"never": 1}, ("never", "is not allowed", "value")),
        ({"citty": "x"}, ("citty", "is unknown; did you mean `city`?", "unknown")),
    ],
)
def test_a7_a_mistake_is_named_with_its_path_and_without_the_value(arguments: Any, expected: tuple[str, ...]) -> None:
    checked, problems = arguments_of(HOTELS).check(arguments)

    assert checked is arguments
    assert problems == (expected,)


def test_all_mistakes_are_told_at_once_and_nothing_is_coerced_and_no_default_is_written() -> None:
    _, problems = arguments_of(HOTELS).check({"city": 1, "limit": 0, "x": 1, "hotels": [{}, {}]})
    assert {p.field for p in problems} == {"city", "limit", "x", "hotels.0.check_out", "hotels.1.check_out"}
    sent = {"city": "tokyo", "price": 10.0}
    checked, problems = arguments_of(HOTELS).check(sent)
    assert (checked is sent, sent, problems) == (True, {"city": "tokyo", "price": 10.0}, ())


@table("draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"])
def test_old_drafts_and_local_references_work(draft: str) -> None:
    fields = {"properties": {"n": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"type": "integer"}}}
    arguments = arguments_of({"$schema": draft, **fields})

    assert arguments.check({"n": 1})[1] == ()
    assert arguments.check({"n": "x"})[1] == (Problem("n", "must be an integer, not a string", "type"),)
    assert "$schema" not in arguments.schema()


@table(
    ("schema", "message"),
    [
        ({"type": "array"}, "must be of an object, not of `array`"),
        ({"type": ["string", "null"]}, "must be of an object"),
        ({"type": "nope"}, "is not valid at `type`: "),
        (
            {"properties": {"a": {"minimum": "x"}}},
            'is not valid at `properties.a.minimum`: "x" is not of type "number"',
        ),
        ({"properties": {"a": {"pattern": "("}}}, "is not valid at `properties.a.pattern`: "),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "is not valid: pointer '/\\$defs/none' does not exist"),
        ({"properties": {"a": {"enum": {1}}}}, "is not valid: unsupported type: 'set'"),
        ({1: 2}, "is not valid: dict key must be str"),
        ({"type": "function", "function": {"name": "f"}}, "is not valid at `type`"),
    ],
)
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
