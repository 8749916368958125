"""
Keep the paths of a call inside a folder.
"""

from contextlib import suppress
from typing import Annotated, Any, ClassVar, Final

from annotated_types import MinLen

from ..declared import TooManyError, named
from ..path_text import BadPathError, is_absolute, joined, path_of, readings, within
from ..state import SessionState
from ..tool import Tool
from ..types import Denial, ToolCall
from .base import Codes, Facts, Guard, Verdict, guard


_SHOWN: Final = 200


@guard
class Workspace(Guard):
    """
    Deny a call whose path arguments (`paths: [path]` of its tool) lead out of *root*: by `..`, from `/`, or by a symbolic
    link.

    A relative path is taken from *root*, so tools must work there. A link that is changed between check and use is not
    seen; the built-in tools open files in a way that closes this. See docs/guards/workspace.md.
    """

    codes: ClassVar[Codes] = {"workspace.root": ("path", "root"), "workspace.path": ("path", "reason")}

    root: Annotated[str, MinLen(1)] = "."
    """A folder; relative to where the process works."""
    also: tuple[Annotated[str, MinLen(1)], ...] = ()
    """Further folders that paths may be in, such as `/tmp/agent`; absolute."""

    def applies(self, tool: Tool) -> bool:
        return bool(tool.paths)

    def paths(self, call: ToolCall, tool: Tool) -> tuple[str, ...]:
        found = [self.root, *self.also]
        # What is no path, or too many, is for `check` to say.
        with suppress(TooManyError):
            for value in _values(call, tool):
                with suppress(BadPathError):
                    found += [joined(self.root, reading) for reading in readings(path_of(value))]
        return tuple(found)

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        try:
            for value in _values(call, facts.tool):
                try:
                    path = path_of(value)
                except BadPathError as error:
                    return _no_path(value, str(error))
                if not all(self._holds(joined(self.root, reading), call) for reading in readings(path)):
                    return self._outside(path)
        except TooManyError as error:
            return _no_path("", f"there are {error}")
        return None

    def _holds(self, path: str, call: ToolCall) -> bool:
        places = call.places
        if places is None:
            # Recorded calls: no file system to ask. Where an absolute path lies seen from a relative root nobody knows.
            unknown = is_absolute(path) and not is_absolute(self.root)
            return unknown or any(within(path, root) for root in (self.root, *self.also))
        real = places.get(path)
        if real is None:
            return False
        for root in (self.root, *self.also):
            base = places.get(root, root)
            # By its text and by where it leads: some tools shorten `link/..` before they open a file, some do not.
            if within(real, base) and (within(path, root) or within(path, base)):
                return True
        return False

    def _outside(self, path: str) -> Denial:
        shown = path[:_SHOWN]
        return _refusal(
            "workspace.root",
            f"`{shown}` is outside the workspace.",
            "Use a path inside the workspace; relative paths start at its root.",
            path=shown,
            root=self.root,
        )


def _values(call: ToolCall, tool: Tool) -> list[Any]:
    found: list[Any] = []
    for _, value in named(call.arguments, tool.paths):
        if value is not None:
            found += value if isinstance(value, (list, tuple)) else [value]
    return found


def _no_path(value: object, reason: str) -> Denial:
    shown = f"`{value[:_SHOWN]}` is" if isinstance(value, str) and value.isprintable() else "An argument is"
    return _refusal(
        "workspace.path",
        f"{shown} no path of the workspace: {reason}.",
        "Give a plain path inside the workspace, such as `src/app.py`.",
        path=value[:_SHOWN] if isinstance(value, str) else "",
        reason=reason,
    )


def _refusal(code: str, message: str, hint: str, **values: object) -> Denial:
    details = {"error_type": "invalid_path", "retryable_after_correction": True, "next_action": "fix_arguments"}
    return Denial(code=code, message=message, hint=hint, details=details, values=values)
