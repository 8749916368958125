"""
The answer of an MCP server, as a value or a failure: as the object of any SDK, or as a mapping of the wire.
"""

from collections.abc import Mapping
from typing import Any, Final

from guardrails.core.values.types import Failed

from .result_views import mcp_text


_FLAGS: Final = ("is_error", "isError")
_STRUCTURED: Final = ("structured_content", "structuredContent")
"""The names of today first: SDKs warn of those that they had."""


def read_mcp(result: Any) -> Any:
    """
    Returns the value that a tool call gave back: its structured content, else its text, else all blocks as they are.

    Several texts are a list of them, and no block is None. A result that says `isError` is a `Failed`, with its text as
    the message. Its value is the structured content, or the blocks that are no text. Anything that has no content stays
    as it is.
    """
    blocks = _blocks(result)
    if blocks is None:
        return result
    structured = _first(result, _STRUCTURED)
    texts = [text for block in blocks if isinstance(text := _text(block), str)]
    if _first(result, _FLAGS) is True:
        rest = [block_of(block) for block in blocks if _text(block) is None] or None
        return Failed(mcp_text(blocks) or "", value=rest if structured is None else structured)
    if structured is not None:
        # How SDKs wrap what is no object; the schema that says so is the server's.
        wrapped = isinstance(structured, Mapping) and structured.keys() == {"result"}
        return structured["result"] if wrapped else structured
    if not blocks or len(texts) < len(blocks):
        return [block_of(block) for block in blocks] or None
    return texts[0] if len(texts) == 1 else texts


def _blocks(result: Any) -> list[Any] | None:
    """
    Returns the blocks of a result. Returns None if it has no content.
    """
    content = _of(result, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is None and any(_first(result, names) is not None for names in (_FLAGS, _STRUCTURED)):
        return []
    return list(content) if isinstance(content, list | tuple) else None


def _first(source: Any, names: tuple[str, ...]) -> Any:
    """
    Returns the value that *source* has by the first of *names* that it knows. Returns None if it knows none.
    """
    for name in names:
        if source.get(name) is not None if isinstance(source, Mapping) else hasattr(source, name):
            return _of(source, name)
    return None


def _of(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def _text(block: Any) -> Any:
    return _of(block, "text") if _of(block, "type") == "text" else None


def block_of(block: Any) -> Any:
    """
    Returns *block* as it is on the wire.
    """
    dump = getattr(block, "model_dump", None)
    return block if dump is None else dump(by_alias=True, exclude_none=True, mode="json")
