"""
Open transcripts: plain, gzip'd or zstd-compressed files and standard input, in lines of bounded length.

The only module of the readers that touches files.
"""

import importlib
import sys

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from gzip import GzipFile
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..errors import GuardrailsError
from .base import RecordedCall, Report
from .formats import recognise
from .leading import HEAD_BYTES
from .parsing import MAX_DOCUMENT, MAX_LINE, TOO_LONG
from .watched import watched


STDIN: Final = "-"
CHUNK: Final = 1 << 18
"""Bytes that are read at a time."""

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_SUFFIXES: Final = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json")


class ReaderError(GuardrailsError):
    """
    A file cannot be read for want of a package.
    """


def open_calls(path: str | Path, report: Report, *, source: str | None = None) -> Iterator[RecordedCall]:
    """
    The calls of one file, streaming; `-` is standard input. What is met on the way goes into *report*.

    The format is told by the content, and so is gzip or zstd; a file in no known format, or without calls, is told
    of in the report and gives none. *source* names the calls' source in place of the file's name (or of what a data
    set says itself). Raises OSError where the file cannot be read, and ReaderError for zstd without a package for it.
    """
    file = str(path)
    with ExitStack() as stack:
        raw: BinaryIO = sys.stdin.buffer if file == STDIN else stack.enter_context(Path(path).open("rb"))
        chunks = _chunks(raw, report, file)
        first = next(chunks, b"").removeprefix(_BOM)
        while len(first) < HEAD_BYTES and (more := next(chunks, b"")):
            first += more
        if first.startswith(_UTF16):
            report.note(file, "skipped: UTF-16 text; convert it to UTF-8")
            return

        reader = recognise(first[:HEAD_BYTES].decode("utf-8", "replace")) if first else None
        if reader is None:
            report.note(file, "skipped: it holds no calls in a form that can be read" if first else "skipped: empty")
            return

        longest = MAX_DOCUMENT if reader.whole else MAX_LINE
        lines = _lines(_after(first, chunks), longest, report, file)
        calls = reader.calls(lines, _name(file), report, file)
        yield from watched(calls, report, file, reader.name, source)


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


def _lines(chunks: Iterable[bytes], longest: int, report: Report, file: str) -> Iterator[bytes]:
    """
    The lines of *chunks* without their ends; `TOO_LONG` stands for one of more than *longest* bytes.
    """
    parts: list[bytes] = []
    size = 0
    told = skipping = False
    for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        if not rest:
            size += len(head)
            if skipping or size > longest:
                skipping = True
                parts.clear()
            else:
                parts.append(head)
            continue

        if skipping or size + len(head) > longest:
            if not told:
                report.note(file, f"a line of more than {longest >> 20} MB is skipped")
                told = True
            yield TOO_LONG
        else:
            parts.append(head)
            yield b"".join(parts)
        tail = rest.pop()
        yield from rest
        parts, size, skipping = [tail], len(tail), False
    if skipping:
        report.note(file, f"a line of more than {longest >> 20} MB is skipped")
        yield TOO_LONG
    elif size:
        yield b"".join(parts)


def _chunks(raw: BinaryIO, report: Report, file: str) -> Iterator[bytes]:
    """
    What *raw* holds, unpacked, in chunks; damage ends it, and is told.
    """
    magic = raw.read(len(_ZSTD))
    if magic != _ZSTD and not magic.startswith(_GZIP):
        yield magic
        while chunk := raw.read(CHUNK):
            yield chunk
        return

    packed: Any = BufferedReader(_Rejoined(magic, raw), CHUNK)
    unpacked = _unpacked_zstd(packed) if magic == _ZSTD else GzipFile(fileobj=packed)
    while True:
        try:
            chunk = unpacked.read(CHUNK)
        except Exception as error:  # each way of packing has errors of its own
            if isinstance(error, OSError) and error.errno is not None:
                raise
            report.note(file, "the compressed data is cut off or damaged; what stands before is read")
            return
        if not chunk:
            return
        yield chunk


class _Rejoined(RawIOBase):
    """
    A stream of which some bytes were read, from its beginning.
    """

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first or self._rest.read(len(buffer))
        self._first = b""
        buffer[: len(data)] = data
        return len(data)


def _unpacked_zstd(raw: Any) -> Any:
    """
    A reader of what is packed in *raw*: Python's own from 3.14 on, or one of the packages that do the same.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return importlib.import_module(name).ZstdFile(raw)

    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise ReaderError(
            "a file packed with zstd needs a package that reads it: pip install 'toolcall-guardrails[zstd]'"
        ) from None

    return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
