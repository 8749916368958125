"""
The language of the two sides: a request, then dots as long as it is worked on, then the answer.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MAX_REQUEST = 32 << 20
"""Bytes of a request. What is longer is answered by the process that has it, so that a few cannot fill the memory."""
MAX_ANSWER = 16 << 20
"""Bytes of an answer."""
WORKING = b"."
ANSWER = b"="
REFUSED = b"!"
"""The code or the policy has changed, or the asker wants other ones: nothing was done."""
_LENGTH = 8
_CHUNK = 1 << 18


class WireError(Exception):
    """
    The other side is gone, or says what nobody says.
    """


def sent(words: "list[str]", data: bytes) -> bytes:
    """
    A request: *words* that hold no NUL, and *data*.
    """
    head = "\0".join(words).encode("utf-8", "surrogateescape")
    return b"%08x%08x%b%b" % (len(head), len(data), head, data)


def received(connection: "Any") -> "tuple[list[str], bytes]":
    """
    The request that comes in by *connection*. Raises WireError, OSError.
    """
    head, size = _number(connection), _number(connection)
    if head + size > MAX_REQUEST:
        raise WireError("too long")
    words = _exactly(connection, head).decode("utf-8", "surrogateescape")
    return words.split("\0"), _exactly(connection, size)


def answered(answer: bytes, told: bytes) -> bytes:
    """
    The answer, and what is *told* of it to people, as they are sent.
    """
    return b"%b%08x%08x%b%b" % (ANSWER, len(answer), len(told), answer, told)


def awaited(connection: "Any") -> "tuple[bytes, bytes] | None":
    """
    The answer that comes in by *connection*, whose time-out bounds each silence, and what is told of it to people. Returns
    None if it was refused.

    Raises WireError, OSError.
    """
    while True:
        said = _exactly(connection, 1)
        if said == REFUSED:
            return None
        if said == ANSWER:
            size, rest = _number(connection), _number(connection)
            if size + rest > MAX_ANSWER:
                raise WireError("too long")
            return _exactly(connection, size), _exactly(connection, rest)
        if said != WORKING:
            raise WireError("no word of ours")


def _number(connection: "Any") -> int:
    try:
        return int(_exactly(connection, _LENGTH), 16)
    except ValueError:
        raise WireError("no length") from None


def _exactly(connection: "Any", size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, _CHUNK))
        if not part:
            raise WireError("gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
