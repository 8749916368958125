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
    The values of JSON lines, or the one document, that *head* begins; the last one as far as it goes.

    Not to be changed: readers that are asked one after the other share it.
    """
    text = head.removeprefix("\ufeff").encode("utf-8", "replace")
    lines = [line for line in text.split(b"\n") if line.strip()]
    if not lines:
        return []

    values = [value for line in lines if (value := _container(line)) is not None]
    if lines[0].strip() not in (b"[", b"{") and values:
        # The last line may be cut; the only one of a head without a line end is.
        last = None if _container(lines[-1]) is not None else completed(lines[-1])
        return values if last is None else [*values, last]

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
