"""
The effects of a script of the language, as an allow list checks them: programs, files, variables, and the folder of
each.
"""

import posixpath

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from guardrails.core.commands.found import Command as Started
from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.grammar.syntax import NotListedError, UnreadableError
from guardrails.core.commands.plain.run import started_by

from .tree import Change, Command, Group, Redirection, Script, Stage, Word


MAX_FOLDERS: Final = 8
NULL: Final = "/dev/null"
TOP: Final = "."
"""The workspace, as a folder."""


class OutsideError(NotListedError):
    """
    A `cd` or a redirection that leads out of the workspace.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    A program that would run, with those that it starts.
    """

    words: tuple[str, ...]
    """As they are written, unquoted."""
    commands: tuple[Started, ...]
    """Itself and what it starts; `UNKNOWN` stands for what only the running command knows."""
    folders: tuple[str, ...]
    """Where it may run: from the workspace, or absolute."""
    reads: tuple[str, ...]
    """Files that `<` gives it, as they are written."""


@dataclass(slots=True)
class Judged:
    """
    All that a script would do.
    """

    runs: list[Run] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    """Files that redirections write: from the workspace, normalised, or absolute."""
    variables: list[str] = field(default_factory=list)
    """`NAME=value` before a command."""
    absolute: list[str] = field(default_factory=list)
    """Paths of `cd` and redirections that only who knows where the workspace is can judge."""
    doubts: list[str] = field(default_factory=list)
    """Commands that would run, and that nobody can see before they do."""


def judged(script: Script) -> Judged:
    """
    Returns the effects of *script*.

    Raises OutsideError if the script leaves the workspace. Raises NotPlainError if one of its programs gives a shell
    text that is not in the plain form. Raises UnreadableError if nobody can say what it runs.
    """
    found = Judged()
    _script(found, script, frozenset({TOP}), (), piped=False)
    return found


def under(folder: str, path: str) -> str:
    """
    Returns *path* as seen from the workspace, if it is written in *folder*. Raises OutsideError if it leads out.
    """
    joined = posixpath.normpath(posixpath.join(folder, path))
    if joined.split("/")[0] == "..":
        raise OutsideError(
            f"`{path[:80]}` is outside the workspace", "name a file or folder of the workspace, from where you are"
        )
    return joined


def _script(found: Judged, script: Script, folders: AbstractSet[str], given: tuple[str, ...], *, piped: bool) -> None:
    """
    Note what *script* does, whose commands may read the files *given* to a group around them.
    """
    # Where the last command succeeded, and where it failed.
    passed, failed = frozenset(folders), frozenset[str]()
    for step in script.steps:
        start = passed if step.sign == "&&" else failed if step.sign == "||" else passed | failed
        start = start or passed | failed
        behind = start
        for place, stage in enumerate(step.stages):
            if isinstance(stage, Change):
                if given:
                    # Its name would be another one there.
                    raise UnreadableError(
                        "a group that is given a file goes to another folder",
                        "give the file to the command that reads it",
                    )
                _redirections(found, stage.redirections, start)
                behind = _moved(start, stage.folder)
                found.absolute += [folder for folder in behind if folder.startswith("/")]
            else:
                _stage(found, stage, start, () if place else given, piped=piped or place > 0)
        passed, failed = (
            behind | (passed if step.sign == "||" else frozenset()),
            start | (failed if step.sign == "&&" else frozenset()),
        )
        if len(passed | failed) > MAX_FOLDERS:
            raise UnreadableError(
                f"it may run in more than {MAX_FOLDERS} folders", "write `( cd FOLDER && command )` for each"
            )


def _moved(folders: AbstractSet[str], folder: str) -> frozenset[str]:
    try:
        return frozenset(under(each, folder) for each in folders)
    except OutsideError as error:
        if len(folders) == 1:
            raise
        raise OutsideError(
            f"{error} if a `cd` before it fails",
            "write `&&` behind each `cd`, so that nothing runs elsewhere if it fails",
        ) from None


def _stage(found: Judged, stage: Stage, folders: AbstractSet[str], outer: tuple[str, ...], *, piped: bool) -> None:
    given = [each for each in stage.redirections if each.handle == 0]
    reads = (*(() if given else outer), *_redirections(found, stage.redirections, folders))
    if isinstance(stage, Group):
        _script(found, stage.script, folders, reads, piped=piped or bool(given))
    elif isinstance(stage, Command):
        found.variables += [f"{name}={value}" for name, value in stage.assignments]
        stdin = UNKNOWN if piped else None
        if given:
            stdin = given[-1].target.strip("\n") if given[-1].kind == "text" else UNKNOWN
        globs = frozenset(place for place, word in enumerate(stage.words) if not word.is_fixed)
        started = started_by([known(word) for word in stage.words], stdin)
        if started.commands:
            started.commands[0].globs = globs
        found.doubts += started.doubts
        found.runs.append(
            Run(
                words=tuple(word.text for word in stage.words),
                commands=tuple(started.commands),
                folders=tuple(sorted(folders)),
                reads=reads,
            )
        )


def _redirections(found: Judged, redirections: tuple[Redirection, ...], folders: AbstractSet[str]) -> list[str]:
    """
    Note what *redirections* write. Returns the files that they read, as they are written.
    """
    reads = []
    for each in redirections:
        if each.kind in ("&", "text") or each.target == NULL:
            continue
        places = [under(folder, each.target) for folder in sorted(folders)]
        found.absolute += [place for place in places if place.startswith("/")]
        if each.kind == "<":
            reads.append(each.target)
        else:
            found.writes += places
    return reads


def known(word: Word) -> str:
    """
    Returns *word* with `UNKNOWN` for patterns of names of files.
    """
    return "".join(part if isinstance(part, str) else UNKNOWN for part in word.parts)
