"""
The tools that read and change files of a workspace: read_file, write_file, edit_file, list_directory.
"""

import os
import secrets
import stat

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, BinaryIO, Final

from annotated_types import Ge, Le

from guardrails.core.envelope.envelope import Envelope

from .failure import ToolFailure, ToolSet, no_path
from .rooted import Place, Root


MAX_READ_BYTES: Final = 40_960
"""Of text at a time: with its quoting it fits into a result of 64 KiB."""
MAX_LINE_BYTES: Final = 16_384
MAX_SCANNED: Final = 256 << 20
"""Bytes that are skipped to reach a line."""
MAX_WRITE_BYTES: Final = 8 << 20
MAX_ENTRIES: Final = 100_000
_CHUNK: Final = 1 << 16


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
        with self._root.find(path) as place, _reading(self._root, place) as file:
            size = os.fstat(file.fileno()).st_size
            if b"\0" in file.read(8_192):
                raise ToolFailure(
                    "validation", f"`{path}` is no text: it holds NUL bytes ({size:,} bytes)", retryable=False
                )
            file.seek(0)
            _skip(file, offset - 1, path)
            text, lines, more = _page(file, limit)
        value: dict[str, Any] = {"path": path, "text": text, "offset": offset, "lines": lines, "bytes": size}
        if not more:
            return Envelope.success(value, is_complete=True)
        value["next_offset"] = offset + max(1, lines)
        hint = f"There is more: read on from offset {value['next_offset']}."
        return Envelope.success(value, is_complete=False, next_action_hint=hint)

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        """
        Write a text file of the workspace, with the folders it needs; what is there is replaced as a whole.
        """
        data = _encoded(content)
        with self._root.find(path, make=True, write=True) as place:
            before = _present(place)
            _replace(place, data, before)
        return {"path": path, "bytes": len(data), "created": before is None}

    def edit_file(self, path: str, old_text: str, new_text: str, replace_all: bool = False) -> dict[str, Any]:
        """
        Replace `old_text`, which must be in the file exactly once, by `new_text`; `replace_all` replaces each.
        """
        if not old_text or old_text == new_text:
            raise _precondition("`old_text` must be some text, and another than `new_text`", "fix_arguments")
        with self._root.find(path, write=True) as place:
            before = _present(place)
            with _reading(self._root, place) as file:
                long = os.fstat(file.fileno()).st_size > MAX_WRITE_BYTES
                # It may grow meanwhile.
                found = b"" if long else file.read(MAX_WRITE_BYTES + 1)
            if long or len(found) > MAX_WRITE_BYTES:
                raise ToolFailure("too_large", f"`{path}` has more than {MAX_WRITE_BYTES:,} bytes", retryable=False)
            old, new = _encoded(old_text), _encoded(new_text)
            count = found.count(old)
            if count == 0:
                raise _precondition(f"`old_text` is not in `{path}`: read the file, and copy it exactly")
            if count > 1 and not replace_all:
                raise _precondition(
                    f"`old_text` is {count} times in `{path}`: give more of the lines around it, or `replace_all`",
                    "fix_arguments",
                )
            if len(found) + count * (len(new) - len(old)) > MAX_WRITE_BYTES:
                raise ToolFailure(
                    "too_large", f"`{path}` would have more than {MAX_WRITE_BYTES:,} bytes", retryable=False
                )
            edited = found.replace(old, new)
            now = _present(place)
            if before is None or now is None or (before.st_ino, before.st_mtime_ns) != (now.st_ino, now.st_mtime_ns):
                raise ToolFailure("conflict", f"`{path}` was changed by another meanwhile: read it again")
            _replace(place, edited, before)
        return {"path": path, "replaced": count, "line": found[: found.index(old)].count(b"\n") + 1}

    def list_directory(
        self, path: str = ".", offset: Annotated[int, Ge(0)] = 0, limit: Annotated[int, Ge(1), Le(1_000)] = 500
    ) -> Envelope:
        """
        List a folder of the workspace, sorted by name: `limit` entries after the first `offset`.
        """
        with self._root.find(path) as place:
            handle = self._root.open_folder(place)
            try:
                names, cut = _names(handle)
                shown = [_entry(name, handle) for name in names[offset : offset + limit]]
            finally:
                os.close(handle)
        end = offset + len(shown)
        complete = end >= len(names) and not cut
        hint = None if complete else f"There is more: list on from offset {end}."
        if cut and end >= len(names):
            hint = f"It has more than {MAX_ENTRIES:,} entries: the rest is not listed."
        total = None if cut else len(names)
        return Envelope.success(shown, total_matches=total, is_complete=complete, next_action_hint=hint)


