"""
Sources: the files that records are read from, what each is, and how a file is known again.
"""

import hashlib
import os

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from ..errors import TrainingError
from ..readers import recognise
from ..readers.leading import HEAD_BYTES


Kind = Literal["records", "packed records", "parquet", "transcript"]

MARK_BYTES: Final = 4_096
_PARQUET: Final = b"PAR1"
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
_OWN: Final = "guardrails records"


class Source(NamedTuple):
    """
    A file, or a part of one that has not been read yet.
    """

    path: str
    kind: Kind
    identity: str
    """Tells this file from all others by what it holds, so that one that was renamed is not counted twice."""
    start: int
    end: int
    """Bytes *start* to *end* are to be read: all of it, unless it is a file of own records that grows."""


def sources(paths: Iterable[str | os.PathLike[str]], leave_out: Path | None = None) -> list[Source]:
    """
    The files of *paths* and of the folders among them, in the order of their names, each once; what is hidden, or in the
    folder *leave_out*, is left out.

    A last line without its end is left for later. Raises TrainingError for a path that is not there, OSError for a file
    that cannot be read.
    """
    found: dict[str, Source] = {}
    for path in paths:
        for file in _files(Path(path), leave_out and leave_out.resolve()):
            source = _source(file)
            if source is not None:
                found.setdefault(source.identity, source)
    return list(found.values())


def _files(path: Path, leave_out: Path | None) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        for folder, below, names in os.walk(path):
            here = Path(folder)
            below[:] = sorted(
                name for name in below if not name.startswith((".", "_")) and (here / name).resolve() != leave_out
            )
            yield from (here / name for name in sorted(names) if not name.startswith((".", "_")))
    else:
        raise TrainingError(f"no file or folder `{path}`")


def _source(path: Path) -> Source | None:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head:
            return None
        if head.startswith(_PARQUET):
            return Source(str(path), "parquet", _identity(head, _tail(file, size), size), 0, size)
        if head.startswith(_PACKED):
            kind: Kind = "packed records" if _is_own(path) else "transcript"
            return Source(str(path), kind, _identity(head, _tail(file, size), size), 0, size)
        reader = recognise(head.decode("utf-8", "replace"))
        if reader is None or reader.name != _OWN:
            return Source(str(path), "transcript", _identity(head, _tail(file, size), size), 0, size)
        first = head[: head.find(b"\n") + 1] or head
        return Source(str(path), "records", _identity(first, b"", 0), 0, _whole_lines(file, size))


def _is_own(path: Path) -> bool:
    from ..readers import Report
    from ..readers.files import open_lines

    head = b""
    for line in open_lines(path, Report()):
        head += line + b"\n"
        if len(head) >= MARK_BYTES:
            break
    reader = recognise(head.decode("utf-8", "replace"))
    return reader is not None and reader.name == _OWN


def _identity(head: bytes, tail: bytes, size: int) -> str:
    return hashlib.sha256(b"%d\n" % size + head + tail).hexdigest()[:32]


def _tail(file: BinaryIO, size: int) -> bytes:
    file.seek(max(0, size - HEAD_BYTES))
    return file.read()


def _whole_lines(file: BinaryIO, size: int) -> int:
    """
    The end of the last whole line.
    """
    end = size
    while end > 0:
        start = max(0, end - HEAD_BYTES)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
