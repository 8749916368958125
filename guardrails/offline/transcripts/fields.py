"""
Fields of foreign JSON as the types that they should have. A field of another type is None or empty.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import orjson

from xxhash import xxh3_64_hexdigest

from guardrails.core.text.signature import parse_arguments
from guardrails.core.values.types import ERROR_TYPES, ErrorType


NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
MAX_NUMBER: Final = 2**53
"""Counts, times and sizes above this are no such thing."""

ERRORS: Final[Mapping[str, ErrorType]] = {kind: kind for kind in ERROR_TYPES}
"""The kinds of errors by their names."""

_MAX_BLOCK: Final = 1_000
"""Bytes of a content block without text (an image) that stand in the result; more is a hash."""
_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})
_USAGE: Final = (
    ("input_tokens", "prompt_tokens", "inputTokens", "prompt", "input"),
    ("output_tokens", "completion_tokens", "outputTokens", "completion", "output"),
)
_CACHED: Final = ("cache_creation_input_tokens", "cache_read_input_tokens")
_THOUGHTS: Final = ("thoughts", "reasoning")
"""What stands beside the counts and is no part of them."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = 253_402_300_800_000
"""The year 10000."""
_SECONDS_UNTIL: Final = 100_000_000_000
"""A number below is seconds since 1970 (until the year 5138), one above milliseconds (from 1973 on)."""


def mapping(value: Any) -> Mapping[str, Any]:
    """
    Returns *value* if it is a JSON object, else an empty one.
    """
    return value if type(value) is dict else NOTHING


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


def is_one_of(value: Any, names: frozenset[str]) -> bool:
    """
    Returns whether *value* is one of *names*; foreign values may be of a type that no set can be asked for.
    """
    return type(value) is str and value in names


def count(value: Any) -> int | None:
    """
    Returns a number of tokens or milliseconds: an integer from 0 to 2**53, or a float of that size, rounded.
    """
    kind = type(value)
    if kind is int:
        return int(value) if 0 <= value <= MAX_NUMBER else None

    return round(value) if kind is float and 0 <= value <= MAX_NUMBER else None


def amount(value: Any) -> float | None:
    """
    Returns a cost: a finite number from 0 on.
    """
    return float(value) if type(value) in (int, float) and 0 <= value <= MAX_NUMBER else None


def time_ms(value: Any) -> int | None:
    """
    Returns a time in milliseconds since 1970, from ISO 8601 text (UTC if it names no zone) or from a number. A number
    is seconds, or milliseconds from 100,000,000,000 on.
    """
    if type(value) is str:
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return None

        since = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH
        seconds = since.days * 86_400 + since.seconds
        return None if seconds < 0 else seconds * 1000 + (since.microseconds + 500) // 1000

    if type(value) in (int, float) and 0 <= value < _LATEST_MS:
        return int(round(value * 1000) if value < _SECONDS_UNTIL else round(value))

    return None


def total(*counts: Any) -> int | None:
    """
    Returns the sum of those that are counts. Returns None if there are none.
    """
    known = [number for each in counts if (number := count(each)) is not None]
    return sum(known) if known else None


def usage_of(usage: Any) -> tuple[int | None, int | None]:
    """
    Returns the tokens that a response has read and written, as any program names them: what was read from or written to a cache
    counts as read, thoughts as written.
    """
    said = mapping(usage)
    read, written = (next((count(said[name]) for name in names if name in said), None) for names in _USAGE)
    return total(read, *map(said.get, _CACHED)), total(written, *map(said.get, _THOUGHTS))


def arguments_of(value: Any) -> Any:
    """
    Returns the arguments of a call. They are the JSON of a model's text, or the text itself if it is not JSON. No value
    gives `{}`, and a value that is already read stays.
    """
    return parse_arguments(value)[0] if type(value) is str else {} if value is None else value


def text_of(content: Any) -> str:
    """
    Returns the text of *content*: itself, or its blocks joined by newlines. A block without text stands as its JSON, or
    as a hash of it if that is long, so that different ones stay different. Any other value is its JSON.
    """
    if type(content) is str:
        return content

    if content is None:
        return ""

    if type(content) is list:
        return "\n".join(map(_block_text, content))

    return _block_text(content)


def has_text(block: Any) -> bool:
    """
    Returns whether *block* is a block of text.
    """
    return type(block) is dict and type(block.get("text")) is str and is_one_of(block.get("type", "text"), _TEXT_BLOCKS)


def _block_text(block: Any) -> str:
    if type(block) is str:
        return block

    if has_text(block):
        return str(block["text"])

    try:
        written = orjson.dumps(block)
    except (TypeError, ValueError, RecursionError):
        written = repr(block).encode("utf-8", "backslashreplace")
    if len(written) <= _MAX_BLOCK:
        return written.decode()

    kind = block.get("type") if type(block) is dict else None
    return f"[{kind if type(kind) is str else 'value'}, {len(written)} bytes, {xxh3_64_hexdigest(written)}]"
