"""
Guards written in code, held to the same rules as those of a policy file.
"""

import dataclasses

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .guards.base import Guard


if TYPE_CHECKING:
    from pydantic import TypeAdapter


def checked_guards(guards: list[Guard], mistakes: list[str]) -> list[Guard]:
    """
    The guards that are valid; what is wrong with the others goes into *mistakes*.
    """
    from pydantic import ValidationError

    valid = []
    for guard in guards:
        if not isinstance(guard, Guard):
            shown = getattr(guard, "__name__", None) or type(guard).__name__
            hint = "; call it: it is a class" if isinstance(guard, type) else ""
            mistakes.append(f"`{shown}` is no guard{hint}")
            continue
        try:
            lists = {
                f.name: tuple(v) for f in dataclasses.fields(guard) if isinstance(v := getattr(guard, f.name), list)
            }
            valid.append(adapter(type(guard)).validate_python(dataclasses.replace(guard, **lists)))
        except ValidationError as error:
            for found in error.errors(include_url=False):
                where = ".".join(str(part) for part in found["loc"])
                mistakes.append(f"{guard.name}.{where}: {found['msg'].lower()}, got `{found['input']}`")
    return valid


@lru_cache(maxsize=256)
def adapter(cls: type[Guard]) -> "TypeAdapter[Any]":
    """
    pydantic's check of a guard's settings.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(cls)