@contextmanager
def _reading(root: Root, place: Place) -> Iterator[BinaryIO]:
    handle = root.open_file(place)
    with os.fdopen(handle, "rb") as file:
        yield file


def _skip(file: BinaryIO, lines: int, path: str) -> None:
    """
    Go to the line after the first *lines*.
    """
    scanned = 0
    while lines > 0:
        chunk = file.read(_CHUNK)
        scanned += len(chunk)
        if not chunk:
            raise ToolFailure("validation", f"`{path}` has no line {lines:,} lines further on", retryable=False)
        if scanned > MAX_SCANNED:
            raise ToolFailure("too_large", f"line is more than {MAX_SCANNED >> 20} MiB into `{path}`", retryable=False)
        count = chunk.count(b"\n")
        if count < lines:
            lines -= count
            continue
        place = -1
        for _ in range(lines):
            place = chunk.index(b"\n", place + 1)
        file.seek(place + 1 - len(chunk), os.SEEK_CUR)
        return


def _page(file: BinaryIO, limit: int) -> tuple[str, int, bool]:
    """
    (text, lines, whether there is more)
    """
    parts: list[bytes] = []
    size = scanned = 0
    for _ in range(limit):
        line = file.readline(MAX_LINE_BYTES)
        if not line:
            break
        if parts and size + len(line) > MAX_READ_BYTES:
            return _text(parts), len(parts), True
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line += b" [line cut]\n"
            scanned += _finish(file, MAX_SCANNED - scanned)
        parts.append(line)
        size += len(line)
    return _text(parts), len(parts), bool(file.read(1))


def _finish(file: BinaryIO, most: int) -> int:
    """
    Go to the end of the line, *most* bytes at most; how many they were.
    """
    passed = 0
    while passed < most:
        rest = file.readline(_CHUNK)
        passed += len(rest)
        if not rest or rest.endswith(b"\n"):
            break
    return passed


def _text(parts: list[bytes]) -> str:
    return b"".join(parts).decode(errors="replace")


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolFailure("validation", "the text is not valid Unicode", retryable=False) from None
    if len(data) > MAX_WRITE_BYTES:
        raise ToolFailure("too_large", f"the text has {len(data):,} bytes (limit {MAX_WRITE_BYTES:,})", retryable=False)
    return data


def _present(place: Place) -> os.stat_result | None:
    try:
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise no_path(f"`{place.shown[:200]}` is no regular file")
    return found


def _replace(place: Place, data: bytes, before: os.stat_result | None) -> None:
    """
    Put *data* in the place of what is there, all or nothing: a full disk or a kill leaves the old file.
    """
    # Without the bits that let a program run as its owner: the system takes them from a file that is written, too.
    mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777
    name = f".{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(name, flags, mode, dir_fd=place.folder)
    try:
        with os.fdopen(handle, "wb") as file:
            if before is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=place.folder)
        raise


def _names(handle: int) -> tuple[list[str], bool]:
    names: list[str] = []
    with os.scandir(handle) as entries:
        for entry in entries:
            if len(names) >= MAX_ENTRIES:
                return sorted(names), True
            names.append(entry.name)
    return sorted(names), False


def _entry(name: str, folder: int) -> dict[str, Any]:
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return {"name": shown, "type": "other"}
    if stat.S_ISDIR(found.st_mode):
        return {"name": shown, "type": "directory"}
    if stat.S_ISREG(found.st_mode):
        return {"name": shown, "type": "file", "bytes": found.st_size}
    return {"name": shown, "type": "link" if stat.S_ISLNK(found.st_mode) else "other"}


def _precondition(message: str, action: str = "fix_precondition") -> ToolFailure:
    return ToolFailure("precondition", message, retryable=False, retryable_after_correction=True, next_action=action)
