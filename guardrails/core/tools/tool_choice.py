"""
The tool choice of the next model request.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final


ToolChoice = str | Mapping[str, Any] | None
"""`tool_choice` as a wire has it; None leaves the key out."""
Strategy = Callable[[int, int], ToolChoice]
"""Of the calls and turns so far, the tool choice of the next request."""

_FREE: Final = frozenset({"auto", "none"})


def forces(choice: ToolChoice) -> bool:
    """
    Returns whether *choice* makes the model call a tool.

    A `required` forces one, and so does a named tool: `{"type": "function", ...}`, `custom`, `mcp`, a hosted tool, or
    its bare name in some hosts. So does `allowed_tools` in mode `required`, in the nested form of chat.completions and
    the flat one of responses.
    """
    if choice is None:
        return False
    if isinstance(choice, str):
        return choice not in _FREE
    kind = choice.get("type")
    if kind == "allowed_tools":
        nested = choice.get("allowed_tools")
        mode = nested.get("mode") if isinstance(nested, Mapping) else choice.get("mode")
        return mode == "required"
    return kind not in _FREE


def next_tool_choice(
    requested: ToolChoice,
    *,
    first: bool,
    exhausted: bool,
    strategy: Strategy | None = None,
    call_count: int = 0,
    turn_count: int = 0,
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
        return strategy(call_count, turn_count)
    if not first and forces(requested):
        return None
    return requested
