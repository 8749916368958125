"""
The JSON values with which a file begins, for telling its format.
"""

from functools import lru_cache
from typing import Any

from .cut_json import completed
from .parsing import parse


HEAD_BYTES = 65_536
"""Bytes of a file that are looked at."""


@lru_cache(maxsize=1)
def leading_values(head: str) -> list[Any]:
    """
    Returns the values of JSON lines, or the one document, that *head* begins; the last one as far as it goes.

    Not to be changed: readers that are asked one after the other share it.
    """
    text = head.removeprefix("\ufeff").encode("utf-8", "replace")
    lines = [line for line in text.split(b"\n") if line.strip()]
    if not lines:
        return []

    if lines[0].strip() not in (b"[", b"{"):
        values = [value for line in lines[:-1] if (value := _container(line)) is not None]
        last = _container(lines[-1])
        if last is None and values:
            # A head ends in mid-line.
            last = completed(lines[-1])
        if last is not None:
            values.append(last)
        if values:
            return values

    whole = _container(text)
    if whole is None:
        whole = completed(text)
    return [] if whole is None else [whole]


def _container(text: bytes) -> Any:
    try:
        value = parse(text)
    except ValueError:
        return None

    return value if type(value) in (dict, list) and value else None
