"""
The settings of a guard as they are given: other spellings of keys, and maps that lie upon the default ones.
"""

import dataclasses

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, NoReturn

from guardrails.core.values.schema import Checked


class Map(dict[str, Any]):
    """
    A setting with keys of its own, such as `cycle: {nudge: 2, deny: 3}`. Nothing changes it, so that a guard has a hash.
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Map, (dict(self),)

    def _fixed(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("the settings of a guard do not change: make another with `dataclasses.replace`")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = clear = setdefault = _fixed


def map_of(**keys: Any) -> Any:
    """
    Returns the default of a setting with *keys* of its own; the ones that are given are laid upon it.
    """
    return Map(keys)


class Keys(Checked):
    """
    Mark of an `Annotated` setting that is a map. Its keys are those of the `TypedDict`; any of them may be left out,
    and others are refused.
    """

    def __init__(self) -> None:
        super().__init__(Map)


def laid(given: Any, below: Any) -> Any:
    """
    Returns *given* for a setting that is *below*: of a map key by key.
    """
    return Map({**below, **given}) if isinstance(below, Map) and isinstance(given, Mapping) else given


def respelt(given: Mapping[str, Any], aliases: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """
    Returns the settings *given* under their own names, and which of them are given twice.
    """
    made: dict[str, Any] = {}
    twice: list[str] = []
    for key, value in given.items():
        name = aliases.get(key, key)
        if name in made:
            twice.append(f"`{name}` is given twice, once as `{key}`")
        made.setdefault(name, value)
    return made, twice


def named_only(cls: Any, taken: Collection[str]) -> None:
    """
    Let *cls*, a dataclass with `aliases`, take its settings by name only, by each of their spellings. Raises TypeError
    if a spelling has a name that is *taken*.
    """
    plain: Callable[..., None] = cls.__init__
    own = [field.name for field in dataclasses.fields(cls) if field.name != "mode"] or ["mode"]
    for name in own:
        if name in taken and name != "mode":
            raise TypeError(
                f"`{cls.__name__}.{name}`: every guard has a `{name}` of another kind; give the setting another name"
            )
    maps = {field.name: field.default for field in dataclasses.fields(cls) if isinstance(field.default, Map)}

    @wraps(plain)
    def __init__(self: Any, *unnamed: Any, **settings: Any) -> None:  # noqa: N807
        if unnamed:
            written = ", ".join(f"{name}={value!r:.80}" for name, value in zip(own, unnamed, strict=False))
            raise TypeError(f"`{cls.__name__}` takes keyword arguments only: {cls.__name__}({written})")
        named, twice = respelt(settings, cls.aliases)
        if twice:
            raise TypeError("; ".join(twice))
        plain(self, **{name: laid(value, maps.get(name)) for name, value in named.items()})

    cls.__init__ = __init__
