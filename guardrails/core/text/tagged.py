"""
The slow path of the canonical form: any Python value, as the JSON of its plain copy.

A plain value gets the bytes that the fast path would give it. Of all others it is what a record would show: a set is a sorted list, bytes,
times and decimals are text, an enum is its value, a dataclass or a pydantic model is an object. A key that is no text begins with NUL.
"""

import unicodedata

from typing import Any, Final, NoReturn

from orjson import OPT_SORT_KEYS, Fragment, dumps

from .plain_json import Copy
from .signature import MAX_APART


MAX_BYTES: Final = 1 << 18
"""Of the JSON: a list that holds another twice, which holds another twice, and so on, has exponentially many values."""
MASK: Final = "***"
"""A secret that hides itself: two different ones look the same."""


class Unsignable(Exception):
    """
    The value has no canonical form.
    """


def tagged(value: object) -> bytes:
    """
    Returns the canonical form of any value: JSON in UTF-8.

    Raises `Unsignable` for what lies in itself, deeper than a plain copy goes or beyond `MAX_BYTES`, for more than `MAX_APART` characters
    that are to be normalised, and for what has no form but a description or hides what it holds.
    """
    copy = _Signed(MAX_BYTES, consumes=True)
    made = copy.of(value)
    if not copy.whole:
        raise Unsignable
    return dumps(made, None, OPT_SORT_KEYS)


class _Signed(Copy):
    """
    A plain copy in which equal values are equal texts.
    """

    apart = MAX_APART

    def of(self, value: Any) -> Any:
        if id(value) in self.above:
            raise Unsignable
        made = super().of(value)
        if type(made) is float and made.is_integer():
            made = int(made)
        return Fragment(b"%d" % made) if type(made) is int and made.bit_length() > 63 else made

    def _text(self, text: str) -> str:
        text = super()._text(text)
        if MASK in text:
            raise Unsignable
        if not text.isascii() and not unicodedata.is_normalized("NFC", text):
            self.apart -= len(text)
            if self.apart < 0:
                raise Unsignable
            text = unicodedata.normalize("NFC", text)
        return text

    def _name(self, key: Any) -> str:
        return super()._name(key) if issubclass(type(key), str) else f"\0{super()._name(key)}"

    def _described(self, value: Any, room: int) -> NoReturn:
        raise Unsignable
