"""
Booleans that pydantic has read as numbers.
"""

from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from .problems import Path


def counted_flags(given: Any, got: Any, path: Path) -> Iterator[Path]:
    """
    Returns the paths at which a boolean of *given* is a number in *got*.
    """
    if given is got:
        return

    if given is True or given is False:
        if type(got) is not bool and isinstance(got, (int, float, complex, timedelta)):
            yield path
    elif type(given) is dict:
        for key, each in given.items():
            yield from counted_flags(each, item(given, got, key), (*path, key))
    elif type(given) is list and isinstance(got, (set, frozenset)):
        if not any(type(each) is bool for each in got):
            yield from ((*path, at) for at, each in enumerate(given) if each is True or each is False)
    elif type(given) is list and isinstance(got, (list, tuple, deque)):
        for at, pair in enumerate(zip(given, got, strict=False)):
            yield from counted_flags(*pair, (*path, at))


def item(given: dict[Any, Any], got: Any, key: Any) -> Any:
    """
    Returns the item of `given[key]` after validation: an item or, in a model or dataclass, an attribute, by name or
    alias.
    """
    if isinstance(got, dict):
        if key in got or any(type(name) is str for name in got):
            return got.get(key)

        # The keys of a `dict[int, ...]` are coerced too; the order stays.
        return dict(zip(given, got.values(), strict=False)).get(key)

    for name, field in getattr(type(got), "model_fields", {}).items():
        if key in (name, key_of(field, name)):
            return getattr(got, name, None)

    return getattr(got, key, None) if isinstance(key, str) else None


def key_of(field: Any, name: str) -> str:
    """
    Returns the name of *field* in the JSON Schema: its alias, the first one if it has several.
    """
    alias = field.validation_alias or field.alias or name
    choices = [alias, *getattr(alias, "choices", ())]

    return next((choice for choice in choices if isinstance(choice, str)), name)
