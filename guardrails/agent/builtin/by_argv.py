"""
Commands that are run as they were judged: read in the small language, started program by program.
"""

from collections.abc import Collection
from typing import Any

from guardrails.core.commands import UnreadableError
from guardrails.core.commands.language import judged, prepared, read, to_data

from .failure import ToolFailure
from .rooted import Root


def tree_of(command: str, root: Root, *, safe: Collection[str] = ()) -> dict[str, Any]:
    """
    *command* as `guardrails.processes.tree` runs it in the workspace *root*; programs of *safe* that only read get the options
    that keep them to it. Raises ToolFailure if it is not in the language, or leads out of the workspace.
    """
    try:
        script = read(command)
        found = judged(script)
    except UnreadableError as error:
        advice = error.advice
        raise ToolFailure(
            "validation",
            f"the command was not run, since no shell is started here: {error}",
            retryable=False,
            retryable_after_correction=True,
            next_action="fix_arguments",
            next_action_hint=None if advice is None else f"{advice[0].upper()}{advice[1:]}.",
        ) from None
    for path in found.absolute:
        if root.below.relative(path) is None:
            raise ToolFailure(
                "invalid_path",
                f"the command was not run: `{path[:200]}` is outside the workspace",
                retryable=False,
                retryable_after_correction=True,
                next_action="fix_arguments",
                next_action_hint="Name a file or folder of the workspace, from where you are.",
            )
    return to_data(prepared(script, safe))
