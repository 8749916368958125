"""
Whose words the text of a result is: those of the tool, or of what it was asked to show or to run.
"""

from typing import Any

from guardrails.core.outcome.plain_failures import Words
from guardrails.core.tools.tool import Tool

from .tool_names import shows


def own_words(tool: Tool, arguments: Any) -> Words:
    """
    Returns whose words a result of *tool* with *arguments* is in, by names and declarations. They tell which part may
    speak of the tool's own failure.
    """
    from .commands.waiting import runs_code, runs_commands

    if tool.commands or runs_commands(tool.name, arguments):
        return "shown"
    if runs_code(tool.name, arguments):
        return "code"
    shown = shows(tool.name)
    if shown == "written":
        return "shown"
    return "data" if shown == "found" or tool.read_only or tool.stable else "own"
