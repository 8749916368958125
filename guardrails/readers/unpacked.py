"""
The bytes of a stream that may be packed with gzip or zstd, told by its first bytes.
"""

import importlib
import zlib

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from gzip import GzipFile
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, Final

from ..errors import GuardrailsError


CHUNK: Final = 1 << 18
"""Bytes that are read at a time."""

_PIECE: Final = 2_048
"""Packed bytes that are unpacked at a time where the result has no bound of its own: at most some 64 MB of it."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class ReaderError(GuardrailsError):
    """
    A file cannot be read for want of a package.
    """


class DamageError(GuardrailsError):
    """
    Packed data ends too early or is damaged.
    """


def unpacked(raw: BinaryIO) -> Iterator[bytes]:
    """
    What *raw* holds, in chunks, each as soon as it is there.

    Raises DamageError after the last byte that stands before the damage, ReaderError for zstd without a package for it, and
    OSError where the stream cannot be read.
    """
    magic = raw.read(len(_ZSTD))
    if magic != _ZSTD and not magic.startswith(_GZIP):
        yield magic
        while chunk := raw.read(CHUNK):
            yield chunk
        return

    whole: Any = BufferedReader(_Rejoined(magic, raw), CHUNK)
    stream = _zstd(whole) if magic == _ZSTD else GzipFile(fileobj=whole)
    held: deque[bytes] = deque()
    size = 0
    while True:
        try:
            # One step at a time: `read` would lose what was unpacked before the damage.
            chunk = stream.read1(CHUNK)
        except Exception as error:  # each way of packing has errors of its own
            if isinstance(error, OSError) and error.errno is not None:
                raise
            if not isinstance(error, zlib.error):
                yield from held
            # Else the latest of it may be what damaged bytes happen to say.
            raise DamageError(f"the packed data is cut off or damaged: {error}") from None
        if not chunk:
            yield from held
            return
        held.append(chunk)
        size += len(chunk)
        while size - len(held[0]) >= CHUNK:
            size -= len(held[0])
            yield held.popleft()


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


def _zstd(raw: Any) -> Any:
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

    return _Frames(raw, zstandard.ZstdDecompressor())


class _Frames:
    """
    Frames as the package `zstandard` unpacks them, whose own streams take a cut for the end.
    """

    def __init__(self, raw: Any, unpacker: Any) -> None:
        self._raw = raw
        self._unpacker = unpacker
        self._frame = unpacker.decompressobj()
        self._begun = False

    def read1(self, _size: int) -> bytes:
        """
        What the next packed bytes hold; `b""` at the end. Raises EOFError where a frame is cut off.
        """
        while True:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._raw.read(_PIECE)
            if not packed:
                if self._begun and not self._frame.eof:
                    raise EOFError("the last frame has no end")
                return b""
            if self._frame.eof:
                self._frame = self._unpacker.decompressobj()
            self._begun = True
            found: bytes = self._frame.decompress(packed)
            if found:
                return found
