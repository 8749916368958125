"""
What an MCP server answers, as values and declarations of this library.
"""

import hashlib
import inspect
import re

from collections.abc import Iterable, Mapping
from typing import Any, Final

import xxhash

from guardrails.core.outcome.mcp_results import block_of, read_mcp
from guardrails.core.tools.tool import Tool, from_annotations
from guardrails.core.values.errors import PolicyError, needs
from guardrails.core.values.logs import log
from guardrails.core.values.types import Failed


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import AudioContent, BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent
    from mcp_types import Tool as McpTool


SEPARATOR: Final = "__"
MAX_NAME: Final = 64
"""Characters that an API takes as the name of a function."""
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


def value_of(result: CallToolResult) -> Any:
    """
    What a call gave back, as `read_mcp` reads it; one that failed is a mapping with `isError` and `content`.
    """
    value = read_mcp(result)
    if not isinstance(value, Failed):
        return value
    return {"content": [block_of(block) for block in result.content], "isError": True}


def described(result: CallToolResult) -> CallToolResult:
    """
    *result* with images and other bytes as the number and the hash of them: no model reads base64 as text, and it is not cut.
    """
    return result.model_copy(update={"content": [_described(block) for block in result.content]})


def wrapped_value(structured: Any) -> Any:
    """
    What is no object stands in *structured* content as the SDKs wrap it; the schema that says so is the server's.
    """
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


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


def _described(block: Any) -> Any:
    if isinstance(block, ImageContent | AudioContent):
        return block.model_copy(update={"data": _told(block.data)})
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, BlobResourceContents):
        return block.model_copy(
            update={"resource": block.resource.model_copy(update={"blob": _told(block.resource.blob)})}
        )
    return block


def _told(data: str) -> str:
    size = len(data.rstrip("=")) * 3 // 4
    return f"{size:,} bytes, xxh3 {xxhash.xxh3_64_hexdigest(data.encode())}"


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
