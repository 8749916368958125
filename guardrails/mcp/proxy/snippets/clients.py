"""
The clients of MCP servers: where each keeps them, and in which form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """
    A client, and the file in which it keeps its MCP servers.
    """

    title: str
    where: str
    """The file, or the page of its settings."""
    key: str = "mcpServers"
    more: tuple[tuple[str, str], ...] = ()
    """What else stands beside the command."""
    toml: bool = False
    then: str = "Start it anew."
    """What makes it read the file."""


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-desktop": Client(
        title="Claude Desktop",
        where="claude_desktop_config.json (Settings, Developer, Edit Config): in ~/Library/Application Support/Claude on "
        "macOS, %APPDATA%\\Claude on Windows",
    ),
    "claude-code": Client(
        title="Claude Code",
        where=".mcp.json in the project's folder",
        more=(("type", "stdio"),),
        then="It asks once whether the project's servers may be used; `claude mcp list` shows it.",
    ),
    "cursor": Client(title="Cursor", where="~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder"),
    "vscode": Client(
        title="VS Code",
        where=".vscode/mcp.json, or your own mcp.json (command `MCP: Open User Configuration`)",
        key="servers",
        more=(("type", "stdio"),),
        then="Press Start above the entry.",
    ),
    "windsurf": Client(
        title="Windsurf",
        where="~/.codeium/windsurf/mcp_config.json",
        then="Refresh the list of servers in Cascade.",
    ),
    "zed": Client(
        title="Zed",
        where="settings.json (command `zed: open settings`)",
        key="context_servers",
        then="It reads the file at once.",
    ),
    "codex": Client(
        title="Codex",
        where="~/.codex/config.toml",
        key="mcp_servers",
        toml=True,
        then="`codex mcp list` shows it.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        where="~/.gemini/settings.json, or .gemini/settings.json in the project's folder",
        then="`gemini mcp list` shows it.",
    ),
    "jetbrains": Client(
        title="JetBrains AI Assistant",
        where="Settings, Tools, AI Assistant, Model Context Protocol (MCP), Add, as JSON",
        then="Apply.",
    ),
    "cline": Client(
        title="Cline",
        where="cline_mcp_settings.json (MCP Servers, Configure, Configure MCP Servers)",
        then="It reads the file at once.",
    ),
}
