"""
Fields of a result that differ from one call to the next and tell nothing, by their name and their form.
"""

import re

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final, Literal

from guardrails.core.values.late_pattern import pattern


Kind = Literal["time", "measure", "request", "made", "process", "clock"]
"""How long the answer took; how long something took; whose request it was; an id that may be of what was made; a process; when
the answer was made."""
ASIDE: Final[frozenset[Kind]] = frozenset({"time", "request", "clock"})
"""They are beside any answer; others may be the answer itself, if little else is there."""

_OF: Final = r"(?:_(?:in_)?(?:ms|millis|milliseconds|us|micros|microseconds|ns|nanos|nanoseconds|s|secs?|seconds?|mins|minutes?))?"
"""The unit of a time in the name of its field; another word there may say what is counted, or what kind of time it is."""
_KINDS: Final = pattern(
    rf"(?P<time>(?:(?:took|(?:time_)?elapsed(?:_time)?|time_taken"
    rf"|(?:response|query|execution|exec|processing|search|request)_(?:time|duration)){_OF}))"
    r"|(?P<request>(?:x_)?(?:amz?n?_)?(?:request|req|trace|span|correlation)(?:_?id)?|traceparent)"
    r"|(?P<made>(?:message|msg)_?id)"
    r"|(?P<process>p?pid|process_id)"
    r"|(?P<clock>now|timestamp|ts|as_of|(?:server|current)_time"
    r"|(?:generated|fetched|retrieved|queried|checked|requested|responded|served|asked|evaluated|computed)(?:_(?:at|on|time))?)"
    rf"|(?P<measure>(?:\w+_)?(?:duration|latency)(?:_(?:p\d\d{{0,3}}|avg|mean|median))?{_OF}|\w+_(?:ms|millis|milliseconds))"
)
_UNITS: Final = pattern(r"_(?:ms|millis|milliseconds|us|ns|s|sec|secs|seconds)$")
_GOES_ON: Final = pattern(
    r"(?:^|_)(?:position|progress|remaining|left|offset|start|end|seek|cursor|timeout|delay|interval|wait|after|eta|at|since"
    r"|until|ttl|age|limit|max|min)(?:_|$)"
)
"""Times that say how far something got, or how it is set."""
_HUMPS: Final = pattern(r"(?<=[a-z0-9])(?=[A-Z])|-")
_SPAN: Final = pattern(
    r"\d+(?:\.\d+)?(?:e-\d+)? ?(?:[mun\u00b5]?s|secs?|seconds?|m|min|minutes?|milliseconds?)?|\d+:\d\d(?::\d\d)?(?:\.\d+)?"
)
_CLOCK: Final = pattern(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?|\d\d:\d\d:\d\d(?:[.,]\d+)?"
)
_ID: Final = pattern(r"(?=[^\d]*\d)[\w.:/=+-]{1,200}")
_RANDOM: Final = pattern(r"(?=[^\d]*\d)[\da-fA-F-]{16,64}")
"""An id in a field whose name does not say that it is one (`request`)."""
_FORMS: Final[dict[Kind, tuple[re.Pattern[str], ...]]] = {
    **dict.fromkeys(("request", "made"), (_ID,)),
    "process": (pattern(r"\d{1,10}"),),
    "clock": (_CLOCK,),
    "time": (_SPAN, _CLOCK),
    "measure": (_SPAN,),
}
_EPOCHS: Final = tuple((1.4e9 * unit, 2.2e9 * unit) for unit in (1, 10**3, 10**6, 10**9))
"""Seconds since 1970 of the years 2014 to 2039, and their thousandths."""
_ASKED: Final[dict[Kind, str]] = {
    "time": r"latenc|durat|bench|perf|profil|ping|speed|tim(?:er|ing)|stopwatch|measur|monitor|metric",
    "measure": r"latenc|durat|bench|perf|profil|ping|speed|tim(?:er|ing)|stopwatch|measur|monitor|metric",
    "process": r"process|pid|daemon|start|spawn",
    "request": r"request|trace|span|correlat",
    "made": r"message|msg|send|post|publish",
    "clock": r"time|clock|(?<!up)(?<!vali)date|(?:^|[_./-])now",
}
"""Words of a tool that is asked for it."""
LONGEST: Final = 40
"""Characters of a name that may be one."""


@lru_cache(maxsize=1024)
def _named(name: str) -> Kind | None:
    plain = _HUMPS.sub("_", name).lower()
    found = _KINDS.fullmatch(plain)
    if found is None:
        return None
    kind: Any = found.lastgroup
    return None if kind == "measure" and _GOES_ON.search(_UNITS.sub("", plain)) else kind


def volatile(name: Any, value: Any) -> Kind | None:
    """
    Returns the kind of the field *name* of *value*, if it is volatile. Returns None if its name, or its form, does not
    say so.
    """
    kind = _named(name) if type(name) is str and len(name) <= LONGEST else None
    if kind is None:
        return None
    if kind == "request" and name[-2:].lower() not in ("id", "nt"):
        return kind if type(value) is str and _RANDOM.fullmatch(value) else None
    if type(value) is str:
        return kind if any(form.fullmatch(value) for form in _FORMS[kind]) else None
    if type(value) is not int and (type(value) is not float or kind in ("process", "request", "made")):
        return None
    if kind == "clock" or (kind == "time" and value >= _EPOCHS[0][0]):
        return kind if any(low < value < high for low, high in _EPOCHS) else None
    # Another number of a time is an instant, or an amount of something else.
    return kind if kind in ("process", "request", "made") or 0 <= value < _EPOCHS[0][0] else None


def parted(value: Any, kinds: Collection[Kind], depth: int = 3) -> tuple[Any, set[Kind]]:
    """
    Returns *value* without its volatile fields of these *kinds*, and the kinds that were found. In a list only the id
    of the one request is left out: other ids, and times, belong to the rows.
    """
    found: set[Kind] = set()
    if type(value) is list and depth and "request" in kinds:
        return _once(value)
    if type(value) is not dict or not depth:
        return value, found
    rest: dict[str, Any] = {}
    for name, member in value.items():
        kind = volatile(name, member)
        if kind is not None and kind in kinds:
            found.add(kind)
            continue
        kept, inside = parted(member, kinds, depth - 1)
        found |= inside
        if kept or not inside:
            rest[name] = kept
    return rest, found


def _once(rows: list[Any]) -> tuple[list[Any], set[Kind]]:
    """
    Returns *rows* without the ids of a request that are the same wherever they stand.
    """
    ids = {
        (name, str(member))
        for row in rows
        if type(row) is dict
        for name, member in row.items()
        if volatile(name, member) == "request"
    }
    names = [name for name, _ in ids]
    out = {name for name in names if names.count(name) == 1}
    if not out:
        return rows, set()
    less = ({name: row[name] for name in row if name not in out} if type(row) is dict else row for row in rows)
    return [row for row in less if row != {}], {"request"}


@lru_cache(maxsize=1024)
def beside(tool: str) -> frozenset[Kind]:
    """
    Returns the kinds that *tool*, by its name, is not asked for.
    """
    return frozenset(kind for kind, words in _ASKED.items() if re.search(words, tool, re.IGNORECASE) is None)
