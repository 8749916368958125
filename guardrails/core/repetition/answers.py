"""
What a short answer says, wherever it stands: in an object, in text that is JSON, in the blocks of MCP.
"""

import re

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import orjson

from guardrails.core.paging.carriers import blocks, looks_like_data, unfenced
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall

from .volatile import volatile


FEW: Final = 2
"""Values with which an answer is one of many to one question, as of a scan: is it on, how many are there?"""
LINE: Final = 80
"""Characters of a text that may be such a value; a longer one tells something of its own."""
LAYERS: Final = 4
DEPTH: Final = 6
_CARRIERS: Final = frozenset({"content", "isError", "_meta", "structuredContent"})
_PYTHON: Final = str.maketrans({"'": '"'})
_WORDS: Final = {"None": "null", "True": "true", "False": "false"}
_NAMED: Final = pattern(r"\b(?:None|True|False)\b")
_FLAGS: Final = frozenset(
    {"ok", "okay", "done", "success", "successful", "succeeded", "true", "false", "yes", "no", "none", "null", "off", "on"}
    | {"up", "healthy", "alive", "pass", "passed", "saved", "sent", "logged", "created", "accepted", "queued", "completed"}
)
"""Words that say no more than a flag does."""
_ECHOES: Final = frozenset({"query", "q", "search", "term", "terms", "keyword", "keywords", "pattern", "filter", "filters"})
"""Names of what was asked for, in an answer that repeats it."""
_PAGES: Final = frozenset({"page", "limit", "offset", "per_page", "perPage", "page_size", "pageSize", "size", "start"})
_REMARKS: Final = frozenset({"message", "msg", "note", "info", "detail", "details", "description", "text"})
_NONE: Final = pattern(r"\W{0,3}(?:no|not|none|nothing|zero|0|sorry|could not|couldn't)\b", re.IGNORECASE)
_FAULTS: Final = pattern(r"error|warning|issue|problem|failure|violation|conflict|finding|diagnostic", re.IGNORECASE)
"""That nothing is wrong is an answer too."""


class Said(NamedTuple):
    """
    What was found in an answer.
    """

    values: int = 0
    """Numbers and texts that tell something, those that only repeat or remark left out."""
    full: bool = False
    """A list has something in it, or a text is long."""
    hollow: bool = False
    """A list or an object has nothing in it."""
    flags: bool = False
    """There is a flag, a zero, or a word that says no more."""

    @property
    def few(self) -> bool:
        """
        Whether it may be one of many answers to one question.
        """
        return not self.full and self.values <= FEW


_NO_MORE: Final = Said()
_VALUE: Final = Said(values=1)
_FULL: Final = Said(full=True)
_FLAG: Final = Said(flags=True)
_HOLLOW: Final = Said(hollow=True)


def carried(payload: bytes) -> Any:
    """
    The value that a JSON *payload*, or a text, carries: what its texts hold if they are data, and the blocks of MCP.
    """
    try:
        value = orjson.loads(payload)
    except ValueError:
        value = payload.decode("utf-8", "replace")
    for _ in range(LAYERS):
        inner = _inner(value)
        if inner is value:
            break
        value = inner
    return value


def said_by(value: Any, given: Collection[str] = (), name: str = "", depth: int = DEPTH) -> Said:
    """
    What an answer that is *value*, by its *name*, says beside what it was *given*: the arguments that it may repeat.
    """
    if type(value) is str:
        value = _data(value)
    kind = type(value)
    if kind is str:
        return _read(name, value, given)
    if kind is not dict and kind is not list:
        if kind is bool or not value:
            return _FLAG
        return _NO_MORE if name in _PAGES or str(value) in given else _VALUE
    if not value:
        return _FLAG if _FAULTS.search(name) else _HOLLOW
    if not depth:
        return _FULL
    if kind is list:
        return _FULL if any(_tells(said_by(row, given, name, depth - 1)) for row in value) else _HOLLOW
    found = [
        said_by(member, given, key, depth - 1) for key, member in value.items() if volatile(key, member) is None
    ]
    values, full, hollow, flags = zip(*found, strict=True) if found else ((), (), (), ())
    return Said(sum(values), any(full), any(hollow), any(flags))


def _tells(row: Said) -> bool:
    return row.full or row.values > 0 or not row.hollow


def given_by(call: ToolCall) -> frozenset[str]:
    """
    The values that an answer to *call* may repeat.
    """
    arguments = call.arguments
    if type(arguments) is not dict:
        return frozenset()
    return frozenset(str(value) for value in arguments.values() if type(value) in (str, int, float))


def _inner(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return _data(value)
    if kind is dict:
        if "content" in value and value.keys() <= _CARRIERS:
            told = value.get("structuredContent")
            return value["content"] if told is None else told
        return value["text"] if value.get("type") == "text" and type(value.get("text")) is str else value
    if kind is list:
        texts = blocks(value)
        if texts is not None and len(texts) == len(value):
            return texts[0] if len(texts) == 1 else texts
    return value


def _data(text: str) -> Any:
    bare = unfenced(text)
    if not looks_like_data(bare):
        return text
    try:
        return orjson.loads(bare)
    except ValueError:
        pass
    if '"' in bare:
        return text
    # As Python writes it.
    try:
        return orjson.loads(_NAMED.sub(lambda found: _WORDS[found[0]], bare.translate(_PYTHON)))
    except ValueError:
        return text


def _read(name: str, text: str, given: Collection[str]) -> Said:
    bare = text.strip()
    if len(bare) > LINE or "\n" in bare:
        return _FULL
    if bare.lower().rstrip(".!") in _FLAGS or (name in _REMARKS and _NONE.match(bare)):
        return _FLAG
    return _NO_MORE if not bare or name in _ECHOES or bare in given else _VALUE
