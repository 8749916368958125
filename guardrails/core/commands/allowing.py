"""
Commands that a rule of an allow list speaks of, word by word.
"""

import posixpath

from collections.abc import Sequence
from typing import Final

from guardrails.core.commands.grammar.paths import plain
from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.plain.unmatched import unmatched

from .found import Command
from .globs import Word, in_order
from .patterns import ANY, Rule


_PROGRAM_FOLDERS: Final = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
_SIGNS: Final = ("<", ">")


def allows(rule: Rule, command: "Command", *, by_argv: bool = False, folder: str = ".") -> bool:
    """
    Returns whether *command* is just what *rule* says, word by word.

    With *by_argv* the command is of a script that no shell reads. It may then also be a file that is written (`>`) or
    read (`<`), or a variable. Without *by_argv* only rules that are commands in the plain form apply. In another
    *folder* of the workspace, words of *rule* with a `/` or a `*` are read as paths from the workspace.
    """
    if len(rule.stages) > 1 or (not by_argv and unmatched(rule.text) is not None):
        return False
    program, *words = rule.stages[0]
    first = command.words[0]
    above, _, base = first.rpartition("/")
    if "/" not in program.text and above in _PROGRAM_FOLDERS:
        first = base
    if by_argv and (first in _SIGNS or "=" in first) and program.text[-1:] not in _SIGNS and "=" not in program.text:
        # `*` is any program, but no file and no variable.
        return False
    names = {first}
    if "/" in first and not first.startswith("/") and folder != ".":
        names = {posixpath.normpath(f"{folder}/{first}"), f"./{posixpath.normpath(f'{folder}/{first}')}"}
    # `x/../ls` is a file of this folder, and not the `ls` that a rule speaks of.
    climbs = ".." in first.split("/")
    fits = folder == "." and first in program.options if climbs else any(map(program.exact.fullmatch, names))
    return fits and UNKNOWN not in first and _sequence(words, command.words[1:], folder)


def _sequence(words: Sequence[Word], given: Sequence[str], folder: str) -> bool:
    return in_order(words, given, lambda word: word.text == ANY, lambda word, text: _equals(word, text, folder))


def _equals(word: Word, text: str, folder: str) -> bool:
    # What is not known could be anything, and `src/*` is not `src/../..`.
    if UNKNOWN in text:
        return False
    if folder != "." and not {"/", "*", "?", "["}.isdisjoint(word.text):
        text = posixpath.normpath(posixpath.join(folder, text))
    return bool(word.exact.fullmatch(plain(text) if ".." in text.split("/") else text))
