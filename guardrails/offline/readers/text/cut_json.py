"""
Reads a JSON text that is cut off, up to the cut.
"""

import json
import re

from typing import Any, Final

import orjson


_TOKEN: Final = re.compile(
    rb'"(?:[^"\\]|\\.)*+(?P<end>")?|(?P<open>[\[{])|(?P<close>[\]}])|(?P<next>[,:])|[^\s"\[\]{},:]++', re.DOTALL
)
_CUT_STRING: Final = re.compile(rb'"(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*+', re.DOTALL)
_CLOSING: Final = {b"[": b"]", b"{": b"}"}
MAX_DEPTH: Final = 1_000
"""Brackets within each other; orjson reads 1,024."""


def completed(text: bytes, *, strings: bool = False) -> Any:
    """
    Returns the value of *text* up to the last part that is whole, with the brackets closed that are open there. With
    *strings* the text of a member counts as far as it goes, too.

    Returns None if no part is whole, the brackets do not match, or *text* is not cut but broken. Takes time in
    proportion to the length of *text*.
    """
    end, closing = _last_whole(text, strings=strings)
    if not closing:
        return None

    whole = text[:end] + closing
    try:
        return orjson.loads(whole)
    except ValueError:
        pass

    try:
        return json.loads(whole)
    except (ValueError, RecursionError):
        return None


def _last_whole(text: bytes, *, strings: bool) -> tuple[int, bytes]:
    """
    Returns the end of the last whole part of *text*, and the brackets that close it. A text that is not cut needs none.
    """
    closing: list[bytes] = []
    end = 0
    after_colon = False
    for token in _TOKEN.finditer(text):
        if bracket := token["open"]:
            closing.append(_CLOSING[bracket])
            if len(closing) > MAX_DEPTH:
                return 0, b""
            end, after_colon = token.end(), False
        elif bracket := token["close"]:
            if not closing or closing.pop() != bracket:
                return 0, b""
            end, after_colon = token.end(), False
        elif mark := token["next"]:
            after_colon = mark == b":"
            if not after_colon:
                # What stands before a comma is whole, also a number.
                end = token.start()
        elif token["end"] is not None and after_colon:
            end, after_colon = token.end(), False
        elif strings and after_colon and (cut := _CUT_STRING.match(text, token.start())):
            return cut.end(), b'"' + b"".join(reversed(closing))

    return end, b"".join(reversed(closing))
