"""
Tool results of MCP that were written out as text: as JSON, as the JSON-RPC answer around them, or as Python prints them.
"""

import re

from ast import literal_eval
from typing import Any, Final, NamedTuple

import orjson

from .fields import has_text, is_one_of, text_of
from .json_text import completed


MAX_CHARS: Final = 1 << 20
"""Longer text stays as it is."""
MAX_LITERAL: Final = 1 << 16
"""The same for what Python's parser has to read."""
MAX_LAYERS: Final = 3
"""A server that calls another wraps its result once more, and a host writes the block once more."""

_STRING: Final = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
_BLOCK: Final = rf"""TextContent\(type='text',\ text={_STRING}
    (?:,\ annotations=(?:None|Annotations\([^()]{{0,200}}\)))?
    (?:,\ meta=(?:None|\{{[^{{}}]{{0,200}}\}}))?\)"""
_PRINTED: Final = re.compile(
    rf"""(?:CallToolResult\()?
    (?:(?:meta=(?:None|\{{[^{{}}]{{0,200}}\}}),?\ )?content=)?
    (?P<blocks>\[{_BLOCK}(?:,\ {_BLOCK})*+\])
    (?:,?\ structuredContent=(?:None|\{{.*\}}))?(?:,?\ isError=(?P<failed>True|False))?\)?""",
    re.VERBOSE | re.DOTALL,
)
_TEXT: Final = re.compile(rf"TextContent\(type='text', text=({_STRING})", re.DOTALL)
_KEYS: Final = frozenset({"_meta", "meta", "content", "structuredContent", "structured_content"})
_FLAGS: Final = ("isError", "is_error")
"""As the protocol writes it, and as the objects of Python's packages do."""
_ANSWER: Final = (frozenset({"jsonrpc", "id", "result"}), frozenset({"jsonrpc", "id", "error"}))
"""Fields of a JSON-RPC answer: https://www.jsonrpc.org/specification#response_object"""
_BLOCK_KEYS: Final = frozenset(
    {"type", "text", "annotations", "_meta", "meta", "id", "index", "citations", "cache_control", "logprobs"}
)
_KINDS: Final = frozenset({"text", "input_text", "output_text", "image", "audio", "resource", "resource_link"})
_NAMES: Final = (
    *('"text"', "'text'", '"content"', '"jsonrpc"', '"isError"', '"structuredContent"', '"_meta"'),
    *('"image"', '"audio"', '"resource"', '"resource_link"'),
)
_HEAD: Final = 300
"""Characters at the beginning of which the names of a block's fields, or its kind, are looked for."""


class Unwrapped(NamedTuple):
    """
    A result without its wrapping.
    """

    text: str
    failed: bool | None
    """`isError` of any layer, or a JSON-RPC error; False if no layer has it. None: there was no wrapping."""


def unwrapped(text: str) -> Unwrapped:
    """
    Returns *text* without the wrapping of an MCP tool result, a list of its blocks or one block, if one of them is
    text. The wrapping may be in a JSON-RPC answer, or in a JSON string.
    """
    failed: bool | None = None
    for _ in range(MAX_LAYERS):
        bare = string_in(text.strip())
        layer = _printed(bare) or _written(bare)
        if layer is None:
            break
        text, failed = layer.text, bool(layer.failed or failed)
    return Unwrapped(text, failed)


def string_in(text: str) -> str:
    """
    Returns the string that *text* is as JSON, however often it was encoded. Returns other text as it is.
    """
    for _ in range(MAX_LAYERS):
        if len(text) < 2 or text[0] != '"' or text[-1] != '"' or len(text) > MAX_CHARS:
            break
        value = _value(text)
        if type(value) is not str:
            break
        text = value
    return text


def _printed(text: str) -> Unwrapped | None:
    if "[TextContent(" not in text[:_HEAD] or len(text) > MAX_CHARS:
        return None

    found = _PRINTED.fullmatch(text)
    if found is None:
        return None

    try:
        texts = [str(literal_eval(one)) for one in _TEXT.findall(found["blocks"])]
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return Unwrapped("\n".join(texts), found["failed"] == "True")


def _written(text: str) -> Unwrapped | None:
    head = text[:_HEAD]
    if text[:1] not in ("{", "[") or len(text) > MAX_CHARS or not any(name in head for name in _NAMES):
        return None

    value = _value(text)
    if value is None:
        # The end was cut off, as logs do with long results.
        value = _cut(text)
    if type(value) is dict and value.get("jsonrpc") == "2.0" and value.keys() in _ANSWER:
        if "error" in value:
            return _error(value["error"])
        value = value["result"]
    if type(value) is dict and type(value.get("content")) is list:
        flags = [value[name] for name in _FLAGS if name in value]
        if any(type(flag) is not bool for flag in flags) or not (flags or value.keys() <= _KEYS):
            return None

        told = _blocks(value["content"])
        return None if told is None else Unwrapped(told, any(flags))

    if text[:1] == "{" and value is None:
        # One block a line, with or without blank ones between.
        *lines, last = (line for line in text.split("\n") if line)
        value = [*map(_value, lines), _value(last) or _cut(last)]
    told = _blocks([value] if type(value) is dict else value, strictly=True)
    return None if told is None else Unwrapped(told, failed=False)


def _cut(text: str) -> Any:
    return completed(text.encode("utf-8", "surrogatepass"), strings=True)


def _error(said: Any) -> Unwrapped | None:
    """
    The error of a JSON-RPC answer as clients print it. Returns None if it is none.
    """
    if type(said) is not dict or type(said.get("code")) is not int or type(said.get("message")) is not str:
        return None
    return Unwrapped(f"MCP error {said['code']}: {said['message']}", failed=True)


def _value(text: str) -> Any:
    """
    Returns the value of *text* as JSON, or as Python's own literals. Returns None if it is neither.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    if text[:2] == "{'" or text[:3] == "[{'":
        try:
            return literal_eval(text) if len(text) <= MAX_LITERAL else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return None


def _blocks(blocks: Any, *, strictly: bool = False) -> str | None:
    """
    The text of a list of blocks. *strictly*: nothing around them says that they are blocks, so that each must look like one.
    Returns None if they are none, or none of them is text.
    """
    if type(blocks) is not list or not any(map(has_text, blocks)):
        return None

    for block in blocks:
        if type(block) is not dict or (strictly and not _is_block(block)):
            return None
    return text_of(blocks)


def _is_block(block: dict[str, Any]) -> bool:
    return is_one_of(block.get("type"), _KINDS) and (not has_text(block) or block.keys() <= _BLOCK_KEYS)
