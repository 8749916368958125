"""
What an MCP server answers, as values and declarations of this library.
"""

import hashlib
import inspect
import re

from collections.abc import Iterable, Mapping
from typing import Any, Final

import xxhash

from guardrails.core.tools.tool import Tool, from_annotations
from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import CallToolResult, TextContent
    from mcp_types import Tool as McpTool


SEPARATOR: Final = "__"
MAX_NAME: Final = 64
"""Characters that an API takes as the name of a function."""
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


def value_of(result: CallToolResult) -> Any:
    """
    What a call gave back: its structured content, else its text, else all blocks as they are.

    A result that says `isError` stays a mapping with `isError` and `content`, which the outcome reads as a failure.
    """
    if result.is_error:
        return {"content": [_block(block) for block in result.content], "isError": True}
    if result.structured_content is not None:
        return wrapped_value(result.structured_content)
    blocks = result.content
    if len(blocks) == 1 and isinstance(blocks[0], TextContent):
        return blocks[0].text
    if blocks and all(isinstance(block, TextContent) for block in blocks):
        return [block.text for block in blocks if isinstance(block, TextContent)]
    return [_block(block) for block in blocks] or None


def wrapped_value(structured: Any) -> Any:
    """
    What is no object stands in *structured* content as the SDKs wrap it; the schema that says so is the server's.
    """
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _block(block: Any) -> Any:
    shown = block.model_dump(by_alias=True, exclude_none=True, mode="json")
    for part, name in ((shown, "data"), (shown.get("resource"), "blob")):
        # No model reads base64 as text: a block is told from another by its hash.
        if isinstance(part, dict) and isinstance(data := part.get(name), str):
            size = len(data.rstrip("=")) * 3 // 4
            part[name] = f"{size:,} bytes, xxh3 {xxhash.xxh3_64_hexdigest(data.encode())}"
    return shown


def hints_of(one: McpTool) -> dict[str, Any]:
    """
    What a server's annotations declare of a tool, as fields of `Tool`.
    """
    hints: Mapping[str, Any] = {} if one.annotations is None else one.annotations.model_dump(by_alias=True)
    declared: dict[str, Any] = dict(from_annotations(hints))
    if hints.get("destructiveHint") is True:
        # What may destroy is neither read-only nor safe to repeat, whatever else is claimed.
        declared["read_only"] = False
    return declared


def tools_of(server: str, offered: Iterable[McpTool], timeout: float) -> dict[str, tuple[str, Tool]]:
    """
    The tools that *server* offers by the name a model calls them by, each with the server's own name.

    That is `{server}__{tool}`, with `_` for what no API takes; one that is too long, or would be another's, ends in a
    hash of the server's own name. A tool whose schema is none is left out, which the log says.
    """
    found: dict[str, tuple[str, Tool]] = {}
    for one in offered:
        name = _ODD.sub("_", f"{server}{SEPARATOR}{one.name}")
        if len(name) > MAX_NAME or (name in found and found[name][0] != one.name):
            digest = hashlib.sha256(one.name.encode(errors="surrogatepass")).hexdigest()[:8]
            name = f"{name[: MAX_NAME - 9]}_{digest}"
        try:
            found[name] = one.name, _tool(name, one, timeout)
        except PolicyError as error:
            log.warning("tool `%s` of MCP server `%s` is left out: %s", one.name, server, error)
    return found


def _tool(name: str, one: McpTool, timeout: float) -> Tool:
    tool = Tool(
        name=name,
        description=inspect.cleandoc(one.description or one.title or "").strip(),
        parameters=one.input_schema or None,
        timeout=timeout,
        **hints_of(one),
    )
    tool.arguments()
    return tool
