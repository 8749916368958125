"""
The declarations of the tools that the clients bring along. A policy's `tools:` rules stand above it, key by key.

They are tools that only look and that the policy `default` does not know by name, and tools that take paths and
commands. Some arguments only tell a person the purpose of a call, in other words each time; they are here too. A tool
that is not here changes something.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails.core.tools.tool import Tool


_SHELL_S: Final = 7_200.0
_AGENT_S: Final = 86_400.0
"""How long a command and a sub-agent may run before nobody expects that their end is told."""


def _named(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    return {tool.name: tool for tool in tools}


def _look(name: str, *paths: str, **more: Any) -> Tool:
    return Tool(name=name, read_only=True, paths=paths, **more)


def _work(name: str, *paths: str, **more: Any) -> Tool:
    return Tool(name=name, read_only=False, paths=paths, **more)


def _shell(name: str, command: str = "command", *labels: str) -> Tool:
    return Tool(name=name, commands=(command,), labels=labels, timeout=_SHELL_S)


def _agent(name: str, *labels: str) -> Tool:
    return Tool(name=name, labels=labels, timeout=_AGENT_S)


CLAUDE: Final = _named(
    (
        _shell("Bash", "command", "description"),
        _shell("PowerShell", "command", "description"),
        _look("Read", "file_path"),
        _look("NotebookRead", "notebook_path"),
        _look("LS", "path"),
        _look("Glob", "path"),
        _look("Grep", "path"),
        _look("LSP"),
        _look("ListMcpResourcesTool"),
        _look("ReadMcpResourceTool"),
        _look("ToolSearch"),
        _look("TaskGet"),
        _look("TaskList"),
        _work("Write", "file_path"),
        _work("Edit", "file_path"),
        _work("MultiEdit", "file_path"),
        _work("NotebookEdit", "notebook_path"),
        _agent("Agent", "description"),
        _agent("Task", "description"),
    )
)
CODEX: Final = _named(
    (
        _shell("Bash"),
        # As its rollouts call them.
        _shell("exec_command", "cmd", "justification"),
        _shell("shell", "command", "justification"),
        _shell("shell_command", "command", "justification"),
        _shell("local_shell"),
        _work("apply_patch"),
        _look("view_image", "path"),
        *(
            Tool(name=name, repeats="allow", timeout=_AGENT_S)
            for name in ("wait", "wait_agent", "multi_agent_v1wait", "multi_agent_v1wait_agent")
        ),
    )
)
_SEQUENCE: Final = "wait_for_previous"
"""What Gemini CLI adds to the arguments of every tool: when it is to run."""
_GEMINI: Final = _named(
    (
        Tool(
            name="run_shell_command",
            commands=("command",),
            paths=("dir_path", "directory"),
            labels=("description",),
            timeout=_SHELL_S,
        ),
        _look("read_file", "file_path", "absolute_path", "path"),
        _look("read_many_files", "include", "paths"),
        _look("list_directory", "dir_path", "path"),
        _look("glob", "dir_path", "path"),
        _look("grep_search", "dir_path", "path"),
        _look("search_file_content", "dir_path", "path"),
        _look("google_web_search"),
        _look("web_fetch"),
        _look("get_internal_docs"),
        _look("read_mcp_resource"),
        _look("list_mcp_resources"),
        _work("write_file", "file_path"),
        _work("replace", "file_path", labels=("instruction",)),
        _agent("invoke_agent"),
    )
)


def of_gemini(name: str) -> Tool:
    """
    The tool *name* of Gemini CLI, or of a server that it uses.
    """
    known = _GEMINI.get(name) or Tool(name=name)
    return replace(known, labels=(*known.labels, _SEQUENCE))
