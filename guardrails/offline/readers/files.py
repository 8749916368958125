"""
Open transcripts: plain, gzip'd or zstd-compressed files and standard input, in lines of bounded length.

The only module of the readers that touches files.
"""

import sys

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from guardrails.offline.readers.text.leading import HEAD_BYTES
from guardrails.offline.readers.text.looks import looks_like, no_text, wide_text
from guardrails.offline.readers.text.parsing import MAX_DOCUMENT, MAX_LINE, TOO_LONG
from guardrails.offline.readers.transcripts.own_records import OwnRecords
from guardrails.sinks.rotate import opened_with_rotated, rotated

from .base import RecordedCall, Report
from .formats import recognise
from .unpacked import CHUNK, DamageError, unpacked
from .watched import watched


STDIN: Final = "-"

_BOM: Final = b"\xef\xbb\xbf"
_EMPTY_BYTES: Final = 8 << 20
_EMPTY_RATIO: Final = 400
"""Transcripts are packed to a tenth, seldom to a hundredth; what unpacks to more, and holds no call, is there to be read for ever."""
_NO_CALLS: Final = "it holds no calls in a form that can be read"
_NOTHING: Final = "nothing of it can be unpacked"
_SUFFIXES: Final = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json")


def open_calls(
    path: str | Path, report: Report, *, source: str | None = None, rotated: bool = False
) -> Iterator[RecordedCall]:
    """
    Returns the calls of one file, streaming; `-` is standard input. Remarks on the way go into *report*.

    The content tells the format, and so it does for gzip or zstd. A file in no known format, or without calls, is noted
    in the report and gives none. The name *source* replaces the file's name as the calls' source (or the name in a data
    set). The files that a *rotated* one was before are read first, as one with it. Raises OSError if the file cannot be
    read, and ReaderError for zstd without a package for it.
    """
    file, damage = str(path), list[str]()
    chunks = _content(file, damage, report, rotated=rotated)
    first = next(chunks, b"").removeprefix(_BOM)
    while len(first) < HEAD_BYTES and (more := next(chunks, b"")):
        first += more
    wide = wide_text(first)
    if wide is not None:
        report.note(file, f"skipped: {wide}")
        report.gave_none(file, wide)
        return

    is_text = first and no_text(first) is None
    reader = recognise(first[:HEAD_BYTES].decode("utf-8", "replace")) if is_text else None
    if reader is None:
        longer = bool(next(chunks, b""))
        for said in damage:
            report.note(file, said)
        found = looks_like(first, more=longer) if first else _NOTHING if damage else "empty"
        report.note(file, f"skipped: {_NO_CALLS} ({found})" if first else f"skipped: {found}")
        report.gave_none(file, "; ".join([*damage, found]))
        return

    longest = MAX_DOCUMENT if reader.whole else MAX_LINE
    lines = _lines(_after(first, chunks), longest, report, file, damage)
    calls = reader.calls(lines, _name(file), report, file)
    yield from watched(calls, report, file, reader.name, source)


def open_lines(path: str | Path, report: Report, *, rotated: bool = False) -> Iterator[bytes]:
    """
    Returns the lines of one file, streaming, unpacked if it is packed. The path `-` is standard input. The rest is as
    `open_calls` has it.
    """
    file, damage = str(path), list[str]()
    yield from _lines(_content(file, damage, report, rotated=rotated), MAX_LINE, report, file, damage)


def was_rotated(path: Path) -> bool:
    """
    Returns whether *path* holds records, and other files hold those before them.
    """
    earlier = rotated(path)
    return bool(earlier) and all(map(_holds_records, [*earlier[:1], *([path] if path.exists() else ())]))


def _holds_records(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return OwnRecords().recognises(file.read(HEAD_BYTES).decode("utf-8", "replace"))
    except OSError:
        return False


def _name(file: str) -> str:
    """
    The file's name without its folder and the endings that say how it is kept.
    """
    name = "stdin" if file == STDIN else Path(file).name
    shorter = name
    while True:
        for suffix in _SUFFIXES:
            shorter = shorter.removesuffix(suffix)
        if shorter in {name, ""}:
            return name
        name = shorter


def _after(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _lines(chunks: Iterable[bytes], longest: int, report: Report, file: str, damage: Sequence[str]) -> Iterator[bytes]:
    """
    The lines of *chunks* without their ends; `TOO_LONG` stands for one of more than *longest* bytes. Damage that
    *damage* then holds is told with its line.
    """
    parts: list[bytes] = []
    size, number = 0, 1
    told = skipping = False
    for chunk in chunks:
        # `split` asks byte by byte where a line ends, this finds it.
        found = BytesIO(chunk).readlines()
        tail = found.pop() if found and not found[-1].endswith(b"\n") else b""
        if not found:
            size += len(tail)
            if skipping or size > longest:
                skipping = True
                parts.clear()
            else:
                parts.append(tail)
            continue

        head, *rest = [line[:-1] for line in found]
        if skipping or size + len(head) > longest:
            if not told:
                report.note(file, f"a line of more than {longest >> 20} MB is skipped")
                told = True
            yield TOO_LONG
        else:
            parts.append(head)
            yield b"".join(parts)
        number += len(found)
        yield from rest
        parts, size, skipping = [tail], len(tail), False
    for said in damage:
        report.note(file, f"{said}, in line {number:,}; what stands before is read")
    if skipping:
        report.note(file, f"a line of more than {longest >> 20} MB is skipped")
        yield TOO_LONG
    elif size:
        yield b"".join(parts)


def _content(file: str, damage: list[str], report: Report, *, rotated: bool) -> Iterator[bytes]:
    """
    Returns the content of *file*, unpacked, in chunks; before it that of the files that a *rotated* one was.
    """
    if file == STDIN:
        yield from _chunks(sys.stdin.buffer, damage, report)
        return
    if not rotated:
        with Path(file).open("rb") as raw:
            yield from _chunks(raw, damage, report)
        return
    for opened in opened_with_rotated(Path(file)):
        with opened as raw:
            end = b"\n"
            for chunk in _chunks(raw, damage, report, report.read):
                yield chunk
                end = chunk[-1:]
            if end != b"\n":
                yield b"\n"


def _chunks(raw: BinaryIO, damage: list[str], report: Report, before: int = 0) -> Iterator[bytes]:
    """
    Returns the content of *raw*, unpacked, in chunks; *before* it so many bytes were read. Damage ends it, and goes into
    *damage*.
    """
    told = raw.seekable()
    calls, made, since = report.calls, 0, 0
    try:
        for chunk in unpacked(raw):
            if told:
                report.read = before + raw.tell()
            # What came before this chunk has been read by now.
            if report.calls != calls:
                calls, made, since = report.calls, 0, report.read
            elif told and made > _EMPTY_BYTES and made > _EMPTY_RATIO * (report.read - since):
                damage.append(f"{made:,} bytes are packed in {report.read - since:,}, and hold no call")
                return
            made += len(chunk)
            # What little packs may be very many lines.
            yield from (chunk[at : at + CHUNK] for at in range(0, len(chunk), CHUNK))
    except DamageError as error:
        damage.append(str(error))
