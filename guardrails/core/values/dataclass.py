"""
The decorator `dataclass` of the library's values: that of `dataclasses`, which writes each class anew the methods that show and compare it, and
one that makes it. That took a quarter of the start of a hook. Here all classes share the former, and the latter is written once it is used.
"""

import dataclasses

from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: Any = None, /, *, repr: bool = True, eq: bool = True, frozen: bool = False, **options: Any
    ) -> Any:
        """
        Returns the class *cls* as `dataclasses.dataclass` makes it.
        """
        if cls is None:
            return partial(dataclass, repr=repr, eq=eq, frozen=frozen, **options)
        if repr and "__repr__" not in cls.__dict__:
            cls.__repr__ = _shown
        if eq:
            cls.__eq__, cls.__hash__ = _equal, _hashed if frozen else None
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _refuse
            if options.get("slots"):
                cls.__setstate__ = _restore
        made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
        # Subclasses are held to it.
        made.__dataclass_params__.frozen = frozen
        made.__init__ = _Init(made, frozen=frozen, slots=options.get("slots", False))
        if eq:
            made.compared = attrgetter(*(field.name for field in dataclasses.fields(made) if field.compare))
        return made


class _Init:
    """
    Stands for the method `__init__` of the class *owner* until that is asked for.
    """

    def __init__(self, owner: Any, **options: bool) -> None:
        self._owner, self._options = owner, options

    def __get__(self, made: object, kind: type) -> Any:
        owner, fields = self._owner, self._owner.__dataclass_fields__
        parts = {"__annotations__": {name: one.type for name, one in fields.items()}, **fields}
        parts |= {name: getattr(owner, name) for name in ("__module__", "__qualname__", "__doc__")}
        if hasattr(owner, "__post_init__"):
            parts["__post_init__"] = owner.__post_init__
        plain: Any = dataclasses.dataclass(type(owner.__name__, (), parts), repr=False, eq=False, **self._options)
        owner.__init__ = plain.__init__
        return owner.__init__ if made is None else owner.__init__.__get__(made, kind)


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change `{name}` of `{self!r:.200}`")


def _restore(self: Any, state: tuple[None, dict[str, Any]]) -> None:
    for name, value in state[1].items():
        object.__setattr__(self, name, value)


@recursive_repr()
def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> Any:
    return self.compared(self) == self.compared(other) if type(self) is type(other) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(self.compared(self))
