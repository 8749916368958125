"""
Our words for pydantic's errors: the expected value, how to write it, and the value that was found.
"""

import json
import re

from collections.abc import Sequence
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .schema import Schema, keys_below, known_keys
from .yaml_position import Node, quoted


UNKNOWN_KEY: Final = frozenset({"unexpected_keyword_argument", "extra_forbidden"})
"""Error types of pydantic about a key that is not allowed."""
BY_RULE: Final = frozenset({"value_error", "assertion_error"})
"""Error types of pydantic that validators of ours raise, in our own words."""

_KINDS: Final = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a map of keys"),
    "dataclass_type": "a map of keys",
    "none_required": "null",
}
_BOUNDS: Final = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "must match `{pattern}`",
    "string_too_short": "must have a length of at least {min_length}",
    "string_too_long": "must have a length of at most {max_length}",
    "too_short": "must have a length of at least {min_length}",
    "too_long": "must have a length of at most {max_length}",
}
_WHOLE_NUMBER = pattern(r'"?([-+]?[0-9][0-9_,]*)(?:\.0*)?"?')
_NUMBER = pattern(r'"([-+]?[0-9]+(?:\.[0-9]+)?)"')
_TRUE: Final = frozenset({"yes", "on", "y", "true", "1"})
_FALSE: Final = frozenset({"no", "off", "n", "false", "0"})
_CHOICE = pattern(r"'([^']*)'|\"([^\"]*)\"|([^\s,]+)")
_CONSTANTS: Final = {"True": "true", "False": "false", "None": "null"}
_MAX_LISTED: Final = 12
_MAX_SUGGESTED: Final = 3


def expectation(kind: str, context: dict[str, Any]) -> str:
    """
    Returns the expected value, in words, for an error of *kind*. Returns "" if the value was of the right kind.
    """
    if choices := choices_of(context):
        listed = ", ".join(quoted(choice) for choice in choices)

        return f"one of {listed}" if len(choices) > 1 else listed

    return _KINDS.get(kind, "")


def choices_of(context: dict[str, Any]) -> list[str]:
    """
    Returns the values that an error's *context* lists as allowed, which pydantic writes as `'a', 'b' or 'c'`.
    """
    if "choices" in context:
        return list(context["choices"])

    listed = context.get("expected") or context.get("expected_tags") or ""

    return [a or b or _CONSTANTS.get(c, c) for a, b, c in _CHOICE.findall(str(listed)) if c != "or"]


def wording(kind: str, expected: str, context: dict[str, Any], message: str, node: Node) -> str:
    """
    Returns the error of *kind* about the value of *node* in one line; *message* is pydantic's own.
    """
    if expected:
        near = suggestion(str(node.value), choices_of(context)) if isinstance(node.value, str) else ""

        return f"not {expected}: {_fix(_KINDS.get(kind, ''), node)}got {got(node)}{near}"

    if kind in BY_RULE and "error" in context:
        return " ".join(str(context["error"]).split())

    if kind in _BOUNDS:
        length = context.get("actual_length", len(node.value) if isinstance(node.value, str) else None)
        found = length if "_length}" in _BOUNDS[kind] else got(node)

        return f"{_BOUNDS[kind].format(**context)}, got {found}"

    said = " ".join(message.split()).rstrip(".").replace("Input should be", "must be")

    return f"{said[:1].lower()}{said[1:]}, got {got(node)}"


def got(node: Node) -> str:
    """
    Returns the value that was found, as it was written.
    """
    if isinstance(node.value, dict):
        return "a map"

    if isinstance(node.value, list):
        return "a list"

    return quoted(node.written) if node.written else "nothing"


def unknown_key(path: Sequence[str | int], schema: Schema) -> str:
    """
    Returns the unknown key at the end of *path*, with the key that was probably meant or the ones there are.
    """
    key = str(path[-1])
    known = known_keys(schema, path[:-1])
    below = [f"{above}.{key}" for above, name in keys_below(known, schema) if name == key][:_MAX_SUGGESTED]
    near = suggestion(key, list(known))

    if below and not near:
        near = f", did you mean {' or '.join(quoted(name) for name in below)}?"

    if not near and 0 < len(known) <= _MAX_LISTED:
        near = f", known here: {', '.join(quoted(name) for name in known)}"

    return f"unknown key {quoted(key)}{near}"


def suggestion(written: str, names: Sequence[str]) -> str:
    """
    Returns ", did you mean ...?" with the one of *names* that is nearest to *written*, or "" if none is near.
    """
    folded = {name.casefold(): name for name in names}
    from difflib import get_close_matches

    near = get_close_matches(written.casefold().replace("-", "_"), folded, 1)

    return f", did you mean {quoted(folded[near[0]])}?" if near else ""


def _fix(kind: str, node: Node) -> str:
    written = _rewritten(kind, node)

    return f"write {written}, " if written else ""


def _rewritten(kind: str, node: Node) -> str:
    """
    Returns the value of *node* as it would have to be written to be of *kind*, "" if that is not plain.
    """
    if isinstance(node.value, dict | list) or node.value is None:
        return ""

    text = ""

    match kind:
        case "a whole number" if (found := _WHOLE_NUMBER.fullmatch(node.written)) and not isinstance(node.value, bool):
            text = re.sub(r"[_,]", "", found[1])
        case "a number" if found := _NUMBER.fullmatch(node.written):
            text = found[1]
        case "true or false":
            folded = str(node.value).casefold()
            text = "true" if folded in _TRUE else "false" if folded in _FALSE else ""
        case "text":
            text = json.dumps(node.written, ensure_ascii=False)
        case "a list":
            text = f"[{json.dumps(node.value, ensure_ascii=False)}]"

    return text
