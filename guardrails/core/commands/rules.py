"""
Commands that a rule speaks of: `git push --force`, `rm -r * {/,~}`, `curl * | sh`, `> /dev/sd*`, `LD_PRELOAD=*`.

A word that is `*` alone stands for any number of words, also zero. Inside a word `*` and `?` stand for what is no `/`,
`**` for anything, `{a,b}` for either. A rule that forbids is blind to case, names flags in any order, merged or long,
and any words may follow. A rule that allows is the whole command, word by word.
"""

import re
import shlex

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeVar

from guardrails.core.commands.syntax import MOST, SHORT, UNKNOWN, Command, Operand, is_flag, plain


_T = TypeVar("_T")
_BRACES: Final = re.compile(r"\{([^{},]*+(?:,[^{},]*+)++)\}")
_PART: Final = re.compile(r"\*\*?|\?|\[[^]]{1,100}\]|.", re.DOTALL)
_MEANING: Final = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
_MOST_WITH: Final = (16_384, 16_384, 512, 128)
"""Characters that are compared with a word of none, one, two, three stars: the time grows with a power of their number."""
_PROGRAM_FOLDERS: Final = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})


class Word:
    """
    One word of a rule: the *text* as it is written, and the *options* that its braces stand for.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.options = braces(text)
        self.globs = not {*"*?["}.isdisjoint(text)
        self.lowered = frozenset(option.lower() for option in self.options)
        stars = max(option.replace("**", "*").count("*") for option in self.options)
        if stars >= len(_MOST_WITH):
            raise ValueError(f"`{text[:40]}` has more than three stars in one word")
        self.most = _MOST_WITH[stars]
        shape = "|".join(_PART.sub(_meaning, option) for option in self.options)
        self.exact = re.compile(shape, re.DOTALL)
        self.loose = re.compile(shape, re.DOTALL | re.IGNORECASE)


Rule = tuple[tuple[Word, ...], ...]
"""A command that is spoken of, the last, and those that are piped into it, each as its words."""


def braces(text: str) -> list[str]:
    """
    Returns the words that `{a,b}` in *text* stand for.
    """
    words = [text]
    while len(words) < MOST and (match := _BRACES.search(words[0])):
        first = words.pop(0)
        words += [f"{first[: match.start()]}{one}{first[match.end() :]}" for one in match[1].split(",")]
    return words


@lru_cache(maxsize=4096)
def rule(text: str) -> Rule:
    """
    Returns *text* as a rule. Raises ValueError if the text is no rule.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"`{text}` is no command: {str(error).lower()}") from None
    stages: Rule = tuple(tuple(map(Word, stage)) for bar, stage in groupby(words, "|".__eq__) if not bar)
    if len(stages) <= words.count("|"):
        raise ValueError(f"`{text}` is no command: a word is missing")
    return stages


def broken(rules: Sequence[str], commands: Iterable[Command]) -> tuple[Command, str] | None:
    """
    Returns the first of *commands* that one of *rules* speaks of, and that rule. The rest of the command does not matter.
    """
    known = {text: rule(text) for text in rules}
    for command in commands:
        for text, stages in known.items():
            if _speaks(stages[-1], command) and _piped(stages[:-1], command.before):
                return command, text
    return None


def allows(rule: Rule, command: Command) -> bool:
    """
    Returns whether *command* is just what *rule* says, word by word.
    """
    program, *words = rule[0]
    first = command.words[0]
    above, _, base = first.rpartition("/")
    first = base if "/" not in program.text and above in _PROGRAM_FOLDERS else first
    # `x/../ls` is a file of this folder, and not the `ls` that a rule speaks of.
    fits = first in program.options if ".." in first.split("/") else program.exact.fullmatch(first)
    if not fits or len(rule) > 1 or UNKNOWN in first:
        return False
    return len(command.words) - 1 in _in_order(words, command.words[1:], _equals)


def _meaning(part: re.Match[str]) -> str:
    return _MEANING.get(part[0]) or (part[0] if part[0][1:] else re.escape(part[0]))


def _in_order(words: Sequence[Word], given: Sequence[_T], fits: Callable[[Word, _T], bool]) -> set[int]:
    """
    Returns how many of *given* stand for *words* one after the other: all numbers that are possible.
    """
    places = {0}
    for word in words:
        if word.text == "*":
            places = set(range(min(places), len(given) + 1)) if places else places
        else:
            places = {at + 1 for at in places if at < len(given) and fits(word, given[at])}
    return places


def _equals(word: Word, text: str) -> bool:
    # What is not known could be anything, and `src/*` is not `src/../..`.
    known = UNKNOWN not in text and len(text) <= word.most
    return known and bool(word.exact.fullmatch(plain(text) if ".." in text.split("/") else text))


def _piped(stages: Sequence[Sequence[Word]], before: Command | None) -> bool:
    left = list(stages)
    while left and before is not None:
        if _speaks(left[-1], before):
            left.pop()
        before = before.before
    return not left


def _speaks(stage: Sequence[Word], command: Command) -> bool:
    first = stage[0]
    program = (command.program if "/" in first.text else command.name)[:MOST]
    if program not in first.lowered and not (first.globs and first.loose.fullmatch(program[: first.most])):
        return False
    flags, operands = command.parts
    words = [word for word in stage[1:] if not is_flag(word.options[0])]
    options = (word.lowered for word in stage[1:] if is_flag(word.options[0]))
    return all(any(_has(flag, flags) for flag in each) for each in options) and bool(_in_order(words, operands, _fits))


def _fits(word: Word, operand: Operand) -> bool:
    partial, forms = operand
    if partial:
        # A part that is not known may be empty: `"$DIR/"` may be the root, if that is what the rule names.
        return any(form.lower() in word.lowered for form in forms)
    if any(word.loose.fullmatch(form[: word.most]) for form in forms):
        return True
    # `/b*` is `/bin`, among others.
    globs = [form for form in forms if form[0] in "/~" and not {*"*?["}.isdisjoint(form)]
    pairs = ((one, form) for form in globs for one in word.options if one.count("/") == form.count("/"))
    return any(fnmatchcase(one, form) for one, form in pairs)


def _has(flag: str, flags: set[str]) -> bool:
    flag = SHORT.get(flag, flag)
    # A single dash and more letters than four is one flag, as find and java have them.
    return flag in flags or (flag[1] != "-" and 2 < len(flag) <= 5 and all(f"-{char}" in flags for char in flag[1:]))
