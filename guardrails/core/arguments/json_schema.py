"""
JSON Schemas as strangers write them: what a model provider takes of one, and the check of arguments against one (the tools
of an MCP server). No value is coerced, no default is written.

Three habits of older dialects, which draft 2020-12 refuses or overlooks, are read: OpenAPI's `nullable`, tuples as a list of
`items` (where no older draft is named), `required: true` within a property.
"""

import copy
import json

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, cast

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem

from .problems import Checked, capped, clean, dotted, mended, of_union, quoted, type_name, unknown


if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_NOT_AT_ROOT: Final = {*_UNIONS, "not", "enum", "const", "$ref", "$schema"}
_ORDER: Final = ("type", "description", "properties", "required", "additionalProperties")
_BY_NAME: Final = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
_DATA: Final = {"default", "enum", "const", "example", "examples", "required"}
_ARTICLES: Final = {"array": "an array", "integer": "an integer", "object": "an object", "null": "null"}
_MANY: Final = 1_000
"""Values in arguments of which only the first mistake is named: the validator builds all errors before it gives one, at 1.5 KB each."""
_LARGE: Final = 30_000
"""Values in arguments of which none is named: the alternatives of one union may be as many errors."""
_DEEP: Final = 16
"""Levels of arguments beyond which the same goes: at each level all alternatives of the one above are tried again."""


class SchemaArguments:
    """
    Arguments defined by a JSON Schema of an object (drafts 4 to 2020-12; the newest if `$schema` names no draft).

    Formats are asserted, except `regex`, which means another dialect to most tools. Raises PolicyError if *definition*
    is no valid schema, is not of an object, or refers to another document. Other documents are never fetched.
    """

    def __init__(self, definition: Mapping[str, Any]) -> None:
        import jsonschema_rs

        options: dict[str, Any] = {"validate_formats": True, "formats": {"regex": lambda text: True}, "mask": "\0"}
        try:
            tuples = "2020-12" in definition.get("$schema", "2020-12")
            self._definition: dict[str, Any] = _modern(dict(definition), tuples=tuples)
            self._validator = jsonschema_rs.validator_for(self._definition, retriever=refuse, **options)
        except Exception as error:  # a schema that is no JSON fails in many ways
            raise PolicyError([f"the schema of the arguments is not valid{_where(error)}"]) from None
        kinds = self._definition.get("type", "object")
        if "object" not in kinds:
            raise PolicyError([f"the schema of the arguments must be of an object, not of {quoted([kinds])}"])
        self._is_valid = self._validator.is_valid

    def schema(self) -> dict[str, Any]:
        """
        Returns the definition in the form providers take (see `for_model`), a fresh copy.
        """
        return copy.deepcopy(for_model(self._definition))

    def check(self, arguments: object) -> Checked:
        """
        Returns *arguments*, themselves unless JSON text in them is read, and their problems; never raises.
        """
        try:
            if self._is_valid(arguments):
                return arguments, ()
            problems = capped(self.faults(arguments))
            unnamed = Problem("", "the arguments do not fit the schema", "value")
            return mended(self.check, arguments, problems or (unnamed,))
        except Exception as error:  # data that is not JSON: deeper than 255, a non-string key, a Python object
            # The texts of plain ValueErrors are the validator's own and name types only.
            reason = str(error) if type(error) is ValueError else f"`{type(error).__name__}`"
            return arguments, (Problem("", clean(f"the arguments cannot be checked: {reason}"), "type"),)

    def faults(self, arguments: Any, *, lenient: bool = False) -> Iterator[Problem]:
        """
        Returns what is wrong with *arguments*, as far as they are few enough to be looked at. Who is *lenient* lets text and null stand for
        values of any type, and for any format.
        """
        size = _size(arguments)
        errors: Iterable[ValidationError] = ()
        if size <= _MANY:
            errors = self._validator.iter_errors(arguments)
        elif size <= _LARGE:
            try:
                self._validator.validate(arguments)
            except ValueError as error:
                errors = [cast("ValidationError", error)]
        for each in errors:
            yield from self._faults(each, lenient)

    def _faults(self, error: "ValidationError", lenient: bool) -> Iterator[Problem]:
        """
        Returns *error* in our words, which do not repeat the value: it may be a secret.
        """
        path, name = tuple(error.instance_path), type(error.kind).__name__
        field, kind, instance = dotted(path), error.kind.as_dict(), cast("Any", error.instance)
        if lenient and (name == "Format" or (name == "Type" and isinstance(instance, str | None))):
            return
        if name == "Required":
            yield Problem(dotted((*path, kind["property"])), "is required", "missing")
        elif name in ("AdditionalProperties", "UnevaluatedProperties"):
            yield from (unknown((*path, each), names_at(self._definition, path)) for each in kind["unexpected"])
        elif name == "Type":
            wanted = " or ".join(_ARTICLES.get(each, f"a {each}") for each in kind["types"])
            yield Problem(field, f"must be {wanted}, not {type_name(instance)}", "type")
        elif name in ("Enum", "Constant"):
            options = kind.get("options", [kind.get("expected_value")])
            yield Problem(field, f"must be {'one of ' * (len(options) > 1)}{quoted(map(json.dumps, options))}", "type")
        elif name in ("AnyOf", "OneOfNotValid"):
            ways = [[problem for one in way for problem in self._faults(one, lenient)] for way in kind["context"]]
            yield from of_union(field, ways) if all(ways) else ()
        else:
            known = {"FalseSchema": "is not allowed", "Format": f"must be a valid `{kind.get('format')}`"}
            words = known.get(name, error.message.removeprefix("\0 ").replace("\0", "the value"))
            yield Problem(field, words, "type" if name == "Format" else "value")


