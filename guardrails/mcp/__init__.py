"""
Tools of MCP servers behind the guards, and guards for those who write an MCP server. Needs the extra `mcp`.
"""

from typing import TYPE_CHECKING

from .config import McpServer, read_servers, servers_of


if TYPE_CHECKING:
    from .author import AnsweringTools
    from .tools import McpTools

__all__ = ["AnsweringTools", "McpServer", "McpTools", "read_servers", "servers_of"]


def __getattr__(name: str) -> object:
    # The SDK takes most of a second to import.
    if name == "AnsweringTools":
        from .author import AnsweringTools

        return AnsweringTools
    if name == "McpTools":
        from .tools import McpTools

        return McpTools
    raise AttributeError(f"module `{__name__}` has no `{name}`")
