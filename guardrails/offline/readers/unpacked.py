"""
The bytes of a stream that may be packed with gzip or zstd, told by its first bytes.
"""

import importlib
import zlib

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final

from guardrails.core.values.errors import GuardrailsError, install


CHUNK: Final = 1 << 18
"""Bytes that are read at a time."""

_GZIP: Final = b"\x1f\x8b"
_GZIP_PIECE: Final = 8_192
"""Packed bytes that are unpacked at a time: at most 8 MB of what they stand for, of zstd some 64 MB."""
_GZIP_BITS: Final = 31
"""What zlib calls a gzip header and the largest window."""
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_PIECE: Final = 2_048


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
    Returns the content of *raw*, in chunks.

    Raises DamageError after the last byte that stands before the damage, and ReaderError for zstd without a package for
    it. Raises OSError if the stream cannot be read.
    """
    magic = raw.read(len(_ZSTD))
    if magic != _ZSTD and not magic.startswith(_GZIP):
        yield magic
        while chunk := raw.read(CHUNK):
            yield chunk
        return

    if magic == _ZSTD:
        yield from _parts(raw, magic, _ZSTD_PIECE, _zstd())
    else:
        yield from _parts(raw, magic, _GZIP_PIECE, partial(zlib.decompressobj, _GZIP_BITS))


def _parts(raw: BinaryIO, left: bytes, piece: int, begin: Callable[[], Any]) -> Iterator[bytes]:
    """
    Returns the unpacked parts of *left* and the rest of *raw*: one or several, each of which *begin* unpacks.
    """
    held: deque[bytes] = deque()
    size = 0
    part: Any = None
    fresh = True
    while packed := left or raw.read(piece):
        if part is None:
            # Some programs fill up with zeros.
            packed = packed.lstrip(b"\0")
            part, fresh = begin(), True
            if not packed:
                left, part = b"", None
                continue
        try:
            found = part.decompress(packed)
        except Exception as error:  # noqa: BLE001  each way of packing has errors of its own
            if fresh or not isinstance(error, zlib.error):
                yield from held
            # Else the latest of it may be what damaged bytes happen to say.
            raise DamageError(f"the packed data is cut off or damaged ({error})") from None
        left = part.unused_data if part.eof else b""
        if part.eof:
            part = None
        if not found:
            continue
        fresh = False
        held.append(found)
        size += len(found)
        while size - len(held[0]) >= CHUNK:
            size -= len(held[0])
            yield held.popleft()
    yield from held
    if part is not None:
        raise DamageError("the packed data is cut off or damaged (it has no end)")


def _zstd() -> Callable[[], Any]:
    """
    Returns the unpacker of a frame: Python's own from 3.14 on, or one of the packages that do the same.
    """
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            made: Callable[[], Any] = importlib.import_module(name).ZstdDecompressor
            return made

    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise ReaderError(f"a file packed with zstd needs a package that reads it: {install('zstd')}") from None

    return zstandard.ZstdDecompressor().decompressobj  # type: ignore[no-any-return]
