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
    Whether *choice* makes the model call a tool.

    `required` does, so do a named tool (`{"type": "function", ...}`, `custom`, `mcp`, a hosted tool; a bare name in hosts
    that write it so) and `allowed_tools` in mode `required`, in the nested form of chat.completions and the flat one of
    responses.
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
    What the next request says: `none` once the session is *exhausted*, else what *strategy* says, else *requested*.

    A *requested* choice that forces a tool holds for the *first* request of a loop only; afterwards its key is left out
    (None), so that the model cannot be forced to call for ever. *strategy* is taken at its word on every turn.
    """
    if exhausted:
        return "none"
    if strategy is not None:
        return strategy(call_count, turn_count)
    if not first and forces(requested):
        return None
    return requested
