"""
The real places of paths: the fact that guards over paths decide by.
"""

import os

from collections.abc import Callable, Iterable, Sequence

from guardrails.core.text.path_text import within
from guardrails.core.tools.tool import Tool
from guardrails.core.values.logs import log
from guardrails.core.values.types import ToolCall


Asks = Callable[[ToolCall, Tool], Iterable[tuple[str, Sequence[str]]]]


def places_of(asked: Iterable[tuple[str, Asks]], call: ToolCall, tool: Tool) -> dict[str, tuple[bool, ...]]:
    """
    Returns whether each path that a guard asks about is in one of the folders it names, by the guard's name. A path
    that cannot be looked up is not in any. A guard that fails to say what it asks gets no answers.
    """
    found: dict[str, tuple[bool, ...]] = {}
    for name, paths in asked:
        try:
            answers = tuple(is_in(path, folders) for path, folders in paths(call, tool))
            if answers:
                found[name] = answers
        except Exception as error:  # noqa: BLE001  a person's own guard may raise anything
            log.error("guard `%s` failed to name its paths: %r", name, error)
    return found


def is_in(path: str, folders: Iterable[str]) -> bool:
    """
    Returns whether *path* is one of *folders* or below one, by its text and by its real place. Some tools shorten
    `link/..` before they open a file, some do not. A path that does not exist yet is placed by its nearest folder that
    does.
    """
    try:
        real = os.path.realpath(path)
        for folder in folders:
            base = os.path.realpath(folder)
            if within(real, base) and (within(path, folder) or within(path, base)):
                return True
    except (OSError, ValueError, RecursionError) as error:  # the last for a thousand links in a row
        log.error("a path could not be looked up: %r", error)
    return False
