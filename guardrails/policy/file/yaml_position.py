"""
Values with the places they were written at: sources, positions, mistakes and the tree of a YAML text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple


MAX_MISTAKES: Final = 200
"""Of one file that are told: each is put in words, and looked for among all keys."""
_SHOWN: Final = 60
_LINE_SHOWN: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """
    A text and the name it goes by in messages.
    """

    name: str
    lines: tuple[str, ...]


class Position(NamedTuple):
    """
    A place in a text; *line* and *column* count from 1, columns in characters.
    """

    source: Source
    line: int
    column: int


class Mistake(NamedTuple):
    """
    One mistake, and its place.
    """

    position: Position
    message: str

    def __str__(self) -> str:
        """
        `file:line:column: message`, then the source line with a caret below the place.

        Returns three lines that any terminal can show: each character that cannot be printed is replaced, a long line
        is cut around the place.
        """
        source, line, column = self.position
        text = source.lines[line - 1] if line <= len(source.lines) else ""
        start = max(0, column - 1 - _LINE_SHOWN // 2) if len(text) > _LINE_SHOWN else 0
        shown = text[start : start + _LINE_SHOWN]
        heading = f"{source.name}:{line}:{column}: {self.message}"

        return f"{_printable(heading)}\n    {_printable(shown)}\n    {' ' * (column - 1 - start)}^"


@dataclass(slots=True, eq=False)
class Node:
    """
    A value of the text. Aliases and merged trees share nodes: nothing changes one once it is read.
    """

    position: Position
    value: "str | int | float | bool | list[Node] | dict[str, Entry] | None"
    written: str = ""
    """A scalar as it was written, quoted text in double quotes."""
    block: bool = False
    """A collection spread over lines: messages about it point to its key."""
    broken: bool = False
    """A mistake was reported here, the value says nothing."""
    replaces: bool = False
    """A list of `tools:` that is tagged `!replace`."""
    weight: int = 1
    """Values in it, aliases written out."""
    height: int = 0
    """Collections inside each other, itself included."""


class Entry(NamedTuple):
    """
    A value with the place of its key (an item of a list and the root: with its own place).
    """

    key: Position
    node: Node

    @property
    def place(self) -> Position:
        """
        The place to point at if the value is wrong.
        """
        return self.key if self.node.block else self.node.position


def plain(node: Node) -> Any:
    """
    Returns the value of *node* without positions: dicts, lists and scalars.
    """
    if isinstance(node.value, dict):
        return {key: plain(entry.node) for key, entry in node.value.items()}

    if isinstance(node.value, list):
        return [plain(item) for item in node.value]

    return node.value


def numbered(rules: Iterable[Node]) -> Iterator[tuple[int, Node]]:
    """
    Returns the *rules* of a policy that several files make up, each with its number in its own file.
    """
    seen: Counter[Source] = Counter()
    for rule in rules:
        yield seen[rule.position.source], rule
        seen[rule.position.source] += 1


def quoted(text: str, shown: int = _SHOWN) -> str:
    """
    Returns *text* in backticks, cut after *shown* characters.
    """
    return f"`{text}`" if len(text) <= shown else f"`{text[:shown]}...`"


def _printable(text: str) -> str:
    if text.isprintable():
        return text

    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
