"""
The tool choice of the next model request.
"""

from collections.abc import Callable, Mapping
from typing import Any


ToolChoice = str | Mapping[str, Any] | None
"""`tool_choice` as a wire has it; None leaves the key out."""
Strategy = Callable[[int, int], ToolChoice]
"""Of the calls and turns so far, the tool choice of the next request."""


def forces(choice: ToolChoice) -> bool:
    """
    Returns whether *choice* makes the model call a tool.

    A `required` forces one, and so does a named tool: `{"type": "function", ...}`, `custom`, `mcp`, a hosted tool, or
    its bare name in some hosts. So does `allowed_tools` in mode `required`, in the nested form of chat.completions and
    the flat one of responses.
    """
    if isinstance(choice, Mapping):
        nested, kind = choice.get("allowed_tools", choice), choice.get("type", "")
        choice = nested.get("mode") if kind == "allowed_tools" and isinstance(nested, Mapping) else kind
    return choice not in (None, "auto", "none")


def next_tool_choice(
    requested: ToolChoice, strategy: Strategy | None, *, first: bool, exhausted: bool, calls: int = 0, turns: int = 0
) -> ToolChoice:
    """
    Returns the choice of the next request: `none` once the session is *exhausted*, else the choice of *strategy*, else
    *requested*.

    A *requested* choice that forces a tool holds for the *first* request of a loop only. Afterwards its key is left out
    (None), so that the model cannot be forced to call for ever. The choice of *strategy* is taken as it is on every
    turn.
    """
    if exhausted:
        return "none"
    if strategy is not None:
        return strategy(calls, turns)
    return requested if first or not forces(requested) else None
