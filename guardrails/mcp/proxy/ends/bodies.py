"""
Bodies of HTTP requests: of a length that is said, or in chunks.
"""

import re

from typing import Final, Protocol

from .lines import MAX_LINE


class Headers(Protocol):
    """
    Headers by their names.
    """

    def get(self, name: str, /) -> str | None: ...


class Source(Protocol):
    """
    The source that a body is read from.
    """

    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...


_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,8}[ \t]*(?:;.*)?\r?\n")
_LONGEST_HEAD: Final = 8_192


def body_of(headers: Headers, source: Source) -> bytes | int:
    """
    The body of the request with *headers*, read from *source*; else the HTTP status that refuses it.
    """
    length, coding = headers.get("Content-Length"), headers.get("Transfer-Encoding")
    if coding is not None:
        # Both at once is how a request is hidden in another.
        return 400 if length is not None or coding.strip().lower() != "chunked" else _chunks(source)
    if length is None or not length.isdecimal():
        return 411
    return 413 if int(length) > MAX_LINE else source.read(int(length))


def _chunks(source: Source) -> bytes | int:
    parts: list[bytes] = []
    size = 0
    while _SIZE.fullmatch(head := source.readline(_LONGEST_HEAD)):
        length = int(head.partition(b";")[0], 16)
        if not length:
            while source.readline(_LONGEST_HEAD).strip():
                # Trailers, which say nothing of a message.
                pass
            return b"".join(parts)
        size += length
        if size > MAX_LINE:
            return 413
        parts.append(source.read(length))
        if source.readline(3).strip():
            return 400
    return 400
