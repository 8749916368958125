"""
The findings in a command, and the forms of its paths.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple


UNKNOWN: Final = "\0"
"""A piece of text that nobody knows before the command runs; no command holds a NUL."""
Step = tuple[str, list[list[str]]]
"""`;`, `&&` or `||`, and behind it commands that are piped into each other, each as its words."""
_ALL_OF: Final = frozenset({"", "*", "**", ".*", ".[!.]*", "{*,.*}", "?*", "*.*"})


class Fault(NamedTuple):
    """
    A reason, as a clause, and what to write instead if that is known.
    """

    reason: str
    advice: str = ""


class UnreadableError(Exception):
    """
    A command that cannot be read: the reason, and what to write instead.
    """


@dataclass(frozen=True, slots=True)
class Command:
    """
    One command that would run.
    """

    words: tuple[str, ...]
    """Expanded, the program first; `(">", FILE)` is a file that is written, `("NAME=value",)` an assignment."""
    folder: str = "."
    """Where it runs: `.` is where the whole command starts, `~` the home directory."""
    before: "Command | None" = None
    """The command that is piped into it."""

    @property
    def program(self) -> str:
        """
        The first word as far as it is known.
        """
        return self.words[0].replace(UNKNOWN, "")

    @property
    def name(self) -> str:
        """
        The program without its folder, lowercase; an assignment as a whole.
        """
        text = self.program if "=" in self.program else self.program.rpartition("/")[2]
        return text.lower().removesuffix(".exe") or self.program


@dataclass(slots=True)
class Found:
    """
    The commands that a text may run.
    """

    commands: list[Command] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """The same of plain text, to be run without a shell."""
    unreadable: Fault | None = None
    not_plain: Fault | None = None
    """Why an allow list cannot be held against it."""
    undecidable: str | None = None
    """A command that would run, and that nobody can see before it does."""
    fork_bomb: bool = False


def plain(word: str) -> str:
    """
    Returns *word* as a path without `//`, `.` and `..`, and without a last `/*`: all in a directory is the directory.
    """
    if "/" not in word and not word.startswith(("~", ".")):
        return "." if word == "*" else word
    start = "/" if word.startswith("/") else ""
    given = word.split("/")
    while len(given) > 1 and given[-1] in _ALL_OF:
        given.pop()
    parts: list[str] = []
    for part in given:
        if part == ".." and parts and parts[-1] not in ("..", "~"):
            parts.pop()
        elif part not in ("", ".") and (part != ".." or not start):
            parts.append(part)
    if parts[:2] == ["~", ".."]:
        # A home directory is two levels down at the most that matter: `~/../..` is the root, `~/..` all homes.
        return "/" if parts[2:3] == [".."] else "/home"
    return start + "/".join(parts) or start or "."


def under(folder: str, word: str) -> str:
    """
    Returns *word* as seen from *folder*.
    """
    return plain(word if word.startswith(("/", "~")) else f"{folder}/{word}")
