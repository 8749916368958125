"""
The rules of one program: its options that only read, what their values and its operands may be.

An option that is not in the file is refused. `left_out` says of a known one why, and allows nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal


NAMES: Final = tuple(
    sorted(
        {"basename", "cat", "cmp", "comm", "cut", "date", "df", "diff", "dirname", "du", "echo", "false"}
        | {"file", "find", "git", "grep", "head", "jq", "ls", "md5sum", "nl", "nproc", "od", "paste"}
        | {"printf", "pwd", "pytest", "readlink", "realpath", "rg", "sed", "seq", "sha256sum", "sort", "stat"}
        | {"tac", "tail", "tar", "test", "timeout", "tr", "tree", "true", "uname", "uniq", "wc", "which"}
        | {"whoami", "xargs"}
    )
)
"""The programs that there are rules for."""
ALSO: Final[Mapping[str, str]] = {
    "[": "test",
    "egrep": "grep",
    "fgrep": "grep",
    "sha1sum": "sha256sum",
    "sha512sum": "sha256sum",
    "python -m pytest": "pytest",
    "python3 -m pytest": "pytest",
}
"""Other ways to start one of them."""
Style = Literal["options", "words", "find", "starts"]
"""How the words are read: options and operands; all as data; an expression; options, and a command behind them."""
Takes = Literal["flags", "valued", "attached", "last", "pairs"]
"""
The words that an option takes: none; the rest of its word or the next word; the rest of its word, or none; the next
word if there is one; two words.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """
    A listed option: what it takes, and of which kind that is.
    """

    takes: Takes
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """
    The words that are no options.
    """

    kind: str = "path"
    least: int = 0
    most: int | None = None
    only_with: frozenset[str] = frozenset()
    """Options without one of which there may be none; empty for no such condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leading:
    """
    The first operand, if it is of another kind than those behind it.
    """

    kind: str
    unless: frozenset[str] = frozenset()
    """Options behind any of which it is an operand as the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """
    The words that a program, or one of its subcommands, may be given.
    """

    options: Mapping[str, Listed] = field(default_factory=dict)
    numbers: bool = False
    """Whether a number may be an option: `-5`."""
    bundled: bool = True
    """Whether letters may stand side by side: `-la`."""
    old_bundle: bool = False
    """Whether the first word may be letters of options without a dash: `tar tf x`."""
    leading: Leading | None = None
    operands: Operands = field(default_factory=Operands)
    required: tuple[frozenset[str], ...] = ()
    """Groups of options, one of each of which must be there."""
    subcommands: "Mapping[str, Rules]" = field(default_factory=dict)
    alone: bool = False
    """Whether the subcommand may be left out."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Options that are known and not listed, and why."""
    instead: str = ""
    """The form to write, as an advice."""
    added: tuple[str, ...] = ()
    """Options that our own executor puts before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """
    The rules of the program *name*.
    """

    name: str
    does: str
    rules: Rules
    style: Style = "options"
    any_word: bool = False
    """Whether no word at all makes it write or start anything, so that words from a pipe may be options."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that our own executor sets for it."""
