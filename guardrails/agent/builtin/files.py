"""
The tools that read and change files of a workspace: read_file, write_file, edit_file, list_directory.
"""

import io
import os
import stat
import sys

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from annotated_types import Ge, Le, MaxLen, MinLen

from guardrails.core.envelope import Envelope
from guardrails.core.text.path_text import BadPathError, path_of, readings, within
from guardrails.stores.places import write_whole

from .failure import ToolFailure, ToolSet, failure_of, page


MAX_READ_BYTES: Final = 40_960
"""Of text at a time: with its quoting it fits into a result of 64 KiB."""
MAX_LINE_CHARS: Final = 8_192
"""A longer line counts as several."""
MAX_WRITE: Final = 8 << 20
"""Characters of a file that is written, bytes of one that is edited."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class Root:
    """
    The folder *path*. Raises OSError if it is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)
        os.close(os.open(self.path, _FOLDER))

    @contextmanager
    def find(self, path: str, *, folder: bool = False, write: bool = False, make: bool = False) -> Iterator[Path]:
        """
        The place of *path*, which need not exist; of a *folder*, the folder itself. Links are followed as far as they
        stay inside; with *make* folders are made.

        What goes wrong in the block with files is a ToolFailure that names no place outside: `invalid_path` if it leads
        out, is of a kind that has no text, or may not be used to *write*; else what the system says.
        """
        try:
            real = self._real(path_of(path), write=write)
            above = real if folder or str(real) == self.path else real.parent
            if make:
                above.mkdir(parents=True, exist_ok=True)
            handle = os.open(above, _FOLDER)
            try:
                # Somebody may have exchanged a folder on the way for a link that leads out: what was opened counts.
                opened = Path(f"/proc/self/fd/{handle}") if sys.platform == "linux" else above
                if not within(os.path.realpath(opened), self.path):
                    raise BadPathError("it is outside the workspace")
                yield opened if above == real else opened / real.name
            finally:
                os.close(handle)
        except BadPathError as error:
            reason = f"the path cannot be used: {error}"
            raise ToolFailure("invalid_path", reason, "Use a path inside the workspace.") from error
        except OSError as error:
            raise failure_of(error, f"`{path[:200]}` could not be used") from error

    def _real(self, text: str, *, write: bool) -> Path:
        if any(char < " " or char == "\x7f" for char in text):
            raise BadPathError("it holds a line break or another control character")
        # A backslash is a letter here; whoever takes it for a separator must not be led out either.
        real, *others = (os.path.realpath(Path(self.path, one)) for one in readings(text))
        if not all(within(one, self.path) for one in (real, *others)):
            raise BadPathError("it is outside the workspace")
        # Some file systems pass over letters that are not seen, and over capitals.
        parts = ["".join(filter(str.isprintable, part)).lower() for part in Path(real).parts]
        if write and ".git" in parts:
            raise BadPathError("it is git's own, which its commands alone write")
        return Path(real)


class Files(ToolSet):
    """
    The file tools of the workspace *root*.
    """

    names = ("read_file", "write_file", "edit_file", "list_directory")

    def __init__(self, root: Root) -> None:
        self._root = root

    def read_file(
        self, path: str, offset: Annotated[int, Ge(1)] = 1, limit: Annotated[int, Ge(1), Le(10_000)] = 2_000
    ) -> Envelope:
        """
        Read a text file of the workspace: `limit` lines from line `offset` (the first is 1).
        """
        lines: list[str] = []
        more, room = False, MAX_READ_BYTES
        with self._root.find(path) as place, _opened(place) as file:
            size = os.fstat(file.fileno()).st_size
            if b"\0" in file.read(8_192):
                raise ToolFailure("validation", f"`{path}` is no text ({size:,} bytes)")
            file.seek(0)
            with io.TextIOWrapper(file, "utf-8", "replace", newline="") as text:
                for line in islice(iter(partial(text.readline, MAX_LINE_CHARS), ""), offset - 1, None):
                    room -= len(line.encode())
                    if more := len(lines) == limit or (bool(lines) and room < 0):
                        break
                    lines.append(line)
        if not lines and offset > 1:
            raise ToolFailure("validation", f"`{path}` has less than {offset:,} lines")
        end = offset + len(lines)
        value = {"path": path, "text": "".join(lines), "offset": offset, "lines": len(lines), "bytes": size}
        value |= {"next_offset": end} if more else {}
        return page(value, f"There is more: read on from offset {end}." if more else None)

    def write_file(self, path: str, content: Annotated[str, MaxLen(MAX_WRITE)]) -> dict[str, Any]:
        """
        Write a text file of the workspace, with the folders it needs; what is there is replaced as a whole.
        """
        data = content.encode()
        with self._root.find(path, write=True, make=True) as place:
            created = not os.path.lexists(place)
            if not created:
                _check_regular(place.lstat())
            write_whole(place, data)
        return {"path": path, "bytes": len(data), "created": created}

    def edit_file(
        self, path: str, old_text: Annotated[str, MinLen(1)], new_text: str, replace_all: bool = False
    ) -> dict[str, Any]:
        """
        Replace `old_text`, which must be in the file exactly once, by `new_text`; `replace_all` replaces each.
        """
        old, new = old_text.encode(), new_text.encode()
        if old == new:
            raise _no_edit("`old_text` and `new_text` are the same")
        with self._root.find(path, write=True) as place:
            with _opened(place) as file:
                content = file.read(MAX_WRITE + 1)
            count = content.count(old)
            if len(content) + count * max(0, len(new) - len(old)) > MAX_WRITE:
                raise ToolFailure("too_large", f"it has, or would have, more than {MAX_WRITE:,} bytes")
            if count == 0:
                raise _no_edit(f"`old_text` is not in `{path}`: read the file, and copy it exactly")
            if count > 1 and not replace_all:
                raise _no_edit(f"`old_text` is {count} times in `{path}`: give more of it, or `replace_all`")
            write_whole(place, content.replace(old, new))
        return {"path": path, "replaced": count, "line": content[: content.index(old)].count(b"\n") + 1}

    def list_directory(
        self, path: str = ".", offset: Annotated[int, Ge(0)] = 0, limit: Annotated[int, Ge(1), Le(1_000)] = 500
    ) -> Envelope:
        """
        List a folder of the workspace, sorted by name: `limit` entries after the first `offset`.
        """
        with self._root.find(path, folder=True) as place, os.scandir(place) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
            shown = [_entry(entry) for entry in entries[offset : offset + limit]]
        end = offset + len(shown)
        more = f"There is more: list on from offset {end}." if end < len(entries) else None
        return page(shown, more, total_matches=len(entries))


def _no_edit(reason: str) -> ToolFailure:
    return ToolFailure("precondition", reason, retryable=False, next_action="fix_arguments")


@contextmanager
def _opened(place: Path) -> Iterator[BinaryIO]:
    with open(place, "rb", opener=lambda path, _: os.open(path, _FILE)) as file:
        _check_regular(os.fstat(file.fileno()))
        yield file


def _check_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise BadPathError("it is no regular file")


def _entry(entry: os.DirEntry[str]) -> dict[str, Any]:
    plain = "directory" if entry.is_dir() else "file" if entry.is_file() else "other"
    shown: dict[str, Any] = {"name": entry.name, "type": "link" if entry.is_symlink() else plain}
    with suppress(OSError):
        shown |= {"bytes": entry.stat().st_size} if shown["type"] == "file" else {}
    return shown
