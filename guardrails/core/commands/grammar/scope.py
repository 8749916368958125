"""
The things that a shell would know at a point of a script: variables, directory, functions.

Everything is a list of what it may be, since a branch may or may not have been taken. `UNKNOWN` stands for text that only
the running shell knows: all but what a script writes out itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final


if TYPE_CHECKING:
    from tree_sitter import Node

    from .syntax import Tree

UNKNOWN: Final = "\x00"
"""A piece of text that nobody knows before the command runs; no command holds a NUL."""
SPLIT: Final = "\x01"
"""Where an expansion that nothing quotes parts into words."""
MAX_VARIANTS: Final = 16
_MAX_DIRECTORIES: Final = 8
_LONGEST: Final = 256
"""Characters of a directory that is followed."""
_START: Final = {
    "HOME": ("~",),
    "IFS": (" ",),
    "PWD": (".",),
    "PATH": ("/usr/local/bin:/usr/bin:/bin",),
    "SHELL": ("/bin/bash",),
    "BASH": ("/bin/bash",),
    "UID": ("1000",),
}


class Scope:
    """
    One possible state of the shell, and what it may differ in.
    """

    def __init__(self) -> None:
        self.variables: dict[str, tuple[str, ...]] = dict(_START)
        self.functions: dict[str, tuple[Tree, Node]] = {}
        """Bodies, and the trees that they stand in."""
        self.aliases: dict[str, str] = {}
        self.directories: tuple[str, ...] = (".",)
        """`.` is where the command starts, `~` the home directory."""
        self.certain = True
        """Whether what is followed runs for sure."""
        self._changes: list[tuple[dict[str, Any], str, Any]] = []

    @contextmanager
    def apart(self) -> Iterator[None]:
        """
        A shell of its own: what is set within is forgotten behind it. It costs as much as was set, not as is known.
        """
        mark, directories = len(self._changes), self.directories
        yield
        self.directories = directories
        while len(self._changes) > mark:
            kept, name, before = self._changes.pop()
            if before is None:
                kept.pop(name, None)
            else:
                kept[name] = before

    @contextmanager
    def maybe(self) -> Iterator[None]:
        """
        Marks commands that may or may not run.
        """
        before, self.certain = self.certain, False
        yield
        self.certain = before

    def put(self, kept: dict[str, Any], name: str, value: Any) -> None:
        """
        Let *name* of *kept*, which is one of the above, be *value*; None: no more known.
        """
        self._changes.append((kept, name, kept.get(name)))
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value

    def assign(self, name: str, values: tuple[str, ...]) -> None:
        """
        Let the variable *name* be one of *values*; unless that is certain, it may also be what it was.
        """
        before = () if self.certain else self.variables.get(name, ())
        self.put(self.variables, name, tuple(dict.fromkeys((*values, *before)))[:MAX_VARIANTS])

    def forget(self) -> None:
        """
        Know no variable any more.
        """
        for name in list(self.variables):
            self.put(self.variables, name, None)

    def go(self, directories: tuple[str, ...]) -> None:
        """
        Change the directory to one of *directories*, or fail to.
        """
        known = [one if len(one) <= _LONGEST else UNKNOWN for one in directories]
        self.directories = tuple(dict.fromkeys(known))[:_MAX_DIRECTORIES]
