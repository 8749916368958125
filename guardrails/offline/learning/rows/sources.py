"""
Sources: the files that records are read from, what each is, and how a file is known again.
"""

import hashlib
import os

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from guardrails.core.values.errors import TrainingError
from guardrails.offline.transcripts import Report, open_lines
from guardrails.offline.transcripts.files import is_record, was_rotated
from guardrails.sinks.rotate import rotated


Kind = Literal["records", "packed records", "parquet", "transcript"]

MARK_BYTES: Final = 4_096
HEAD_BYTES: Final = 65_536
_PARQUET: Final = b"PAR1"
MIN_PARQUET: Final = 12
"""Bytes of the smallest Parquet file."""
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class Source(NamedTuple):
    """
    A file, or a part of one that has not been read yet.
    """

    path: str
    kind: Kind
    identity: str
    """Tells this file from all others by what it holds, so that a copy is not counted twice."""
    end: int
    """Bytes to be read: all of them, but for a last line of own records without its end."""


def sources(paths: Iterable[str | os.PathLike[str]], report: Report | None = None) -> list[Source]:
    """
    Returns the files of *paths* and of the folders among them, in the order of their names, each once. Before a file of
    records come those that it was before it was rotated. Hidden files are left out.
    Errors of reading a folder go into *report*.

    A last line without its end is left for later. Raises TrainingError for a path that is not there, OSError for a file
    given by name that cannot be read.
    """
    report = Report() if report is None else report
    found: dict[str, Source] = {}
    for named in paths:
        if not str(named):
            raise TrainingError("no file or folder ``")
        path = Path(named)
        for file in _files(path):
            try:
                source = _source(file, report, found=file != path)
            except OSError as error:
                if file == path:
                    raise
                _left_out(report, str(file), f"cannot be read: {error.strerror or error}")
                continue
            if source is not None:
                _add(found, source, report)
    return list(found.values())


def _add(found: dict[str, Source], source: Source, report: Report) -> None:
    """
    If records begin alike, one that is not packed counts, and the longest of these.
    """
    other = found.setdefault(source.identity, source)
    if other.path == source.path:
        return
    if (source.kind == "records", source.end) > (other.kind == "records", other.end):
        found[source.identity], source, other = source, other, source
    report.note(source.path, f"left out: a copy of `{other.path}`")


def _left_out(report: Report, file: str, looks: str) -> None:
    report.note(file, f"skipped: {looks}")
    report.gave_none(file, looks)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir() and was_rotated(path):
        yield from (each for each in [*rotated(path), path] if each.exists() or each == path)
    elif path.is_file():
        yield path
    elif path.is_dir():
        for folder, below, names in os.walk(path):
            here = Path(folder)
            below[:] = sorted(name for name in below if not name.startswith((".", "_")))
            files = (here / name for name in sorted(names) if not name.startswith((".", "_")))
            # To open a pipe is to wait for who writes into it.
            yield from (file for file in files if file.is_file())
    elif path.exists():
        raise TrainingError(f"`{path}` is neither a file nor a folder: training reads a file more than once")
    else:
        raise TrainingError(f"no file or folder `{path}`")


def _source(path: Path, report: Report, *, found: bool) -> Source | None:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head:
            _left_out(report, str(path), "empty")
            return None
        if head.startswith(_PARQUET):
            if size < MIN_PARQUET or not _tail(file, size).endswith(_PARQUET):
                _left_out(report, str(path), "a Parquet file that is cut off")
                return None
            return Source(str(path), "parquet", _identity(head, _tail(file, size), size), size)
        if head.startswith(_PACKED):
            first = _first_own(path)
            if first is not None:
                return Source(str(path), "packed records", _identity(first, b"", 0), size)
            return Source(str(path), "transcript", _identity(head, _tail(file, size), size), size)
        if not is_record(head.partition(b"\n")[0]):
            return Source(str(path), "transcript", _identity(head, _tail(file, size), size), size)
        first = head[: head.find(b"\n") + 1] or head
        end = _whole_lines(file, size)
        if not end:
            _left_out(report, str(path), "guardrails records of which the only line is cut off")
            return None
        return Source(str(path), "records", _identity(first, b"", 0), end)


def _first_own(path: Path) -> bytes | None:
    """
    The first line of a packed file of own records; None if it is no such file.
    """
    lines: list[bytes] = []
    size = 0
    for line in open_lines(path, Report()):
        lines.append(line + b"\n")
        size += len(lines[-1])
        if size >= MARK_BYTES:
            break
    return lines[0] if lines and is_record(lines[0]) else None


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
