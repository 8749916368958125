"""
Reading JSON Schemas.
"""

from typing import Any

from guardrails.core.arguments.json_schema import for_model
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
