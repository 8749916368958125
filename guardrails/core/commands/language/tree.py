"""
A script after reading: steps of pipelines of commands. Only patterns in it are still to be expanded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


Sign = Literal[";", "&&", "||"]
Opened = Literal["<", ">", ">>"]
Kind = Literal["<", ">", ">>", "&", "text"]


@dataclass(frozen=True, slots=True)
class Glob:
    """
    A part of a word that stands for characters of names of files: `*`, `?` or `[a-z]`.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Word:
    """
    A word, unquoted.
    """

    parts: tuple[str | Glob, ...]
    """Text, and between it what stands for names of files."""

    @property
    def text(self) -> str:
        """
        The word itself, as it is if no file has a name that fits.
        """
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def is_fixed(self) -> bool:
        """
        Whether no part of it stands for names of files.
        """
        return not any(isinstance(part, Glob) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """
    The target of a handle of a command.
    """

    handle: int
    """0, 1 or 2."""
    kind: Kind
    """`<`, `>` and `>>` open a file; `&` is another handle; `text` is what the command reads, of a here-document."""
    target: str
    """The path as it is written, `1` or `2`, or the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """
    A program with its words.
    """

    words: tuple[Word, ...]
    """At least one; the first is fixed."""
    assignments: tuple[tuple[str, str], ...] = ()
    """Names and values of variables of this program only."""
    redirections: tuple[Redirection, ...] = ()
    """In the order of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    `cd`: the steps behind it run in *folder*.
    """

    folder: str
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    Steps between parentheses: a `cd` in them ends with them.
    """

    script: "Script"
    redirections: tuple[Redirection, ...] = ()


Stage = Command | Change | Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    A pipeline, and how it hangs on what ran before it.
    """

    sign: Sign
    stages: tuple[Stage, ...]
    """At least one; a `Change` stands alone."""
    timed: bool = False
    """`time`: how long it took is told on standard error."""


@dataclass(frozen=True, slots=True)
class Script:
    """
    All steps of a text; none for an empty one.
    """

    steps: tuple[Step, ...]


def to_data(script: Script) -> dict[str, Any]:
    """
    Returns *script* as plain JSON, for the program that runs it.

    It is `{"steps": [[sign, [stage, ...], timed], ...]}`. A stage is `{"words": [...], "assignments": [[name, value], ...]}`,
    `{"cd": folder}` or `{"steps": [...]}`, each also with `"redirections": [[handle, kind, target], ...]`. A word is a list of
    parts: text, or `[pattern]`.
    """
    return {"steps": [[step.sign, [_stage(stage) for stage in step.stages], step.timed] for step in script.steps]}


def _stage(stage: Stage) -> dict[str, Any]:
    redirections = [[each.handle, each.kind, each.target] for each in stage.redirections]
    if isinstance(stage, Change):
        return {"cd": stage.folder, "redirections": redirections}
    if isinstance(stage, Group):
        return {**to_data(stage.script), "redirections": redirections}
    return {
        "words": [_parts(word.parts) for word in stage.words],
        "assignments": [list(pair) for pair in stage.assignments],
        "redirections": redirections,
    }


def _parts(parts: Sequence[str | Glob]) -> list[str | list[str]]:
    return [part if isinstance(part, str) else [part.text] for part in parts]
