"""
Objects of a result: the members that are looked at, and which objects speak of pages.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from .names import SPELLINGS, Kind, kind_of


_ENDS: Final = 48
"""Members at either end of a large object that are looked at; between them only the usual spellings are."""
_FEW: Final = 6
"""Members of an object that speaks of pages alone."""
_SURE: Final = frozenset({Kind.CURSOR, Kind.TOTAL})
SILENT: Final = frozenset({None, Kind.INSIDE, Kind.MONEY, Kind.THING})


def members(value: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """
    The members of an object that are looked at.
    """
    if len(value) <= 2 * _ENDS:
        return dict.items(value)
    some = dict(islice(dict.items(value), _ENDS))
    some.update({name: dict.__getitem__(value, name) for name in SPELLINGS if dict.__contains__(value, name)})
    some.update(islice(reversed(dict.items(value)), _ENDS))
    return some.items()


def is_listing(value: dict[Any, Any]) -> bool:
    """
    Whether an object by a name of a tool's own is surely one listing of several.
    """
    kinds = [(kind_of(name), member) for name, member in islice(dict.items(value), _ENDS) if type(name) is str]
    if any(kind is Kind.PAGING for kind, _ in kinds):
        return True
    return any(kind in _SURE for kind, _ in kinds) and any(isinstance(member, (list, tuple)) for _, member in kinds)


def is_paging(value: dict[Any, Any]) -> bool:
    """
    Whether an object speaks of pages alone.
    """
    return 0 < len(value) <= _FEW and all(
        type(name) is str and kind_of(name) not in SILENT for name in dict.keys(value)
    )
