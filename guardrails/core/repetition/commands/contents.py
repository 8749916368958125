"""
The things that programs for databases, files and code look at; a few of these change by themselves.
"""

import re

from collections.abc import Sequence
from typing import Final

from guardrails.core.values.late_pattern import pattern

from .programs import DATABASES, SHOWERS, STORES_OF_KEYS
from .verbs import is_live


_HOST: Final = pattern(
    r"-h.+|--host(?:name)?=.+|.*(?:\bhost=|://).*|\$\{?\w*(?:URL|DSN|URI)\}?", re.IGNORECASE | re.DOTALL
)
"""Names the server, so that it is somewhere else."""
_READS: Final = pattern(
    r"(?:-\w*[ce])?\s*(?:select|show|with|table)\s|.*\.(?:find|count\w*|aggregate|stats|status)\(",
    re.IGNORECASE | re.DOTALL,
)
_WRITES: Final = pattern(
    r"\b(?:insert|update|delete|create|drop|alter|truncate|grant|revoke|copy|merge|replace|into|remove|save|call|do)\b"
    r"|\b(?:insert|update|delete|replace)(?:One|Many)\(",
    re.IGNORECASE,
)
_STORES: Final = pattern(
    r"(?:get|[mhlrszxp]|b[lrz]|json\.)?(?:set|del|push|pop|add|rem|incr|decr|expire|flush|move|rename|publish|trim|store|eval|"
    r"persist|unlink|copy|append|restore|migrate|ack|claim|group|cluster|config|script|shutdown|failover|bgsave|save|reset)"
    r"(?:ex|nx|x|by|at|all|db|sha|range|rank|score|count|min|max|left|right|head|bit)*+"
)
_GROWS: Final = pattern(
    r"/(?:proc|sys)/.+|(?:.*/)?var/log/.+|.+\.(?:log|output)|(?:.*/)?nohup\.out", re.IGNORECASE | re.DOTALL
)
"""Files that programs write while somebody waits."""
_NAPS: Final = pattern(r"\b(?:sleep(?:_ms|Sync)?[ \t]{0,4}[( ][ \t]{0,4}[\w$.]|setTimeout[ \t]{0,4}\()")
_ADDRESS: Final = pattern(r"https?://[^\s\"'`)]+")
_SENDS: Final = pattern(r"\b(?:post|put|patch|delete)\b", re.IGNORECASE)


def asks(name: str, rest: Sequence[str]) -> bool:
    """
    Returns whether the client *name* of a database that others write to only reads in it.
    """
    if name in STORES_OF_KEYS:
        return bool(rest) and not any(map(_STORES.fullmatch, map(str.lower, rest)))
    if name not in DATABASES or not any(map(_READS.match, rest)) or any(map(_WRITES.search, rest)):
        return False
    return any(word in ("-h", "--host") or _HOST.fullmatch(word) for word in rest)


def grows(name: str, rest: Sequence[str]) -> bool:
    """
    Returns whether the program *name* shows a file that changes by itself: a log, the state of the system.
    """
    return name in SHOWERS and any(word[:1] != "-" and _GROWS.fullmatch(word) for word in rest)


def code_waits(text: str) -> bool:
    """
    Returns whether code in *text* sleeps, or asks a live address.
    """
    if _NAPS.search(text) is not None:
        return True
    return _SENDS.search(text) is None and any(map(is_live, _ADDRESS.findall(text)))
