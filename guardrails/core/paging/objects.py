"""
Objects of a result: the members that are looked at, and which objects speak of pages.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from .carriers import blocks
from .names import BROKEN_WORDS, SPELLINGS, Kind, kind_of


_ENDS: Final = 48
"""Members at either end of a large object that are looked at; between them only the usual spellings are."""
_MANY: Final = 1_024
"""Rows by their keys that are looked at."""
MAX_REMARK: Final = 400
"""Characters of an element of a list that may speak of the list."""
_MARKS: Final = frozenset("[(.+<-\u2026")
"""A single word that speaks of a list begins with one of them."""
_FEW: Final = 6
"""Members of an object that speaks of pages alone."""
_SURE: Final = frozenset({Kind.CURSOR, Kind.TOTAL})
SILENT: Final = frozenset({None, Kind.INSIDE, Kind.MONEY, Kind.THING})
_MOST: Final = 32
"""Members of an object that is looked through in one go."""
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_MUTE: Final = frozenset({None, Kind.MONEY, Kind.THING})
_LISTED: Final = frozenset({None, Kind.INSIDE})
_TOTALS: Final = frozenset({Kind.TOTAL, Kind.COUNT})


def members(value: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """
    Returns the members of an object that are looked at.
    """
    if len(value) <= 2 * _ENDS:
        return dict.items(value)
    some = dict(islice(dict.items(value), _ENDS))
    # The view's way walks through the smaller of the two.
    some.update((name, dict.__getitem__(value, name)) for name in dict.keys(value) & SPELLINGS)
    some.update(islice(reversed(dict.items(value)), _ENDS))
    return some.items()


def are_rows(value: dict[Any, Any]) -> bool:
    """
    Returns whether an object holds rows by their keys: several objects of one form.
    """
    if not 1 < len(value) <= _MANY:
        return False
    first = next(iter(dict.values(value)))
    if not isinstance(first, dict) or is_listing(first):
        return False
    return all(isinstance(one, dict) and one.keys() == first.keys() for one in dict.values(value))


def is_listing(value: dict[Any, Any]) -> bool:
    """
    Returns whether an object by a name of a tool's own is surely one listing of several.
    """
    kinds = [(kind_of(name), member) for name, member in islice(dict.items(value), _ENDS) if type(name) is str]
    if any(kind is Kind.PAGING for kind, _ in kinds):
        return True
    return any(kind in _SURE for kind, _ in kinds) and any(isinstance(member, (list, tuple)) for _, member in kinds)


def may_speak(value: Any) -> bool:
    """
    Returns whether an element of a list may speak of the list: a short text, or an object that speaks of pages alone.
    """
    if isinstance(value, str):
        return len(value) <= MAX_REMARK and (" " in value or value[:1] in _MARKS)
    if not isinstance(value, dict) or not 0 < len(value) <= _FEW:
        return False
    for name in dict.keys(value):  # noqa: SIM110 - nearly every row ends at its first name: `all` takes longer
        if type(name) is not str or kind_of(name) in SILENT:
            return False
    return True


def says_nothing(value: dict[Any, Any], found: int | None, depth: int = 2) -> bool:
    """
    Returns whether nearly every object's case is that of *value*: no member speaks of pages, but for a total of
    *found*.
    """
    if len(value) > _MOST:
        return False
    for name, member in dict.items(value):
        said = kind_of(name) if type(name) is str else None
        kind = type(member)
        if kind is dict:
            if said is not None or depth < 1 or not says_nothing(member, None, depth - 1):
                return False
        elif kind is list:
            if said not in _LISTED or (member and blocks(member)):
                return False
            if len(member) > 1 and (may_speak(member[0]) or may_speak(member[-1])):
                return False
        elif said is Kind.STATUS:
            if kind is not str or member.lower().replace(" ", "_") in BROKEN_WORDS:
                return False
        elif kind not in _SCALARS or not (said in _MUTE or (said in _TOTALS and kind is int and member == found)):
            return False
    return True
