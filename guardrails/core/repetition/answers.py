"""
The meaning of a short answer, wherever it stands: in an object, in text that is JSON, in the blocks of MCP.
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
_CARRIERS: Final = frozenset({"content", "isError", "_meta", "structuredContent", "resultType"})
_DUMPED: Final = _CARRIERS | {"is_error", "meta", "structured_content", "result_type"}
"""The same as fields of an SDK's objects."""
_ONLY: Final = frozenset({"result", "output", "text", "message", "content", "response"})
"""Names of a text that is all there is."""
_NAMED: Final = pattern(r"\b(?:None|True|False)\b")
_JSON: Final = {"None": "null", "True": "true", "False": "false"}
_FLAGS: Final = pattern(
    r"ok|okay|done|yes|no|true|false|none|null|on|off|up|down|alive|healthy|pass|passed|open|closed|ready|running|queued|not[ _]found"
    r"|success\w{0,4}|succeeded|(?:sav|creat|clos|accept|complet|start|stopp|add|remov|delet|updat|logg|enabl|disabl)ed|sent"
    r"|(?:un)?available|(?:in)?active",
    re.IGNORECASE,
)
"""Words that say no more than a flag does."""
_BESIDE: Final = pattern(
    r"q|query|search|terms?|keywords?|pattern|filters?|page|limit|offset|per_?page|page_?size|size|start", re.IGNORECASE
)
"""Names of what was asked for, in an answer that repeats it."""
_REMARKS: Final = frozenset({"message", "msg", "note", "info", "detail", "details", "description", "text"})
_NONE: Final = pattern(r"\W{0,3}(?:no|not|none|nothing|zero|0|sorry|could not|couldn't)\b", re.IGNORECASE)
_COUNTED: Final = pattern(
    r"(?:count|total|found|hits|matches|results?|records|rows|items|entries|length|size)\w{0,20}$", re.IGNORECASE
)
"""A balance of zero is an answer."""
_FAULTS: Final = pattern(r"error|warning|issue|problem|failure|violation|conflict|finding|diagnostic", re.IGNORECASE)
"""That nothing is wrong is an answer too."""


class Said(NamedTuple):
    """
    The findings in an answer.
    """

    values: int = 0
    """Numbers and texts that tell something, those that only repeat or remark left out."""
    full: bool = False
    """A list has something in it, or a text is long."""
    hollow: bool = False
    """A list or an object has nothing in it."""
    zero: bool = False
    """A count is zero, or a value is not there."""
    flags: bool = False
    """There is a flag, or a word that says no more."""

    @property
    def nothing(self) -> bool:
        """
        Whether there is no value that tells something.
        """
        return not self.full and not self.values

    @property
    def few(self) -> bool:
        """
        Whether it may be one of many answers to one question.
        """
        return not self.full and self.values <= FEW


_NO_MORE: Final = Said()
_VALUE: Final = Said(values=1)
_FULL: Final = Said(full=True)
_HOLLOW: Final = Said(hollow=True)
_ZERO: Final = Said(zero=True)
_FLAG: Final = Said(flags=True)


def carried(payload: bytes) -> Any:
    """
    Returns the value that a JSON *payload*, or a text, carries: the data in its texts, and in the blocks of MCP.
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
    Returns the findings in an answer that is *value*, by its *name*. The arguments *given* to the call are left out,
    since an answer may repeat them.
    """
    if type(value) is str:
        value = _data(value.strip())
    kind = type(value)
    if kind is bool:
        return _FLAG
    if not value:
        if _FAULTS.search(name):
            return _FLAG
        if kind is dict or kind is list:
            return _HOLLOW
        return _FLAG if (kind is int or kind is float) and _COUNTED.search(name) is None else _ZERO
    if not depth or (kind is str and (len(value) > LINE or "\n" in value)):
        return _FULL
    if kind is list:
        tell = any(not row.nothing or row.flags for row in (said_by(row, given, name, depth - 1) for row in value))
        return _FULL if tell else _HOLLOW
    if kind is dict:
        found: list[Said] = []
        for key, member in value.items():
            if volatile(key, member) is None:
                found.append(said_by(member, given, key, depth - 1))
                if found[-1].full:
                    return _FULL
        values, *others = zip(*found, strict=True) if found else ((),)
        return Said(sum(values), *map(any, others))
    if kind is str and (_FLAGS.fullmatch(value.rstrip(".!")) or (name in _REMARKS and _NONE.match(value))):
        return _FLAG
    return _NO_MORE if str(value) in given or _BESIDE.fullmatch(name) else _VALUE


def given_by(call: ToolCall) -> frozenset[str]:
    """
    Returns the values that an answer to *call* may repeat.
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
        names = value.keys()
        flagged = "isError" in names or "is_error" in names
        if "content" in names and (names <= _CARRIERS or (flagged and names <= _DUMPED)):
            told = value.get("structuredContent", value.get("structured_content"))
            return value["content"] if told is None else told
        if len(value) == 1:
            [(name, only)] = value.items()
            return only if type(only) is str and name in _ONLY else value
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
        return orjson.loads(_NAMED.sub(lambda found: _JSON[found[0]], bare.replace("'", '"')))
    except ValueError:
        return text
