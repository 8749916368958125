"""
Fields of foreign JSON as the types that they should have. A field of another type is None or empty.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from guardrails.core.text.signature import parse_arguments
from guardrails.core.values.types import ERROR_TYPES, ErrorType
from guardrails.hooks.results import at_ms
from guardrails.sinks.rotate import parsed


MAX_NUMBER: Final = 2**53
"""Counts, times and sizes above this are no such thing."""

ERRORS: Final[Mapping[str, ErrorType]] = {kind: kind for kind in ERROR_TYPES}
"""The kinds of errors by their names."""

ITEM_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")
"""Items of OpenAI's Responses API that are calls."""
ITEM_OUTPUTS: Final = tuple(f"{kind}_output" for kind in ITEM_CALLS)

_LATEST_MS: Final = 253_402_300_800_000
"""The year 10000."""
_SECONDS_UNTIL: Final = 100_000_000_000
"""A number below is seconds since 1970 (until the year 5138), one above milliseconds (from 1973 on)."""


def json_in(value: str) -> Any:
    """
    Returns the value of a JSON text, None if it is none.
    """
    return parsed(value.encode("utf-8", "surrogatepass"))


def at(value: Any, *names: str) -> Any:
    """
    Returns the member of a JSON object by the *names* on the way to it. Returns None if it is not there.
    """
    for name in names:
        value = mapping(value).get(name)
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    """
    Returns *value* if it is a JSON object, else an empty one.
    """
    return value if type(value) is dict else {}


def listed(value: Any) -> list[Any]:
    """
    Returns *value* if it is a JSON array, else an empty one.
    """
    return value if type(value) is list else []


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """
    Returns the JSON objects among the elements of an array.
    """
    return (each for each in listed(value) if type(each) is dict)


def text(value: Any) -> str | None:
    """
    Returns *value* if it is text with a character.
    """
    return value if type(value) is str and value else None


def amount(value: Any) -> float | None:
    """
    Returns a cost, or another finite number from 0 to 2**53.
    """
    return float(value) if type(value) in (int, float) and 0 <= value <= MAX_NUMBER else None


def count(value: Any) -> int | None:
    """
    Returns a number of tokens or milliseconds: a number from 0 to 2**53, rounded.
    """
    return None if amount(value) is None else round(value)


def time_ms(value: Any) -> int | None:
    """
    Returns a time in milliseconds since 1970, from ISO 8601 text (UTC if it names no zone) or from a number. A number
    is seconds, or milliseconds from 100,000,000,000 on.
    """
    time: Any = at_ms(value) if type(value) is str else value
    known = type(time) in (int, float) and 0 <= time < _LATEST_MS
    return count(time * 1000 if time is value and time < _SECONDS_UNTIL else time) if known else None


def arguments_of(value: Any) -> Any:
    """
    Returns the arguments of a call. They are the JSON of a model's text, or the text itself if it is not JSON. A value
    that is already read stays, and so does None: they were not kept.
    """
    return parse_arguments(value)[0] if type(value) is str else value


def text_of(content: Any) -> str:
    """
    Returns the text of *content*: itself, or its blocks joined by newlines. Any other value, and a block without text, is its JSON.
    """
    if type(content) is str:
        return content
    blocks = content if type(content) is list else [] if content is None else [content]
    return "\n".join(map(_block_text, blocks))


def _block_text(block: Any) -> str:
    content = at(block, "text") if at(block, "type") in (None, "text", "input_text", "output_text") else None
    content = block if type(block) is str else content
    if type(content) is str:
        return content
    try:
        return orjson.dumps(block).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(block).encode("utf-8", "backslashreplace").decode()


def item_call(item: Mapping[str, Any]) -> tuple[str, Any]:
    """
    Returns tool and arguments of an item of OpenAI's Responses API that is a call.
    """
    arguments = next((item[key] for key in ("arguments", "input", "action", "operation") if key in item), None)
    return text(item.get("name")) or str(item.get("type")).removesuffix("_call"), arguments
