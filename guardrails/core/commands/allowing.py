"""
Commands that a rule of an allow list speaks of, word by word.
"""

from typing import Final

from guardrails.core.commands.grammar.paths import plain
from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.plain.unmatched import unmatched

from .found import Command
from .globs import Word, in_order
from .patterns import ANY, Rule


_PROGRAM_FOLDERS: Final = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})


def allows(rule: Rule, command: "Command") -> bool:
    """
    Returns whether *command* is just what *rule* says, word by word. Only rules that are commands in the plain form
    apply.
    """
    if len(rule.stages) > 1 or unmatched(rule.text) is not None:
        return False
    program, *words = rule.stages[0]
    first = command.words[0]
    above, _, base = first.rpartition("/")
    if "/" not in program.text and above in _PROGRAM_FOLDERS:
        first = base
    # `x/../ls` is a file of this folder, and not the `ls` that a rule speaks of.
    climbs = ".." in first.split("/")
    fits = first in program.options if climbs else program.exact.fullmatch(first)
    return bool(fits) and UNKNOWN not in first and in_order(words, command.words[1:], _is_any, _equals)


def _is_any(word: Word) -> bool:
    return word.text == ANY


def _equals(word: Word, text: str) -> bool:
    # What is not known could be anything, and `src/*` is not `src/../..`.
    return UNKNOWN not in text and bool(word.exact.fullmatch(plain(text) if ".." in text.split("/") else text))
