"""
Looking into a result: its text, its structures, what stands at a dotted path, and what that is held against.
"""

import json
import re

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

import orjson

from guardrails.core.text.linear_pattern import finder


if TYPE_CHECKING:
    from collections.abc import Callable

SCAN_CHARS: Final = 8192
"""A regular expression sees this much of a text."""
PARSE_CHARS: Final = 65_536
"""A text result up to this long is read as JSON where fields of it are asked for."""
NUMBER_CHARS: Final = 100
"""A longer text is no number."""
MISSING: Final = object()
_BLOCKS: Final = 100
_SCHEMAS: Final = 256
"""That are kept compiled."""

Scalar = str | int | float | bool


def is_mcp_error(value: object) -> bool:
    """
    Returns whether *value* is an MCP tool result, as a dict or as an SDK's object, that says `isError: true`.
    """
    if issubclass(type(value), dict):
        return value.get("isError") is True and isinstance(value.get("content"), list)  # type: ignore[attr-defined]
    try:
        says = getattr(value, "isError", None) is True or getattr(value, "is_error", None) is True
        return says and isinstance(getattr(value, "content", None), list)
    except Exception:  # noqa: BLE001
        return False


def mcp_text(value: object) -> str | None:
    """
    Returns the text blocks of an MCP tool result, or of the list of its blocks, joined. Returns None if *value* is
    neither.
    """
    content = value.get("content") if isinstance(value, dict) else getattr(value, "content", value)
    if not isinstance(content, list) or isinstance(value, str):
        return None

    texts = [text for block in islice(content, _BLOCKS) if isinstance(text := _block_text(block), str)]
    return "\n".join(texts) if texts else None


def _block_text(block: object) -> object:
    if isinstance(block, dict):
        return block.get("text") if block.get("type") == "text" else None
    return getattr(block, "text", None) if getattr(block, "type", None) == "text" else None


def views_of(value: object, text: str | None) -> tuple[object, ...]:
    """
    Returns the structures in which fields are looked for, the innermost first: MCP's structured content, JSON that
    *text* holds, *value* itself.
    """
    views: list[object] = []
    for name in ("structuredContent", "structured_content"):
        structured = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        if isinstance(structured, dict):
            views.append(structured)
    if text is not None and len(text) <= PARSE_CHARS and text.lstrip()[:1] in {"{", "["}:
        with suppress(ValueError):
            views.append(orjson.loads(text))
    if not isinstance(value, str):
        views.append(value)
    return tuple(views)


def first_value_at(views: tuple[object, ...], path: str) -> object:
    """
    Returns the value at *path* in the first of *views* that has it; MISSING if no view has it.
    """
    return next((value for view in views if (value := value_at(view, path)) is not MISSING), MISSING)


def value_at(value: object, path: str) -> object:
    """
    Returns the value at a dotted *path*, list items by number; `""` is *value* itself.
    """
    for name in path.split(".") if path else ():
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return MISSING
    return value


def says_something(value: object) -> bool:
    """
    Returns whether a field of an error is more than null, false, empty or 0.
    """
    return bool(value) if isinstance(value, str | int | float | list | tuple | dict) else value is not None


def as_number(value: object) -> float | None:
    """
    Returns a number, also one that is written as text; None for anything else, booleans too.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e18 else None
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value) else None


def is_same(value: object, wanted: Scalar) -> bool:
    """
    Returns whether *value* is *wanted*: 1 is 1.0 but not true.
    """
    return isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)


def is_found(pattern: str, text: str) -> bool:
    """
    Returns whether *pattern* occurs in the head of *text*.
    """
    return finder(pattern)(text[:SCAN_CHARS])


def check_schema(schema: Mapping[str, Any]) -> None:
    """
    Raises ValueError if *schema* is no JSON Schema, or refers to another document.
    """
    try:
        _checks(_text(schema))
    except Exception as problem:  # noqa: BLE001  # a schema that is no JSON fails in many ways
        raise ValueError(f"not a JSON Schema: {str(problem)[:200]}") from None


def fits_schema(value: object, schema: Mapping[str, Any]) -> bool:
    """
    Returns whether *value* fits *schema*; a value that cannot be checked fits.
    """
    if isinstance(value, str) and len(value) > PARSE_CHARS:
        # It may be JSON, which was not read.
        return True
    try:
        if not isinstance(value, str):
            # A validator has no bound for the depth of a value, and the stack has.
            orjson.dumps(value)
        return _checks(_text(schema))(value) or not _is_strict(value)
    except Exception:  # noqa: BLE001  # what is no JSON: an object, an endless depth, a key that is no text
        return True


def _is_strict(value: object) -> bool:
    """
    Returns whether *value* is JSON for every parser, or a text that is JSON for none. NaN, a byte order mark and half
    of a surrogate pair are read by some.
    """
    if not isinstance(value, str):
        json.dumps(value, allow_nan=False).encode()
        return True
    try:
        json.loads(value.lstrip("\ufeff"))
    except ValueError:
        return True
    try:
        orjson.loads(value)
    except ValueError:
        return False
    return True


def is_other(value: object, given: object) -> bool:
    """
    Returns whether *value* and the argument *given* are texts or numbers, and not the same. Texts of the same number are the same.
    """
    said, asked = _scalar(value), _scalar(given)
    return bool(said and asked) and said != asked and not _is_same_number(said, asked)


def _is_same_number(one: str, other: str) -> bool:
    if len(one) > NUMBER_CHARS or len(other) > NUMBER_CHARS:
        return False
    try:
        # Exact: ids of 19 digits are no floats.
        return Decimal(one) == Decimal(other)
    except ArithmeticError:
        return False


def _scalar(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return normalize("NFC", str(value)).strip().casefold()


def _text(schema: Mapping[str, Any]) -> bytes:
    return orjson.dumps(dict(schema), option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=_SCHEMAS)
def _checks(schema: bytes) -> "Callable[[object], bool]":
    import jsonschema_rs

    from guardrails.core.arguments.json_schema import refuse

    check: Callable[[object], bool] = jsonschema_rs.validator_for(orjson.loads(schema), retriever=refuse).is_valid
    return check
