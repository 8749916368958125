"""
Keep the paths of a call inside a folder.
"""

from contextlib import suppress
from typing import Annotated, Any, ClassVar, Final

from guardrails.core.tool import Tool, TooManyError, named
from guardrails.core.values.schema import MinLen

from .base import Codes, Denial, Facts, Guard, SessionState, ToolCall, Verdict, guard


_SHOWN: Final = 200


@guard
class Workspace(Guard):
    """
    Deny a call whose path arguments (`paths: [path]` of its tool) lead out of *root*: by `..`, from `/`, or by a symbolic
    link.

    A relative path is taken from *root*, so tools must work there. A link that is changed between check and use is not
    seen; the built-in tools open files in a way that closes this. See docs/guards/access.md#workspace.
    """

    codes: ClassVar[Codes] = {"workspace.root": ("path", "root", "reason")}

    root: Annotated[str, MinLen(1)] = "."
    """A folder; relative to where the process works."""
    also: tuple[Annotated[str, MinLen(1)], ...] = ()
    """Further folders that paths may be in, such as `/tmp/agent`; absolute."""

    def applies(self, tool: Tool) -> bool:
        return bool(tool.paths)

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        from guardrails.core.text.path_text import BadPathError, path_of, readings, system

        places, folders = list[tuple[str, tuple[str, ...]]](), (self.root, *self.also)
        # What is no path, or too many, is for `check` to say, which looks no further then.
        with suppress(TooManyError, BadPathError):
            for value in _values(call, tool):
                places += [(system.join(self.root, reading), folders) for reading in readings(path_of(value))]
        return tuple(places)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        from guardrails.core.text.path_text import BadPathError, path_of, readings

        places, value = None if call.places is None else iter(call.places.get(self.name, ())), ""
        try:
            for value in _values(call, facts.tool):
                path = path_of(value)
                for reading in readings(path):
                    if not (self._reads_inside(reading) if places is None else next(places, False)):
                        return self._outside(path)
        except TooManyError as error:
            return _no_path("", f"there are {error}")
        except BadPathError as error:
            return _no_path(value, str(error))
        # Recorded without its arguments: only where its paths led is known.
        return self._outside("a path") if places is not None and not all(places) else None

    def _reads_inside(self, path: str) -> bool:
        """
        By its text alone, if there is no file system to ask. The place of an absolute path as seen from a relative root
        is not known.
        """
        from guardrails.core.text.path_text import system, within

        unknown = system.isabs(path) and not system.isabs(self.root)
        return unknown or any(within(system.join(self.root, path), folder) for folder in (self.root, *self.also))

    def _outside(self, path: str) -> Denial:
        shown, hint = path[:_SHOWN], "Use a path inside the workspace; relative paths start at its root."
        return _refusal(f"`{shown}` is outside the workspace.", hint, path=shown, root=self.root)


def _values(call: ToolCall, tool: Tool) -> list[Any]:
    given = (value for _, value in named(call.arguments, tool.paths) if value is not None)
    return [one for value in given for one in (value if isinstance(value, (list, tuple)) else [value])]


def _no_path(value: object, reason: str) -> Denial:
    path = value[:_SHOWN] if isinstance(value, str) else ""
    shown = f"`{path}` is" if isinstance(value, str) and value.isprintable() else "An argument is"
    hint = "Give a plain path inside the workspace, such as `src/app.py`."
    return _refusal(f"{shown} no path of the workspace: {reason}.", hint, path=path, reason=reason)


def _refusal(message: str, hint: str, **values: object) -> Denial:
    details = {"error_type": "invalid_path", "retryable_after_correction": True, "next_action": "fix_arguments"}
    return Denial("workspace.root", message, hint, details=details, values=values)
