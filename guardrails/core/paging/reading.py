"""
The places in which a result tells of its pages: its top, places made for it, text that is JSON; never rows.
"""

from typing import Any

import orjson

from guardrails.core.text.jsonable import BASIC

from .carriers import BLOCKS, blocks
from .names import LISTS
from .objects import may_speak, says_nothing
from .reader import MAX_PARSED, Extent, Reader


def extent_of(value: Any, payload: bytes | None = None) -> Extent:
    """
    Returns the extent that *value* tells of itself; without a sign of more it is complete.

    The *payload* is its JSON, which is read if *value* is, or holds, an object of another type than JSON's.
    """
    if isinstance(value, dict):
        found = _found(value)
        if says_nothing(value, found):
            return Extent(found, found)
        reader = Reader()
        reader.add(value, "", 0)
    elif isinstance(value, (list, tuple)):
        found = len(value)
        texts = blocks(value)
        if texts is None and (found < 2 or not (may_speak(value[0]) or may_speak(value[-1]))):
            return Extent(found, found)
        reader = Reader()
        if texts is not None:
            found = None
            reader.add_texts(texts, 0)
        elif found <= BLOCKS and all(isinstance(one, str) for one in value):
            # They may be the blocks of one answer as well as lines.
            reader.add_texts(list(value), 0)
        else:
            reader.add_ends(value)
    elif isinstance(value, str):
        found = None
        reader = Reader()
        reader.add_text(value, 0)
    elif isinstance(value, BASIC) or payload is None or len(payload) > MAX_PARSED:
        return Extent()
    else:
        return extent_of(orjson.loads(payload))
    if reader.opaque and payload is not None and len(payload) <= MAX_PARSED:
        return extent_of(orjson.loads(payload))
    return reader.extent(found)


def _found(value: dict[Any, Any]) -> int | None:
    for name in LISTS:
        rows = value.get(name)
        if isinstance(rows, (list, tuple)):
            return len(rows)
    return None
