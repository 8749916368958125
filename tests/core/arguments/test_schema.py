"""
Reading JSON Schemas.
"""

from typing import Any

from guardrails.core.arguments.schema import for_model, names_at
from tests.tables import table


A = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
B = {"type": "object", "properties": {"b": {}}, "required": ["b"]}
DEFS = {"A": A, "x/y": B}


@table(
    ("schema", "expected"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
        ({"oneOf": [A, B], "title": "T"}, {"type": "object", "properties": {"a": {}, "b": {}}, "title": "T"}),
        ({"allOf": [A, {"anyOf": [B]}]}, {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}),
        (
            {"$ref": "#/$defs/A", "$defs": DEFS, "$schema": "http://json-schema.org/draft-07/schema#"},
            {"type": "object", "properties": {"a": {}}, "required": ["a"], "$defs": DEFS},
        ),
        (
            {"anyOf": [{"$ref": "#/$defs/x~1y"}, {"$ref": "#"}], "$defs": DEFS},
            {"type": "object", "properties": {"b": {}}, "$defs": DEFS},
        ),
        (
            {"properties": {"z": {}, "a": {}}, "additionalProperties": False, "description": "D", "type": "object"},
            {"type": "object", "description": "D", "properties": {"z": {}, "a": {}}, "additionalProperties": False},
        ),
    ],
)
def test_a_union_at_the_root_becomes_one_object(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    made = for_model(schema)

    assert made == expected
    assert list(made) == list(expected)


@table(
    ("path", "names"),
    [
        ((), ["list", "pair", "map", "ref", "maybe"]),
        (("list", 3), ["a"]),
        (("pair", 0), ["a"]),
        (("pair", 1), ["b"]),
        (("map", "any"), ["b"]),
        (("ref",), ["a"]),
        (("maybe",), ["b"]),
        (("nowhere", 1, "x"), []),
    ],
)
def test_the_names_at_a_path_are_found_through_references_and_unions(
    path: tuple[str | int, ...], names: list[str]
) -> None:
    schema = {
        "properties": {
            "list": {"items": A},
            "pair": {"prefixItems": [A], "items": B},
            "map": {"additionalProperties": B},
            "ref": {"$ref": "#/$defs/A"},
            "maybe": {"anyOf": [B, {"type": "null"}]},
        },
        "$defs": DEFS,
    }

    assert names_at(schema, path) == names
