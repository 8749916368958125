"""
The sameness of calls and of results: canonical arguments, and the hashes of calls and results.

The canonical form is JSON with sorted keys, 1.0 written as 1, text in NFC (up to 8 KiB) and what is no finite number as null. Values that
are canonical but for the order of keys are written by orjson. Of all others the form is that of their plain copy: a set is a sorted list;
bytes, times and decimals are text; an enum is its value; a dataclass or a pydantic model is an object. A key that is no text begins with
NUL. Numbers are compared exactly, as Python does: 1e300 is int(1e300) and not 10**300.
"""

import json
import struct
import unicodedata

from collections.abc import Iterator
from typing import Any, Final, NoReturn

from orjson import OPT_SORT_KEYS, Fragment, dumps
from xxhash import xxh3_64_intdigest, xxh3_128_digest

from .plain_json import Copy


RESULT_HEAD: Final = 1 << 16
"""Bytes of a result that are hashed."""
MAX_APART: Final = 1 << 13
"""Characters of text in another normal form than C: to normalise combining marks takes quadratic time."""

_DIGITS: Final = b"0123456789"
_SIGN: Final = 1 << 63
_LOW64: Final = struct.Struct(">8xq").unpack
_SCALARS: Final = frozenset({str, int, bool, type(None)})
_MAX_BYTES: Final = 1 << 18
"""Of a plain copy: a list that holds another twice, which holds another twice, and so on, has exponentially many values."""
_MASK: Final = "***"
"""A secret that hides itself: two different ones look the same."""


def sign(tool: str, arguments: object) -> tuple[bytes | None, int | None, bytes | None]:
    """
    Returns the signature of a call (16 bytes, xxh3-128 seeded with the xxh3-64 of the tool's name), its low 64 bits as a
    signed integer, and its canonical arguments.

    All are None if the arguments cannot be signed; never raises. Equal in every process and on every machine. xxh3 is no
    cryptographic hash: a signature proves nothing against someone who looks for collisions.
    """
    encoded = canonical(arguments)
    if encoded is None:
        return None, None, None
    digest = xxh3_128_digest(encoded, xxh3_64_intdigest(tool.encode("utf-8", "surrogatepass")))
    return digest, _LOW64(digest)[0], b"%b" % encoded


def canonical(arguments: object) -> bytes | None:
    """
    Returns the canonical form of *arguments*, JSON in UTF-8. Never raises.

    Returns None for what lies in itself, deeper than a plain copy goes or beyond `_MAX_BYTES`, and for what has no form but a description or hides what it holds.
    """
    try:
        if _is_plain(arguments):
            try:
                encoded = dumps(arguments, None, OPT_SORT_KEYS)
                # If a JSON text is in NFC, so is each string in it; the reverse is false, "\n" and a tilde would make an "ñ".
                if encoded.isascii() or len(encoded) > MAX_APART or unicodedata.is_normalized("NFC", encoded.decode()):
                    return encoded
            except TypeError:
                # Of keys that are no text, and of what is too deep.
                pass
        copy = _Signed(_MAX_BYTES, consumes=True)
        made = copy.of(arguments)
        return dumps(made, None, OPT_SORT_KEYS) if copy.room >= 0 else None
    except Exception:  # no value may stop a call, whatever an object's own code raises
        return None


def result_hash(payload: bytes | str, length: int | None = None) -> int:
    """
    Returns the signed xxh3-64 of the first `RESULT_HEAD` bytes, seeded with the length: evidence of a success.

    The *length* is the full length if *payload* is already cut. Text counts as its UTF-8 bytes.
    """
    data = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
    return (xxh3_64_intdigest(data[:RESULT_HEAD], len(data) if length is None else length) ^ _SIGN) - _SIGN


def masked_result_hash(payload: bytes | str) -> int:
    """
    Returns signed xxh3-64 of the first `RESULT_HEAD` bytes without their digits: evidence of an error.

    The length is no part of it, for "line 9" and "line 10" are to be one.
    """
    head = payload[:RESULT_HEAD]
    data = head.encode("utf-8", "surrogatepass")[:RESULT_HEAD] if isinstance(head, str) else head
    return (xxh3_64_intdigest(data.translate(None, _DIGITS)) ^ _SIGN) - _SIGN


def parse_arguments(text: str) -> tuple[object, str | None]:
    """
    Returns the value of a model's argument text, and None; or the text itself, and what is wrong with it.

    Empty text means no arguments, `{}`. NaN and Infinity are read, and the last of a repeated key counts. Integers of
    any size stay integers; orjson turns those above 64 bits into floats.
    """
    if not text or text.isspace():
        return {}, None

    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        return text, f"arguments are not JSON: {error.msg.lower()} (line {error.lineno} column {error.colno})"
    except (RecursionError, ValueError):
        return text, "arguments are nested too deeply, or have an integer of too many digits"


def _is_plain(value: Any) -> bool:
    """
    Returns whether orjson writes *value* canonically, but for text in another normal form and for keys that it refuses: it holds nothing but
    str, int, bool, None, list, dict and fractional float.

    Tuples are not for orjson: it does not count them as depth, and corrupts memory on thousands of them within each other (3.13.0).
    """
    kind = type(value)
    if kind is dict or kind is list:
        members = value.values() if kind is dict else value
        return _SCALARS.issuperset(map(type, members)) or all(map(_is_plain, members))
    return kind in _SCALARS or (kind is float and value % 1.0 > 0.0)


class _Signed(Copy):
    """
    A plain copy in which equal values are equal texts. Raises ValueError for a value that cannot be known.
    """

    def of(self, value: Any) -> Any:
        if issubclass(type(value), Iterator):
            raise ValueError
        made = super().of(value)
        if type(made) is float and made.is_integer():
            made = int(made)
        return Fragment(b"%d" % made) if type(made) is int and made.bit_length() > 63 else made

    def _text(self, text: str) -> str:
        text = super()._text(text)
        if _MASK in text:
            raise ValueError
        return text if text.isascii() or len(text) > MAX_APART else unicodedata.normalize("NFC", text)

    def _name(self, key: Any) -> str:
        return super()._name(key) if issubclass(type(key), str) else f"\0{super()._name(key)}"

    def _described(self, *_: Any) -> NoReturn:
        raise ValueError

    _ended = _described
