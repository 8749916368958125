"""
Tool results of MCP that were written out as text: as JSON, or as Python's SDK prints them.
"""

import re

from ast import literal_eval
from typing import Any, Final, NamedTuple

import orjson


MAX_CHARS: Final = 1 << 20
"""Longer text stays as it is."""
MAX_LAYERS: Final = 2
"""A server that calls another wraps its result once more."""

_PRINTED: Final = re.compile(
    r"""(?:meta=(?:None|\{[^{}]{0,200}\})\ )?content=\[TextContent\(type='text',\ text=
    (?P<text>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    (?:,\ annotations=None)?(?:,\ meta=None)?\)\]
    (?:\ structuredContent=(?:None|\{.*\}))?\ isError=(?P<failed>True|False)""",
    re.VERBOSE | re.DOTALL,
)


class Unwrapped(NamedTuple):
    """
    A result without its wrapping.
    """

    text: str
    failed: bool | None
    """`isError` of any layer; None: there was no wrapping."""


def unwrapped(text: str) -> Unwrapped:
    """
    *text* without the wrapping of an MCP tool result that holds text only.
    """
    failed: bool | None = None
    for _ in range(MAX_LAYERS):
        layer = _printed(text) or _json(text)
        if layer is None:
            break
        text, failed = layer.text, bool(layer.failed or failed)
    return Unwrapped(text, failed)


def _printed(text: str) -> Unwrapped | None:
    if "content=[TextContent(" not in text[:300] or len(text) > MAX_CHARS:
        return None

    found = _PRINTED.fullmatch(text)
    if found is None:
        return None

    try:
        return Unwrapped(str(literal_eval(found["text"])), found["failed"] == "True")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _json(text: str) -> Unwrapped | None:
    if text[:1] != "{" or '"content"' not in text or len(text) > MAX_CHARS:
        return None

    try:
        value: Any = orjson.loads(text)
    except ValueError:
        return None

    content = value.get("content") if type(value) is dict else None
    flag = value.get("isError", False) if type(value) is dict else None
    if type(content) is not list or type(flag) is not bool or not ("isError" in value or value.keys() <= _KEYS):
        return None

    blocks = [block for block in content if type(block) is dict and block.get("type") == "text"]
    texts = [block["text"] for block in blocks if type(block.get("text")) is str]
    return Unwrapped("\n".join(texts), flag) if texts and len(texts) == len(content) else None


_KEYS: Final = frozenset({"_meta", "meta", "content", "structuredContent"})
