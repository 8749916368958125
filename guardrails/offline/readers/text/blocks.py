"""
The content blocks of a message or of a tool result, as text.
"""

from typing import Any, Final

import orjson

from xxhash import xxh3_64_hexdigest

from .fields import is_one_of


_MAX_BLOCK: Final = 1_000
"""Bytes of a content block without text (an image) that stand in the result; more is a hash."""
_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})


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
