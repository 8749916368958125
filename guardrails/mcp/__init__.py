"""
Tools of MCP servers behind the guards, and guards for those who write an MCP server. Needs the extra `mcp`; the proxy
(`guardrails mcp -- COMMAND`) needs nothing more.
"""

from importlib import import_module
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from .author import AnsweringTools
    from .servers import McpServer, McpTools, read_servers, servers_of

__all__ = ["AnsweringTools", "McpServer", "McpTools", "read_servers", "servers_of"]


def __getattr__(name: str) -> object:
    # The SDK takes most of a second to import, and the command starts without anything of this.
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(import_module(".author" if name == "AnsweringTools" else ".servers", __name__), name)
