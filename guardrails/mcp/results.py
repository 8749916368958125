"""
Reads an MCP server's answers as values and declarations of this library.
"""

import hashlib
import inspect
import re

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from guardrails.core.arguments import foreign_arguments
from guardrails.core.result.content import block_of, read_mcp
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed

from . import outcomes
from .pins.words import marked


with needs("mcp", "`guardrails.mcp`"):
    from mcp_types import CallToolResult
    from mcp_types import Tool as McpTool


SEPARATOR: Final = "__"
MAX_NAME: Final = 64
"""Characters that an API takes as the name of a function."""
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


def value_of(result: CallToolResult) -> Any:
    """
    Returns the value of a call, as `read_mcp` reads it; a failed call is a mapping with `isError` and `content`.
    """
    value = read_mcp(result)
    if not isinstance(value, Failed):
        return value
    return {"content": [block_of(block) for block in result.content], "isError": True}


def hints_of(one: McpTool) -> dict[str, Any]:
    """
    Returns the fields of `Tool` that a server's annotations declare.
    """
    return outcomes.hints_of(None if one.annotations is None else one.annotations.model_dump(by_alias=True))


def on_wire(result: CallToolResult | McpTool) -> dict[str, Any]:
    """
    A *result*, or a tool, as a server sends it.
    """
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def from_wire(result: Mapping[str, Any]) -> CallToolResult:
    """
    The SDK's form of a *result* on the wire.
    """
    # Made by the wire's names: `_meta` is an alias.
    return CallToolResult.model_validate(result, by_name=False)


def tools_of(
    server: str, offered: Iterable[McpTool], timeout: float, held: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[str, Tool]]:
    """
    Returns the tools that *server* offers by the name a model calls them by, each with the server's own name. The
    reasons why some are held are *held*, by the server's name.

    A model's name is `{server}__{tool}`, with `_` for characters that no API takes. A name that is too long or taken
    ends in a hash of the server's own name. The arguments of a tool whose schema is none are not checked, which the log says.
    """
    found: dict[str, tuple[str, Tool]] = {}
    for one in offered:
        name = _ODD.sub("_", f"{server}{SEPARATOR}{one.name}")
        if len(name) > MAX_NAME or (name in found and found[name][0] != one.name):
            digest = hashlib.sha256(one.name.encode(errors="surrogatepass")).hexdigest()[:8]
            name = f"{name[: MAX_NAME - 9]}_{digest}"
        found[name] = one.name, _tool(name, one, server, timeout, held.get(one.name, ""))
    return found


def _tool(name: str, one: McpTool, server: str, timeout: float, held: str) -> Tool:
    return Tool(
        name=name,
        description=marked(server, inspect.cleandoc(one.description or one.title or "").strip()),
        parameters=foreign_arguments(name, one.input_schema) if one.input_schema else None,
        timeout=timeout,
        held=held,
        **hints_of(one),
    )
