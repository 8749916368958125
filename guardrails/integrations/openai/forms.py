"""
Tools and tool choices in the two forms of the API: nested for chat.completions, flat for Responses.
"""

from collections.abc import Mapping
from typing import Any, Final

from guardrails.core.engine.turns import ToolChoice


_OURS: Final = frozenset({"function", "custom"})
"""Kinds of tools that the client runs; all others are the server's and have one form."""


def named(tool: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """
    The name of a listed *tool* that the client runs, and what else is said of it; None for the server's own.
    """
    kind = tool.get("type", "function")
    said = tool.get(kind)
    said = said if isinstance(said, Mapping) else tool if kind in _OURS else {}
    return said.get("name"), said


def nested(entry: Mapping[str, Any]) -> dict[str, Any]:
    """
    A tool, or a choice of one, as chat.completions has it.
    """
    kind = entry.get("type")
    if kind not in _OURS or isinstance(entry.get(kind), Mapping):
        return dict(entry)
    return {"type": kind, kind: {name: said for name, said in entry.items() if name != "type"}}


def flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    """
    A tool, or a choice of one, as Responses has it.
    """
    kind = entry.get("type", "function")
    said = entry.get(kind)
    if kind not in _OURS or not isinstance(said, Mapping):
        return dict(entry)
    # Responses is strict unless told otherwise, chat.completions is not.
    strict = {"strict": False} if "parameters" in said and "strict" not in said else {}
    return {"type": kind, **said, **strict}


def nested_choice(choice: ToolChoice) -> ToolChoice:
    """
    *choice* as chat.completions has it.
    """
    if not isinstance(choice, Mapping):
        return choice
    if choice.get("type") == "allowed_tools" and "allowed_tools" not in choice:
        allowed = {"mode": choice.get("mode", "auto"), "tools": [nested(tool) for tool in choice.get("tools", ())]}
        return {"type": "allowed_tools", "allowed_tools": allowed}
    return nested(choice)


def flat_choice(choice: ToolChoice) -> ToolChoice:
    """
    *choice* as Responses has it.
    """
    if not isinstance(choice, Mapping):
        return choice
    allowed = choice.get("allowed_tools")
    if choice.get("type") == "allowed_tools" and isinstance(allowed, Mapping):
        tools = [flat(tool) for tool in allowed.get("tools", ())]
        return {"type": "allowed_tools", "mode": allowed.get("mode", "auto"), "tools": tools}
    return flat(choice)
