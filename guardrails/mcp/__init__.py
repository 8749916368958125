"""
Tools of MCP servers behind the guards, and guards for those who write an MCP server. Needs the extra `mcp`; the proxy
(`guardrails mcp -- COMMAND`) needs nothing more.
"""

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from .author import AnsweringTools
    from .config import McpServer, read_servers, servers_of
    from .tools import McpTools

__all__ = ["AnsweringTools", "McpServer", "McpTools", "read_servers", "servers_of"]


def __getattr__(name: str) -> object:
    # The SDK takes most of a second to import, and the proxy starts without anything of this.
    if name == "AnsweringTools":
        from .author import AnsweringTools

        return AnsweringTools
    if name == "McpTools":
        from .tools import McpTools

        return McpTools
    if name in ("McpServer", "read_servers", "servers_of"):
        from . import config

        found: object = getattr(config, name)
        return found
    raise AttributeError(f"module `{__name__}` has no `{name}`")
