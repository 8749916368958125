"""
The workspace of the built-in tools: files below one folder, and what a model is told of those that cannot be used.
"""

import errno
import os
import stat

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from guardrails.core.text.path_text import joined, path_of, readings, within

from .failure import ToolFailure, no_path


_KEPT: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _KEPT
_FILE: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _KEPT


class Place(NamedTuple):
    """
    An entry of an open folder.
    """

    folder: int
    """Handle of the folder, valid within `Root.find` only."""
    name: str
    """One component; `.` for the folder itself."""
    shown: str
    """The path as it was given."""


class Root:
    """
    The folder *path*.

    Raises OSError if it is no folder, NotImplementedError on systems without handles of folders.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd:
            raise NotImplementedError("the built-in tools need a system that opens files relative to a folder")
        self.path = os.path.realpath(path)
        os.close(os.open(self.path, _FOLDER))

    @contextmanager
    def find(self, path: object, *, make: bool = False, write: bool = False) -> Iterator[Place]:
        """
        The place of *path*, which need not exist; with *make* its folders are made. Links are followed as far as they
        stay inside.

        Raises ToolFailure: `invalid_path` if it leads out, or may not be used to *write*, `not_found` if a folder on
        the way does not exist.
        """
        text = path_of(path)
        held: list[int] = []
        try:
            parts = self._parts(text)
            if write:
                _check_writable(text, parts)
            # Whoever exchanges a folder for a link meanwhile gets an error: none is followed here.
            held.append(os.open(self.path, _FOLDER))
            for part in parts[:-1]:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=held[-1])
                held.append(os.open(part, _FOLDER, dir_fd=held[-1]))
            yield Place(held[-1], parts[-1] if parts else ".", text)
        except OSError as error:
            raise told_of(error, text) from error
        finally:
            for handle in held:
                os.close(handle)

    def open_file(self, place: Place) -> int:
        """
        Returns a handle of the regular file at *place*, to read. Raises ToolFailure for anything else, OSError.
        """
        handle = os.open(place.name, _FILE, dir_fd=place.folder)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise no_path(f"`{place.shown[:200]}` is no regular file")
        return handle

    def open_folder(self, place: Place) -> int:
        """
        Returns a handle of the folder at *place*. Raises OSError if it is no folder.
        """
        return os.open(place.name, _FOLDER, dir_fd=place.folder)

    def _parts(self, text: str) -> tuple[str, ...]:
        """
        Returns the components of the path *text* from the folder, links followed. Raises ToolFailure if it leads out.
        """
        if any(char < " " or char == "\x7f" for char in text):
            raise no_path("it holds a line break or another control character")
        # A backslash is a letter here; whoever takes it for a separator must not be led out either.
        _, *others = readings(text)
        real = Path(os.path.realpath(Path(self.path, text)))
        if not real.is_relative_to(self.path) or not all(within(joined(self.path, one), self.path) for one in others):
            raise no_path(f"`{text[:200]}` is outside the workspace")
        return real.relative_to(self.path).parts


def _check_writable(text: str, parts: tuple[str, ...]) -> None:
    """
    Raise ToolFailure for what is written by no one but git: `.git` says which programs its next command starts.
    """
    # Some file systems pass over letters that are not seen, and over capitals.
    if any("".join(filter(str.isprintable, part)).lower() == ".git" for part in parts):
        raise no_path(f"`{text[:200]}` is git's own, which its commands alone write")
    if text.endswith("/"):
        raise no_path(f"`{text[:200]}` is the name of a folder")


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
