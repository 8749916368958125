"""
Read JSON Schemas: what stands at a path of the instance, and the form in which a model provider takes one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final


_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_NOT_AT_ROOT: Final = (*_UNIONS, "not", "enum", "const", "$ref", "$schema")
_ORDER: Final = ("type", "description", "properties", "required", "additionalProperties")

_SCALARS: Final = frozenset({"boolean", "integer", "null", "number", "string"})


def for_model(schema: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns *schema* as a provider takes it for the `parameters` of a tool: an object without a union at the root.

    OpenAI and Anthropic refuse `anyOf`, `oneOf`, `allOf`, `not`, `enum` and `$ref` at the top level. Their properties
    are hoisted, so the model sees every name; which of them go together is left to the check. Properties that `allOf`
    or `$ref` requires stay required. The result shares its parts with *schema*.
    """
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    root: dict[str, Any] = {}

    for node, always in _alternatives(schema, schema):
        for name, each in node.get("properties", {}).items():
            properties.setdefault(name, each)

        if always:
            required.update(dict.fromkeys(node.get("required", ())))
            root = {**node, **root}

    root |= {"type": "object", "properties": properties, "required": list(required)}
    ordered = {word: root[word] for word in (*_ORDER, *root) if word in root and word not in _NOT_AT_ROOT}

    if not required:
        del ordered["required"]

    return ordered


def names_at(schema: Mapping[str, Any], path: Iterable[str | int]) -> list[str]:
    """
    Returns the property names that *schema* knows at *path* of the instance, in its order.
    """
    nodes = [node for node, _ in _alternatives(schema, schema)]

    for part in path:
        nodes = [node for parent in nodes for node, _ in _alternatives(_child(parent, part), schema)]

    return list(dict.fromkeys(name for node in nodes for name in node.get("properties", ())))


def _alternatives(node: Any, root: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """
    Returns *node*, what it refers to and what it combines, each once, with whether it always applies.
    """
    seen: set[int] = set()
    waiting = [(node, True)]

    while waiting:
        each, always = waiting.pop(0)

        if not isinstance(each, dict) or id(each) in seen:
            continue

        seen.add(id(each))
        yield each, always
        waiting.append((target(each, root), always))
        waiting.extend((branch, always and word == "allOf") for word in _UNIONS for branch in each.get(word, ()))


def target(node: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """
    Returns the schema that the `$ref` of *node* points to inside *root*, or None.
    """
    reference = node.get("$ref")

    if not isinstance(reference, str) or not reference.startswith("#"):
        return None

    target: Any = root

    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, dict) else None

    return target


def _child(node: Mapping[str, Any], part: str | int) -> Any:
    if isinstance(part, int):
        first = node.get("prefixItems", [])

        return first[part] if part < len(first) else node.get("items")

    return node.get("properties", {}).get(part, node.get("additionalProperties"))


def is_scalar(schema: Any) -> bool:
    """
    Returns whether a value that fits *schema* contains no other values.
    """
    if not isinstance(schema, dict):
        return schema is False

    return schema.get("type") in _SCALARS or ("anyOf" in schema and all(map(is_scalar, schema["anyOf"])))


def never_number(schema: Any) -> bool:
    """
    Returns whether a value that fits *schema* is text or a boolean, as given and as coerced.
    """
    if not isinstance(schema, dict):
        return schema is False

    return schema.get("type") == "boolean" or (schema.get("type") == "string" and "format" not in schema)
