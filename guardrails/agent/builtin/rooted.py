"""
Files below one folder, opened in a way that no symbolic link can lead out of it, whoever swaps it when.

Every component of a path is opened relative to the handle of the one before and never through a link; links are read and
followed here, so that those inside the folder work. `..` goes back to the handle that was held, never up the file system.
"""

import errno
import os
import stat

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from guardrails.core.text.path_text import is_absolute, joined, path_of, readings, within

from .failure import ToolFailure, no_path


MAX_LINKS: Final = 40
"""As many as Linux follows."""
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_FILE: Final = getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


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
    The folder *path*; it is opened once, so that it stays the same folder whatever is renamed.

    Raises OSError where it is no folder, NotImplementedError on systems without handles of folders.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd or os.readlink not in os.supports_dir_fd:
            raise NotImplementedError("the built-in tools need a system that opens files relative to a folder")
        self.given = os.path.abspath(path)  # noqa: PTH100  a link is to stay one
        self.path = os.path.realpath(path)
        self._handle = os.open(self.path, _FOLDER)

    def close(self) -> None:
        """
        Give the handle back.
        """
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.close()

    @contextmanager
    def find(self, path: object, *, make: bool = False) -> Iterator[Place]:
        """
        The place of *path*, which need not exist; with *make* its folders are made.

        Raises ToolFailure: `invalid_path` where it leads out, `not_found` where a folder on the way does not exist.
        """
        text = path_of(path)
        _, *others = readings(text)
        # A backslash is a letter here; whoever takes it for a separator must not be led out either.
        if not self._inside(text) or not all(within(joined(self.path, other), self.path) for other in others):
            raise no_path(f"`{text[:200]}` is outside the workspace")
        held: list[int] = [os.dup(self._handle)]
        try:
            yield self._walk(text, held, make=make)
        except OSError as error:
            raise told_of(error, text) from error
        finally:
            for handle in held:
                os.close(handle)

    def open_file(self, place: Place, *, flags: int = os.O_RDONLY) -> int:
        """
        A handle of the regular file at *place*. Raises ToolFailure `invalid_path` for anything else, OSError.
        """
        # A device may act on being opened, so it is asked for before; and again after, when it can no longer change.
        _regular(os.stat(place.name, dir_fd=place.folder, follow_symlinks=False), place)
        handle = os.open(place.name, flags | _FILE, dir_fd=place.folder)
        try:
            _regular(os.fstat(handle), place)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def open_folder(self, place: Place) -> int:
        """
        A handle of the folder at *place*. Raises OSError where it is none.
        """
        return os.open(place.name, _FOLDER, dir_fd=place.folder)

    def _inside(self, text: str) -> bool:
        if not is_absolute(text):
            return True
        return within(text, self.path) or within(text, self.given)

    def _relative(self, text: str) -> str:
        for base in (self.path, self.given):
            if is_absolute(text) and within(text, base):
                return os.path.relpath(text, base)
        return text

    def _walk(self, text: str, held: list[int], *, make: bool) -> Place:
        parts = deque(self._relative(text).split("/"))
        links = 0
        while parts:
            part = parts.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if len(held) == 1:
                    raise no_path(f"`{text[:200]}` is outside the workspace")
                os.close(held.pop())
                continue
            target = _link(part, held[-1])
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if is_absolute(target):
                    if not self._inside(target):
                        raise no_path(f"`{text[:200]}` leads outside the workspace")
                    while len(held) > 1:
                        os.close(held.pop())
                    target = self._relative(target)
                parts.extendleft(reversed(target.split("/")))
                continue
            if not any(rest not in ("", ".") for rest in parts):
                return Place(held[-1], part, text)
            held.append(_step(part, held[-1], make=make))
        return Place(held[-1], ".", text)


def _link(part: str, folder: int) -> str | None:
    try:
        return os.readlink(part, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _step(part: str, folder: int, *, make: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=folder)
        return os.open(part, _FOLDER, dir_fd=folder)


def _regular(found: os.stat_result, place: Place) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise no_path(f"`{place.shown[:200]}` is {kind}, not a file")


def told_of(error: OSError, path: str) -> ToolFailure:
    """
    What a model is told of *error* at *path*: never a place outside the workspace.
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
