"""
The values that a tool's declarations name among the arguments of a call.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final


MAX_VALUES: Final = 1_000
MAX_DEPTH: Final = 16


class TooManyError(Exception):
    """
    More values than anyone checks, or nested too deep.
    """


def named(arguments: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """
    Returns (name, value) of each argument that one of *names* matches. A name is a glob, `edits.path` is a path in the
    objects of `edits`, and lists are looked into. A free-form input is a value as a whole.

    Raises TooManyError.
    """
    if not names:
        return
    if not isinstance(arguments, Mapping):
        yield "", arguments
        return
    for count, found in enumerate(_walk(arguments, "", names, 0)):
        if count >= MAX_VALUES:
            raise TooManyError(f"more than {MAX_VALUES:,} values")
        yield found


def _walk(value: Any, name: str, names: Sequence[str], depth: int) -> Iterator[tuple[str, Any]]:
    if depth > MAX_DEPTH:
        raise TooManyError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            own = f"{name}.{key}" if name else str(key)
            if any(fnmatchcase(own, pattern) for pattern in names):
                yield own, inner
            else:
                yield from _walk(inner, own, names, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            if isinstance(inner, (Mapping, list, tuple)):
                yield from _walk(inner, name, names, depth + 1)
