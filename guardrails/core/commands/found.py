"""
The findings in a script: the commands that it may run, and the parts that nobody can see before it runs.
"""

import re

from dataclasses import dataclass, field
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern


_EXE: Final = pattern(r"\.exe$", re.IGNORECASE)
_ASSIGNMENT: Final = pattern(r"[A-Za-z_]\w*=")


@dataclass(slots=True)
class Command:
    """
    One command that would run.
    """

    words: tuple[str, ...]
    """Expanded, the program first; `(">", FILE)` is a file that is written, `("NAME=value",)` an assignment."""
    directories: tuple[str, ...] = (".",)
    """Where it may run; see `Scope`."""
    previous: "Command | None" = None
    """The text that is piped into it."""
    program: str = field(init=False)
    """The first word as far as it is known."""
    base: str = field(init=False)
    """The same without its folder; an assignment as a whole."""

    def __post_init__(self) -> None:
        self.program = self.words[0].replace(UNKNOWN, "")
        assignment = _ASSIGNMENT.match(self.program)
        self.base = self.program if assignment else _EXE.sub("", self.program.rpartition("/")[2])

    @property
    def name(self) -> str:
        """
        The program without its folder, lowercase, with what is not known of it.
        """
        name = self.words[0].rpartition("/")[2].lower()
        return name.removesuffix(".exe") or self.words[0]


@dataclass(slots=True)
class Found:
    """
    The commands that a script may run.
    """

    commands: list[Command] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Commands that would run, and that nobody can see before they do."""
    fork_bomb: str | None = None
