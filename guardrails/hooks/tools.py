"""
The declarations of the tools that the clients bring along. A policy's `tools:` rules stand above it, key by key.

They are tools that only look and that the policy `default` does not know by name, and tools that take paths and
commands. Some arguments only tell a person the purpose of a call, in other words each time; they are here too. A tool
that is not here changes something.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails.core.tools.tool import Tool


def _tools(names: str, **declarations: Any) -> dict[str, Tool]:
    return {name: Tool(name=name, **declarations) for name in names.split()}


_COMMANDS: Final[dict[str, Any]] = {"commands": ("command",), "timeout": 7_200.0}
_AGENT_S: Final = 86_400.0
"""How long a sub-agent, and above it a command, may run before nobody expects that their end is told."""
CLAUDE: Final[Mapping[str, Tool]] = {
    **_tools("Bash PowerShell", labels=("description",), **_COMMANDS),
    **_tools("Read", read_only=True, paths=("file_path",)),
    **_tools("NotebookRead", read_only=True, paths=("notebook_path",)),
    **_tools("LS Glob Grep", read_only=True, paths=("path",)),
    **_tools("LSP ListMcpResourcesTool ReadMcpResourceTool ToolSearch TaskGet TaskList", read_only=True),
    **_tools("Write Edit MultiEdit", read_only=False, paths=("file_path",)),
    **_tools("NotebookEdit", read_only=False, paths=("notebook_path",)),
    **_tools("Agent Task", labels=("description",), timeout=_AGENT_S),
}
CODEX: Final[Mapping[str, Tool]] = {
    **_tools("Bash local_shell", **_COMMANDS),
    # As its rollouts call them.
    **_tools("exec_command", labels=("justification",), **{**_COMMANDS, "commands": ("cmd",)}),
    **_tools("shell shell_command", labels=("justification",), **_COMMANDS),
    **_tools("apply_patch", read_only=False),
    **_tools("view_image", read_only=True, paths=("path",)),
    **_tools("wait wait_agent multi_agent_v1wait multi_agent_v1wait_agent", repeats="allow", timeout=_AGENT_S),
}
_GEMINI: Final[Mapping[str, Tool]] = {
    **_tools("run_shell_command", paths=("dir_path", "directory"), labels=("description",), **_COMMANDS),
    **_tools("read_file", read_only=True, paths=("file_path", "absolute_path", "path")),
    **_tools("read_many_files", read_only=True, paths=("include", "paths")),
    **_tools("list_directory glob grep_search search_file_content", read_only=True, paths=("dir_path", "path")),
    **_tools("google_web_search web_fetch get_internal_docs read_mcp_resource list_mcp_resources", read_only=True),
    **_tools("write_file", read_only=False, paths=("file_path",)),
    **_tools("replace", read_only=False, paths=("file_path",), labels=("instruction",)),
    **_tools("invoke_agent", timeout=_AGENT_S),
}
_SEQUENCE: Final = "wait_for_previous"
"""What Gemini CLI adds to the arguments of every tool: when it is to run."""


def of_gemini(name: str) -> Tool:
    """
    The tool *name* of Gemini CLI, or of a server that it uses.
    """
    known = _GEMINI.get(name) or Tool(name=name)
    return replace(known, labels=(*known.labels, _SEQUENCE))
