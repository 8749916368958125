"""
The JSON Schema of policy files: for editors, and for the keys that a mistaken one may have meant.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final


if TYPE_CHECKING:
    from pydantic import TypeAdapter


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
VERSION: Final = 1
"""Of the file format; a file names the one it is written in."""

_FILE_KEYS: Final[dict[str, Any]] = {
    "version": {"const": VERSION, "description": f"Version of the file format, {VERSION}; every file names it."},
    "extends": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": (
            "Policies this one builds on: names of policies that come with the library, or paths relative to this "
            "file. Maps merge, rules of `tools:` add up, other values replace, the later one wins."
        ),
    },
}

Schema = dict[str, Any]
OtherNames = Mapping[str, Mapping[str, str]]
"""For the map under a key, other accepted spellings of its keys: `{"budget": {"max_tool_calls": "max_calls"}}`."""


def json_schema(adapter: "TypeAdapter[Any]", other_names: OtherNames | None = None) -> Schema:
    """
    Returns the JSON Schema (draft 2020-12) of a policy file whose settings *adapter* validates.

    Only `version` is required at the top level: any other key may come from a policy it extends. Descriptions are the
    docstrings of the settings' classes and, with pydantic's `use_attribute_docstrings`, of their fields.
    """
    body = adapter.json_schema(mode="validation")

    if reference := body.pop("$ref", None):
        body = {**body["$defs"][reference.rpartition("/")[2]], "$defs": body["$defs"]}

    properties = {**_FILE_KEYS, **body.get("properties", {})}
    schema = {"$schema": DIALECT, **body, "properties": properties, "required": ["version"]}

    for place in [schema, *schema.get("$defs", {}).values()]:
        for key, spellings in (other_names or {}).items():
            _add_names(place.get("properties", {}).get(key, {}), spellings, schema)

    return schema


def _add_names(place: Schema, spellings: Mapping[str, str], schema: Schema) -> None:
    for alternative in list(_alternatives(place, schema)):
        known = alternative.get("properties", {})
        for other, name in spellings.items():
            setting, _, key = name.partition(".")
            if not key and setting in known:
                known[other] = known[setting]
            elif key in (inner := _properties(known.get(setting, {}), schema)):
                said = {"description": f"Written `{setting}: {{{key}: ...}}` now.", "deprecated": True}
                known[other] = {**{k: v for k, v in inner[key].items() if k != "title"}, **said}


def known_keys(schema: Schema, path: Sequence[str | int]) -> dict[str, Schema]:
    """
    Returns the keys that *schema* allows in the map at *path*, of all the alternatives there, with their schemas.
    """
    places = [schema]

    for part in path:
        places = [inner for place in places for inner in _inner(place, part, schema)]

    found = {key: inner for place in places for key, inner in _properties(place, schema).items()}
    return {key: inner for key, inner in found.items() if not inner.get("deprecated")}


def keys_below(keys: dict[str, Schema], schema: Schema) -> Iterator[tuple[str, str]]:
    """
    Returns the keys allowed one map further down, each with the key above it.
    """
    for key, inner in keys.items():
        for below in _properties(inner, schema):
            yield key, below


def _properties(place: Schema, schema: Schema) -> dict[str, Schema]:
    found: dict[str, Schema] = {}

    for alternative in _alternatives(place, schema):
        found |= alternative.get("properties", {})

    return found


def _inner(place: Schema, part: str | int, schema: Schema) -> Iterator[Schema]:
    for alternative in _alternatives(place, schema):
        if isinstance(part, int):
            found = alternative.get("items")
        else:
            found = alternative.get("properties", {}).get(part) or alternative.get("additionalProperties")

        if isinstance(found, dict):
            yield found


def _alternatives(place: Schema, schema: Schema, seen: tuple[str, ...] = ()) -> Iterator[Schema]:
    reference = place.get("$ref")

    if reference and reference not in seen:
        yield from _alternatives(schema["$defs"][reference.rpartition("/")[2]], schema, (*seen, reference))

    for union in ("anyOf", "oneOf", "allOf"):
        for alternative in place.get(union, ()):
            yield from _alternatives(alternative, schema, seen)

    yield place
