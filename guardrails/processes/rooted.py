"""
Files below one open folder, reached in a way that no symbolic link leads out of it, even if a link is swapped
meanwhile.

Every component of a path is opened relative to the handle of the one before and never through a link. Links are read
and followed here, so that those inside the folder work. `..` goes back to the handle that was held, never up the file
system. Standard library only: what starts programs reads it before anything else.
"""

import errno
import os
import posixpath
import stat

from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple


MAX_LINKS: Final = 40
"""As many as Linux follows."""
MAX_DEPTH: Final = 256
"""Folders below the first: each is a handle, and handles are few."""
_KEPT: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _KEPT
_FILE: Final = _KEPT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}
_OF_KERNEL: Final = frozenset(
    {"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf", "configfs", "pstore", "efivarfs"}
    | {"devpts", "mqueue", "binfmt_misc", "fusectl", "selinuxfs", "rpc_pipefs", "nfsd", "nsfs"}
)
"""File systems that are no files of a disk: what is read there may wait for ever, or be another process."""


class BadPlaceError(ValueError):
    """
    Raised for a path that cannot be a file of the folder, with the reason: it leads out, or is no file.
    """


class Place(NamedTuple):
    """
    An entry of an open folder.
    """

    folder: int
    """Handle of the folder, valid within `Below.find` only."""
    name: str
    """One component; `.` for the folder itself."""
    shown: str
    """The path as it was given."""
    above: tuple[str, ...] = ()
    """Names of the folders from the first to this one, without links."""
    as_folder: bool = False
    """The path ends with a slash: only a folder can be meant."""


class Below:
    """
    Places below the folder that *handle* is open on. Absolute paths are those that begin with one of *names*.
    """

    def __init__(self, handle: int, names: Collection[str] = ()) -> None:
        self.handle = handle
        self._names = tuple(names)

    @contextmanager
    def find(self, path: str, *, make: bool = False) -> Iterator[Place]:
        """
        The place of *path*, which need not exist; with *make* its folders are made.

        Raises BadPlaceError if it leads out, is too deep or holds control characters, OSError if a folder on the way
        cannot be opened.
        """
        if any(char < " " or char == "\x7f" for char in path):
            raise BadPlaceError("it holds a line break or another control character")
        held: list[int] = [os.dup(self.handle)]
        try:
            yield self._walk(path, held, make=make)
        finally:
            for handle in held:
                os.close(handle)

    def relative(self, path: str) -> str | None:
        """
        *path* as seen from the folder, by its text alone. Returns None if it is absolute and begins elsewhere.
        """
        if not path.startswith("/"):
            return path
        for name in self._names:
            base = name.rstrip("/")
            # As it is written, so that `link/..` is the folder above of where the link leads.
            rest = path[len(base) + 1 :]
            if path.startswith(f"{base}/") and not posixpath.normpath(rest or ".").startswith(".."):
                return rest.lstrip("/") or "."
            plain = posixpath.normpath(path)
            if plain == (base or "/") or plain.startswith(f"{base}/"):
                return posixpath.relpath(plain, base or "/")
        return None

    def _walk(self, path: str, held: list[int], *, make: bool) -> Place:
        shown = path[:200]
        start = self.relative(path)
        if start is None:
            raise BadPlaceError(f"`{shown}` is outside the workspace")
        parts = deque(start.split("/"))
        above: list[str] = []
        links = 0
        while parts:
            part = parts.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if not above:
                    raise BadPlaceError(f"`{shown}` is outside the workspace")
                above.pop()
                os.close(held.pop())
                continue
            target = _link(part, held[-1])
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                onward = self.relative(target)
                if onward is None:
                    raise BadPlaceError(f"`{shown}` leads outside the workspace")
                if target.startswith("/"):
                    above.clear()
                    while len(held) > 1:
                        os.close(held.pop())
                parts.extendleft(reversed(onward.split("/")))
                continue
            if not any(rest not in ("", ".") for rest in parts):
                return Place(held[-1], part, path, tuple(above), bool(parts))
            if make:
                _check_not_gits(part, shown)
            if len(above) >= MAX_DEPTH:
                raise BadPlaceError(f"`{shown}` is more than {MAX_DEPTH} folders deep")
            held.append(_step(part, held[-1], make=make))
            above.append(part)
        return Place(held[-1], ".", path, tuple(above))


def open_to_read(place: Place) -> int:
    """
    A handle of the regular file at *place*. Raises BadPlaceError for anything else, OSError.
    """
    handle = _opened(place, os.O_RDONLY)
    with closed_on_error(handle):
        if _is_of_kernel(handle):
            raise BadPlaceError(f"`{place.shown[:200]}` is a file of the kernel, not of a disk")
    return handle


def open_to_write(place: Place, *, append: bool = False) -> int:
    """
    A handle of the regular file at *place* to write into, made if there is none; emptied unless *append* says to write on.

    Raises BadPlaceError for anything else, for a file with a second name, which may be outside, and for what is git's own;
    OSError.
    """
    check_writable(place)
    flags = os.O_WRONLY | (os.O_APPEND if append else 0)
    try:
        handle = os.open(place.name, flags | _FILE | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=place.folder)
    except FileExistsError:
        handle = _opened(place, flags)
    with closed_on_error(handle):
        if os.fstat(handle).st_nlink > 1:
            raise BadPlaceError(f"`{place.shown[:200]}` has another name (a hard link), which may be elsewhere")
        if not append:
            # Only now that it is known what is emptied.
            os.ftruncate(handle, 0)
    return handle


def check_writable(place: Place) -> None:
    """
    Raises BadPlaceError for what is written by no one but git: `.git` says which programs its next command starts. OSError
    for the name of a folder.
    """
    for name in (*place.above, place.name):
        _check_not_gits(name, place.shown)
    if place.as_folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def _check_not_gits(name: str, shown: str) -> None:
    # Some file systems pass over letters that are not seen, and over capitals.
    if "".join(filter(str.isprintable, name)).lower() == ".git":
        raise BadPlaceError(f"`{shown[:200]}` is git's own, which its commands alone write")


def open_folder(place: Place) -> int:
    """
    A handle of the folder at *place*. Raises OSError if it is none.
    """
    return os.open(place.name, _FOLDER, dir_fd=place.folder)


@contextmanager
def closed_on_error(handle: int) -> Iterator[None]:
    """
    Close *handle* if what is done within fails.
    """
    try:
        yield
    except BaseException:
        os.close(handle)
        raise


def _opened(place: Place, flags: int) -> int:
    if place.as_folder:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    # A device may act on being opened, so it is asked for before; and again after, when it can no longer change.
    _regular(os.stat(place.name, dir_fd=place.folder, follow_symlinks=False), place)
    handle = os.open(place.name, flags | _FILE, dir_fd=place.folder)
    with closed_on_error(handle):
        _regular(os.fstat(handle), place)
    return handle


def _regular(found: os.stat_result, place: Place) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise BadPlaceError(f"`{place.shown[:200]}` is {kind}, not a file")


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


def _is_of_kernel(handle: int) -> bool:
    # Such a file system has no blocks; hardly another has none, so that the table of mounts is read for few.
    if os.fstatvfs(handle).f_blocks:
        return False
    device = os.fstat(handle).st_dev
    mark = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    for line in mounts.splitlines():
        about, _, kind = line.partition(" - ")
        if mark in about.split(" ", 3)[:3] and kind.partition(" ")[0] in _OF_KERNEL:
            return True
    return False