class ServerArguments(SchemaArguments):
    """
    Arguments by the schema of a server, as far as the schema alone is enough to know that they are wrong.

    Text in the place of a number, a list or a date is left to the server, and so is null: many read such text.
    """

    def check(self, arguments: object) -> Checked:
        given, problems = super().check(arguments)
        with suppress(ValueError):
            if problems and isinstance(given, dict) and not any(self.faults(given, lenient=True)):
                return given, ()
        return given, problems


def _modern(node: Any, *, tuples: bool) -> Any:
    """
    Returns *node* as draft 2020-12 says it.
    """
    if not isinstance(node, dict):
        return [_modern(each, tuples=tuples) for each in node] if isinstance(node, list) else node
    made: dict[str, Any] = {}
    for word, each in node.items():
        if word in _BY_NAME and isinstance(each, dict):
            made[word] = {name: _modern(part, tuples=tuples) for name, part in each.items()}
            needed = [name for name, part in each.items() if isinstance(part, dict) and part.get("required") is True]
            if word == "properties" and needed:
                listed = node["required"] if isinstance(node.get("required"), list) else ()
                made["required"] = list(dict.fromkeys([*needed, *listed]))
        elif not (word in ("required", "nullable") and isinstance(each, bool)):
            made.setdefault(word, each if word in _DATA else _modern(each, tuples=tuples))
    if tuples and isinstance(made.get("items"), list):
        made["prefixItems"] = made.pop("items")
        made |= {"items": made.pop("additionalItems")} if "additionalItems" in made else {}
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") is True else made


def for_model(schema: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns *schema* as a provider takes it for the `parameters` of a tool: an object without a union at the root.

    OpenAI and Anthropic refuse `anyOf`, `oneOf`, `allOf`, `not`, `enum` and `$ref` at the top level. Their properties
    are hoisted, so the model sees every name; which of them go together is left to the check. Properties that `allOf`
    or `$ref` requires stay required. The result shares its parts with *schema*.
    """
    nodes = list(_alternatives(schema, schema))
    whole = [node for node, always in nodes if always]
    root = {word: each for node in reversed(whole) for word, each in node.items()}
    root |= {"type": "object", "properties": {}}
    for node, _ in nodes:
        root["properties"] |= {n: each for n, each in node.get("properties", {}).items() if n not in root["properties"]}
    root["required"] = list(dict.fromkeys(name for node in whole for name in node.get("required", ())))
    words = dict.fromkeys((*_ORDER, *(word for node in whole for word in node)))
    return {word: root[word] for word in words if word in root and word not in _NOT_AT_ROOT and root[word] != []}


def names_at(schema: Mapping[str, Any], path: Iterable[str | int]) -> list[str]:
    """
    Returns the property names that *schema* knows at *path* of the instance, in its order.
    """
    nodes: list[Any] = [schema]
    for part in path:
        inner = [node for parent in nodes for node, _ in _alternatives(parent, schema)]
        nodes = [e.get("properties", {}).get(part) or e.get("items") or e.get("additionalProperties") for e in inner]
    names = [name for node in nodes for each, _ in _alternatives(node, schema) for name in each.get("properties", ())]
    return list(dict.fromkeys(names))


def _alternatives(node: Any, root: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """
    Returns *node*, what it refers to inside *root* and what it combines, each once, with whether it always applies.
    """
    seen: set[int] = set()
    waiting = [(node, True)]
    while waiting:
        each, always = waiting.pop(0)
        if not isinstance(each, dict) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each, always
        target: Any = root if str(each.get("$ref", "")).startswith("#") else None
        for part in str(each.get("$ref", "")).split("/")[1:]:
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        waiting.append((target, always))
        waiting += [(branch, always and word == "allOf") for word in _UNIONS for branch in each.get(word, ())]


def _size(value: Any) -> int:
    """
    Returns the number of values in *value*; more than `_LARGE` if it is nested too deeply.
    """
    size, level = 0, [value]
    for _ in range(_DEEP):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = list(islice(chain.from_iterable(inner), _LARGE + 1))
        size += len(level)
        if not level:
            return size
    return _LARGE + 1


def refuse(uri: str) -> Any:
    """
    Raise ValueError: what a schema refers to elsewhere is not read.
    """
    raise ValueError(f"`{uri}` is another document, which is never fetched")


def _where(error: Exception) -> str:
    """
    Returns the place in the schema that *error* is about, and what it says.
    """
    place = dotted(getattr(error, "instance_path", ()))
    message = getattr(error, "message", None) or str(error)
    reason = message.replace("\0", json.dumps(getattr(error, "instance", ""))).rpartition("ValueError: ")[2]
    return f"{f' at `{place}`' if place else ''}: {clean(reason[:1].lower() + reason[1:])}"
