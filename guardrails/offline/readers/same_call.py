"""
Which calls of several files are one and the same.

A call is known by its own id, its time, its tool and its arguments. If it has no id, its source and its place in its
session stand for that. A call without a time is like no other: programs count `call_0`, `call_1`, ... anew in each
session. A time before the year 2000 counts from the session's beginning, so that it tells nothing of other sessions.
"""

from typing import Final

from xxhash import xxh3_64_intdigest

from guardrails.core.text.signature import low64, sign

from .base import RecordedCall


_BITS: Final = (1 << 64) - 1
_CLOCKS_MS: Final = 946_684_800_000
"""The year 2000: an earlier time is none of a clock."""


class AtOnce:
    """
    The latest calls of a session that have one time. Two of them may be equal in all parts of a key. The second is a
    call of its own if it stands behind the first: servers that count in seconds use an id again within one.
    """

    __slots__ = ("at_ms", "places")

    def __init__(self) -> None:
        self.at_ms: int | None = None
        self.places: dict[int, tuple[int, int]] = {}
        """Of each key the place of its latest call, and how many stand before that."""

    def told_apart(self, call: RecordedCall, key: int) -> int:
        """
        Returns the key of *call*, which is *key* unless it is the second, third, ... of that key.
        """
        if call.ts_ms != self.at_ms:
            self.at_ms = call.ts_ms
            self.places = {key: (call.call_index, 0)}
            return key
        place, before = self.places.get(key, (call.call_index, -1))
        # A session that begins again, as where each line has the whole of it, has no new calls.
        before = before + 1 if call.call_index > place or before < 0 else 0
        self.places[key] = call.call_index, before
        return hash((key, before)) & _BITS or 1 if before else key


def key_of(call: RecordedCall, named: int | None = None) -> int | None:
    """
    Returns the number by which *call* is known again, above 0 and below 2**64. Returns None if nothing tells it from
    others. *named* is `named_of` of it, if that is known.
    """
    at_ms = call.ts_ms
    if at_ms is None:
        return None
    sig = signature_of(call)
    if sig is None:
        return None
    if call.number is not None:
        said = named_of(call) if named is None else named, call.number, at_ms, sig
    elif call.id is not None and at_ms >= _CLOCKS_MS:
        said = _hash(call.id), -1, at_ms, sig
    elif call.id is not None:
        said = _hash(f"{call.session_id}\n{call.run}\n{call.id}"), call.call_index, at_ms, sig
    else:
        said = _hash(f"{call.source}\n{call.session_id}\n{call.run}"), call.call_index, at_ms, sig
    return hash(said) & _BITS or 1


def signature_of(call: RecordedCall) -> int | None:
    """
    Returns the signature of *call*, taken from its tool and arguments if it was not recorded. Returns None if they
    cannot be signed.
    """
    if call.sig is not None:
        return call.sig
    call.signed = signed = call.signed or sign(call.tool, call.arguments)
    return None if signed[0] is None else low64(signed[0])


def named_of(call: RecordedCall) -> int:
    return _hash(f"{call.session_id}\n{call.run}")


def _hash(text: str) -> int:
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
