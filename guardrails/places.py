"""
Where paths really are: the fact that guards over paths decide by.
"""

import os

from collections.abc import Callable, Iterable

from .logs import log
from .tool import Tool
from .types import ToolCall


def places_of(
    asked: Iterable[Callable[[ToolCall, Tool], tuple[str, ...]]], call: ToolCall, tool: Tool
) -> dict[str, str]:
    """
    The real place of each path that *asked* name for *call*, absolute, symbolic links followed; what does not exist yet is
    where its nearest folder that does would have it. What cannot be looked up is left out.
    """
    found: dict[str, str] = {}
    for paths in asked:
        try:
            found |= {path: os.path.realpath(path) for path in paths(call, tool)}
        except (OSError, ValueError) as error:
            log.error("a path could not be looked up: %r", error)
    return found
