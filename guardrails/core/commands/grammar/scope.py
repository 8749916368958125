"""
What a shell would know at a point of a script: variables, directory, functions, aliases.

Everything is a list of what it may be, since a branch may or may not have been taken. `UNKNOWN` stands for text that only
the running shell knows.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from tree_sitter import Node

    from .syntax import Tree

UNKNOWN: Final = "\x00"
"""A piece of text that nobody knows before the command runs; no command holds a NUL."""
SPLIT: Final = "\x01"
"""Where an expansion that nothing quotes parts into words."""
MAX_VARIANTS: Final = 16
HOME: Final = "~"
_START: Final = {
    "HOME": ("~",),
    "IFS": (" ",),
    "PWD": (".",),
    "PATH": ("/usr/local/bin:/usr/bin:/bin",),
    "SHELL": ("/bin/bash",),
    "BASH": ("/bin/bash",),
    "UID": ("1000",),
}


@dataclass(slots=True)
class Scope:
    """
    One possible state of the shell, and what it may differ in.
    """

    variables: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(_START))
    directories: tuple[str, ...] = (".",)
    """`.` is where the command starts, `~` the home directory."""
    functions: "dict[str, tuple[Tree, Node]]" = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "Scope":
        """
        A scope that can go its own way.
        """
        return Scope(dict(self.variables), self.directories, dict(self.functions), dict(self.aliases))

    def assign(self, name: str, values: tuple[str, ...], *, certain: bool) -> None:
        """
        Let *name* be one of *values*; unless that is *certain*, it may also be what it was.
        """
        before = () if certain else self.variables.get(name, ())
        self.variables[name] = tuple(dict.fromkeys((*values, *before)))[:MAX_VARIANTS]

    def go(self, directories: tuple[str, ...]) -> None:
        """
        Change the directory to one of *directories*, or fail to.
        """
        self.directories = tuple(dict.fromkeys(directories))[:MAX_VARIANTS]

    def join(self, other: "Scope") -> None:
        """
        Be either this or *other*.
        """
        for name, values in other.variables.items():
            self.assign(name, values, certain=False)
        self.go((*self.directories, *other.directories))
        self.functions = {**self.functions, **other.functions}
        self.aliases = {**self.aliases, **other.aliases}
