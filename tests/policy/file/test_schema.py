"""
The JSON Schema of policy files, and the keys it knows.
"""

from typing import Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from guardrails.policy.file.schema import json_schema, keys_below, known_keys


class Limits(TypedDict, total=False):
    max_calls: int


class Tree(TypedDict, total=False):
    limits: Limits | None
    below: "list[Tree]"
    named: dict[str, Limits]


SCHEMA = json_schema(TypeAdapter(Tree), {"limits": {"max_tool_calls": "max_calls", "gone": "nowhere"}})


def test_a_schema_that_refers_to_itself_is_still_a_map_with_version_and_extends() -> None:
    assert list(SCHEMA["properties"]) == ["version", "extends", "limits", "below", "named"]
    assert SCHEMA["required"] == ["version"]
    assert SCHEMA["type"] == "object"


def test_the_keys_of_a_place_are_those_of_all_its_alternatives() -> None:
    def keys(*path: str | int) -> list[str]:
        return list(known_keys(SCHEMA, path))

    assert keys() == ["version", "extends", "limits", "below", "named"]
    assert keys("limits") == ["max_calls", "max_tool_calls"]
    assert keys("below", 3, "below", 0, "limits") == ["max_calls", "max_tool_calls"]
    assert keys("named", "any") == ["max_calls", "max_tool_calls"]
    assert keys("nowhere", "else") == []
    assert keys("version", 0) == []


def test_keys_one_map_down_are_named_with_the_key_above() -> None:
    found = list(keys_below(known_keys(SCHEMA, ()), SCHEMA))

    assert ("limits", "max_calls") in found


def test_a_schema_without_properties_knows_no_keys() -> None:
    empty: dict[str, Any] = {}

    assert known_keys(empty, ("a", 1)) == {}
