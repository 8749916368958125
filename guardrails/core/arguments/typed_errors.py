"""
Put the errors of pydantic in words for a model: paths without union tags, no links, no values.
"""

import re

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.types import Problem

from .problems import NOT_A_FLAG, Kind, Path, capped, dotted, missing, of_union, type_name, unknown
from .schema import names_at


if TYPE_CHECKING:
    from pydantic import ValidationError


_READ_ERRORS: Final = 60
"""Errors of one call that are looked at."""
_MAX_ERRORS: Final = 10_000
"""Errors of one call beyond which none is looked at: pydantic gives all or none, at 1 us each."""

_LIMITS: Final = {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}
_TYPES: Final = {
    "date_from_datetime_inexact",
    "enum",
    "finite_number",
    "int_from_float",
    "invalid_key",
    "is_instance_of",
    "literal_error",
    "none_required",
    "recursion_loop",
    "string_unicode",
    "union_tag_invalid",
    "union_tag_not_found",
}
_WORDING: Final = {
    "date_from_datetime_inexact": "must be a date (YYYY-MM-DD)",
    "date_from_datetime_parsing": "must be a date (YYYY-MM-DD)",
    "dataclass_type": "must be an object",
    "dict_type": "must be an object",
    "frozen_set_type": "must be an array",
    "iterable_type": "must be an array",
    "list_type": "must be an array",
    "mapping_type": "must be an object",
    "model_attributes_type": "must be an object",
    "model_type": "must be an object",
    "recursion_loop": "is nested too deep or refers to itself",
    "set_type": "must be an array",
    "tuple_type": "must be an array",
}
_TYPE_SUFFIXES: Final = ("_type", "_parsing", "_parsing_size")
_SHOULD = re.compile(r"^[A-Z][\w ]*? should ")
_FIRST_WORD = re.compile(r"`?([^\W\d][\w.]*)`?(?=\s|$)")

Entry = tuple[Path, tuple[int, ...], Problem]
"""Full path, the positions in it that are tags of a union, and the problem at the path without them."""


def problems_of(error: "ValidationError", given: dict[str, Any], schema: Mapping[str, Any]) -> tuple[Problem, ...]:
    """
    Returns the problems that *error* reports of the arguments *given*, whose JSON Schema is *schema*.
    """
    if error.error_count() > _MAX_ERRORS:
        return (Problem("", f"{error.error_count()} values do not fit the schema", "type"),)

    entries = [_entry(each, given, schema) for each in error.errors(include_url=False)[:_READ_ERRORS]]

    return capped(problem for _, _, problem in _without_unions(entries))


def _entry(error: Any, given: dict[str, Any], schema: Mapping[str, Any]) -> Entry:
    full: Path = error["loc"]
    tags = _tags(full, given, error["type"]) if len(full) > 1 else ()
    path = tuple(part for at, part in enumerate(full) if at not in tags) if tags else full

    return full, tags, _problem(error, path, schema)


def _tags(path: Path, given: Any, kind: str) -> tuple[int, ...]:
    """
    Returns the positions of *path* that name no part of *given*: pydantic puts the alternative of a union it tried
    there.
    """
    tags = []

    for at, part in enumerate(path):
        if part in given if isinstance(given, dict) else _is_position(part, given):
            given = given[part]
        elif at and not (kind == "missing" and at == len(path) - 1):
            tags.append(at)

    return tuple(tags)


def _without_unions(entries: list[Entry]) -> list[Entry]:
    """
    Returns *entries* with each union, the innermost first, reduced to the alternative worth telling.
    """
    while any(tags for _, tags, _ in entries):
        path, tags, _ = max(entries, key=lambda entry: entry[1][-1:])
        at = tags[-1]
        branches: dict[str | int, list[Problem]] = {}
        kept: list[Entry] = []
        first = len(entries)

        for entry in entries:
            if entry[0][:at] == path[:at] and entry[1][-1:] == (at,):
                first = min(first, len(kept))
                branches.setdefault(entry[0][at], []).append(entry[2])
            else:
                kept.append(entry)

        field = dotted(tuple(part for position, part in enumerate(path[:at]) if position not in tags))
        told = of_union(field, list(branches.values()))
        kept[first:first] = [(path[:at], tags[:-1], problem) for problem in told]
        entries = kept

    return entries


def _is_position(part: str | int, given: Any) -> bool:
    return isinstance(given, (list, tuple)) and isinstance(part, int) and part < len(given)


def _problem(error: Any, path: Path, schema: Mapping[str, Any]) -> Problem:
    kind: str = error["type"]
    value = error["input"]

    if kind == "missing":
        return missing(path)

    if kind == "extra_forbidden":
        return unknown(path, names_at(schema, path[:-1]))

    if kind in {"value_error", "assertion_error"}:
        return _refused(error, path, schema)

    if kind in _LIMITS and type(value) is bool:
        return Problem(dotted(path), NOT_A_FLAG, "type")

    message = _WORDING.get(kind) or _SHOULD.sub("must ", error["msg"]).partition(", unable to parse")[0]

    if kind == "union_tag_invalid":
        message = (
            f"must have a `{str(error['ctx']['discriminator']).strip(chr(39))}` of {error['ctx']['expected_tags']}"
        )

    of_kind: Kind = "type" if kind in _TYPES or kind.endswith(_TYPE_SUFFIXES) else "value"

    if kind.endswith("_type"):
        message = f"{message}, not {type_name(value)}"

    return Problem(dotted(path), message[:1].lower() + message[1:], of_kind)


def _refused(error: Any, path: Path, schema: Mapping[str, Any]) -> Problem:
    """
    Returns the words of the author's own validator; one of a whole model speaks of the field that its message starts
    with.
    """
    cause = error["ctx"]["error"]
    message = str(cause) or f"is refused (`{type(cause).__name__}`)"

    if (match := _FIRST_WORD.match(message)) and match[1] in names_at(schema, path):
        path = (*path, match[1])

    return Problem(dotted(path), message, "value")
