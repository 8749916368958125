"""
The workspace of the built-in tools: files below one folder, and what a model is told of those that cannot be used.
"""

import errno
import os

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from guardrails.core.text.path_text import joined, path_of, readings, within
from guardrails.processes.hard_links import has_names_elsewhere
from guardrails.processes.rooted import BadPlaceError, Below, Place, closed_on_error, open_folder, open_to_read

from .failure import ToolFailure, no_path


class Root:
    """
    The folder *path*. It is opened once, so that it stays the same folder when files are renamed.

    Raises OSError if it is no folder, NotImplementedError on systems without handles of folders.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd or os.readlink not in os.supports_dir_fd:
            raise NotImplementedError("the built-in tools need a system that opens files relative to a folder")
        self._handle = -1
        given = os.path.abspath(path)  # noqa: PTH100  a link is to stay one
        self.path = os.path.realpath(path)
        self._handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.below = Below(self._handle, (self.path, given))

    def close(self) -> None:
        """
        Give the handle back.
        """
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self.below.handle = -1
            os.close(handle)

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.close()

    @contextmanager
    def find(self, path: object, *, make: bool = False) -> Iterator[Place]:
        """
        The place of *path*, which need not exist; with *make* its folders are made.

        Raises ToolFailure: `invalid_path` if it leads out, `not_found` if a folder on the way does not exist.
        """
        text = path_of(path)
        # A backslash is a letter here; whoever takes it for a separator must not be led out either.
        _, *others = readings(text)
        if not all(within(joined(self.path, other), self.path) for other in others):
            raise no_path(f"`{text[:200]}` is outside the workspace")
        try:
            with self.below.find(text, make=make) as place:
                yield place
        except BadPlaceError as error:
            raise no_path(str(error)) from error
        except OSError as error:
            raise told_of(error, text) from error

    def open_file(self, place: Place) -> int:
        """
        A handle of the regular file at *place*, to read. Raises BadPlaceError for anything else and for a file that has a
        name outside the workspace (a hard link), OSError.
        """
        handle = open_to_read(place)
        with closed_on_error(handle):
            if has_names_elsewhere(handle, place, self._handle):
                raise no_path(
                    f"`{place.shown[:200]}` has another name, outside the workspace (a hard link)",
                    hint="Ask the user for a copy of it.",
                )
        return handle

    def open_folder(self, place: Place) -> int:
        """
        A handle of the folder at *place*. Raises OSError if it is no folder.
        """
        return open_folder(place)


def told_of(error: OSError, path: str) -> ToolFailure:
    """
    Returns the failure that a model reads of *error* at *path*; it never names a place outside the workspace.
    """
    shown = f"`{path[:200]}`"
    match error.errno:
        case errno.ENOENT:
            return ToolFailure(
                "not_found",
                f"there is no {shown}",
                retryable=False,
                retryable_after_correction=True,
                next_action="fix_arguments",
                next_action_hint="List the folder to see what is there.",
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return ToolFailure("permission", f"{shown} may not be used: {_reason(error)}", retryable=False)
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EMFILE | errno.ENFILE:
            return ToolFailure("unavailable", f"{shown} could not be used: {_reason(error)}")
        case errno.ENOTDIR | errno.EISDIR | errno.ELOOP | errno.ENAMETOOLONG | errno.ENXIO:
            return no_path(f"{shown}: {_reason(error)}")
    return ToolFailure("other", f"{shown} could not be used: {_reason(error)}")


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
