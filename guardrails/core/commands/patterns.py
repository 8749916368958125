"""
Commands that a rule speaks of: `git push --force`, `rm -r * {/,~}`, `curl * | sh`, `> /dev/sd*`, `LD_PRELOAD=*`.

A word that is `*` alone stands for any words, also none. Inside a word `*` and `?` stand for what is no `/`, `**` for
anything, `{a,b}` for either. A rule that forbids names flags in any order, merged or long, and what follows may be anything;
one that allows is the whole command, word by word.
"""

import posixpath
import re
import shlex

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrails.core.commands.grammar.escapes import braces, unquoted
from guardrails.core.commands.grammar.paths import plain, under
from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.plain.unmatched import unmatched


if TYPE_CHECKING:
    from .found import Command

ANY: Final = "*"
_SIGNS: Final = ("<", ">")
_MERGED: Final = 5
"""A single dash and more letters than four is one flag, as find and java have them."""
_PROGRAM_FOLDERS: Final = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
_LONG: Final = {"-r": "--recursive", "-f": "--force"}
"""What these two mean to every program that has them both."""
_GLOB: Final = frozenset("*?[")
_STARS: Final = {"**": ".*", "*": "[^/]*"}


class Word(NamedTuple):
    """
    One word of a rule: what it may be.
    """

    text: str
    options: tuple[str, ...]
    loose: re.Pattern[str]
    """Blind to case."""
    exact: re.Pattern[str]


class Rule(NamedTuple):
    """
    A command that is spoken of, and those that are piped into it.
    """

    text: str
    stages: tuple[tuple[Word, ...], ...]


@lru_cache(maxsize=4096)
def rule(text: str) -> Rule:
    """
    *text* as a rule. Raises ValueError where it is none.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"`{text}` is no command: {str(error).lower()}") from None
    stages: list[list[Word]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(_word(word))
    if not all(stages):
        raise ValueError(f"`{text}` is no command: a word is missing")
    return Rule(text, tuple(map(tuple, stages)))


def forbids(rule: Rule, command: "Command") -> bool:
    """
    Whether *command* is one that *rule* speaks of, whatever else it does.
    """
    if not _forbids(rule.stages[-1], command):
        return False
    earlier = command.previous
    for stage in reversed(rule.stages[:-1]):
        while earlier is not None and not _forbids(stage, earlier):
            earlier = earlier.previous
        if earlier is None:
            return False
        earlier = earlier.previous
    return True


def allows(rule: Rule, command: "Command", *, by_argv: bool = False, folder: str = ".") -> bool:
    """
    Whether *command* is just what *rule* says, word by word.

    With *by_argv* it is of a script that no shell reads, and may be a file that is written (`>`) or read (`<`), or a variable;
    without it only rules that are commands in the plain form say anything. In another *folder* of the workspace, what *rule*
    says with a `/` or a `*` in a word is said of the path from the workspace.
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
    fits = first in program.options if ".." in first.split("/") else any(map(program.exact.fullmatch, names))
    return fits and UNKNOWN not in first and _sequence(words, command.words[1:], folder)


def _forbids(stage: Sequence[Word], command: "Command") -> bool:
    program, *words = stage
    if not program.loose.fullmatch(command.program if "/" in program.text else command.base):
        return False
    flags, operands = _parts(command.words[1:])
    wanted = [word for word in words if _is_flag(word.options[0])]
    if not all(any(_has(flag, flags) for flag in word.options) for word in wanted):
        return False
    left = [word for word in words if word not in wanted]
    return _prefix(left, [_Operand(operand, command.directories) for operand in operands])


def _parts(words: Sequence[str]) -> tuple[set[str], list[str]]:
    """
    The flags among *words*, lowercase, one by one; and the other words.
    """
    flags, operands, over = set[str](), list[str](), False
    for word in words:
        text = word.replace(UNKNOWN, "")
        if over or not _is_flag(text):
            operands.append(word)
        elif text == "--":
            over = True
        else:
            name = text.partition("=")[0].lower()
            flags.add(name)
            flags.update(short for short, long in _LONG.items() if len(name) > 4 and long.startswith(name))
            if not name.startswith("--"):
                flags.update(f"-{letter}" for letter in name[1:])
            if "=" in text:
                operands.append(text.partition("=")[2])
    flags.update(long for short, long in _LONG.items() if short in flags)
    return flags, operands


def _has(flag: str, flags: set[str]) -> bool:
    flag = flag.lower()
    if flag.startswith("--"):
        # GNU programs take any beginning of a long flag that is clear.
        return any(flag == one or (len(one) > 3 and one.startswith("--") and flag.startswith(one)) for one in flags)
    if flag in flags:
        return True
    return 2 < len(flag) <= _MERGED and all(f"-{letter}" in flags for letter in flag[1:])


class _Operand:
    """
    A word of a command that is no flag, in all forms that a rule may name it by.
    """

    def __init__(self, text: str, directories: Sequence[str]) -> None:
        known = text.replace(UNKNOWN, "")
        self.forms = {under(one, known) for one in directories if UNKNOWN not in one}
        if plain(known) not in (".", "..") or not self.forms:
            self.forms |= {known, plain(known)}
        self.partial = known != text
        if not known:
            # Of what is not known at all nothing is said.
            self.forms = {""}

    def fits(self, word: Word) -> bool:
        """
        Whether *word* speaks of it. Where a variable in it may be empty, only what *word* names in full counts:
        `"$DIR/"` may be the root, `"$DIR/build"` is no folder of the root.
        """
        if self.partial:
            return any(form.lower() == option.lower() for form in self.forms for option in word.options)
        if any(map(word.loose.fullmatch, self.forms)):
            return True
        # `/b*` is `/bin`, among others.
        globs = [form for form in self.forms if form.startswith(("/", "~")) and not _GLOB.isdisjoint(form)]
        return any(fnmatchcase(option, form) for form in globs for option in word.options)


def _prefix(words: Sequence[Word], operands: Sequence[_Operand]) -> bool:
    if not words:
        return True
    if words[0].text == ANY:
        return any(_prefix(words[1:], operands[start:]) for start in range(len(operands) + 1))
    return bool(operands) and operands[0].fits(words[0]) and _prefix(words[1:], operands[1:])


def _sequence(words: Sequence[Word], given: Sequence[str], folder: str) -> bool:
    at, here, after = 0, 0, None
    while here < len(given):
        if at < len(words) and words[at].text == ANY:
            # It takes no word at first, and one more each time that what is behind it does not fit.
            after, at = (at + 1, here), at + 1
        elif at < len(words) and _equals(words[at], given[here], folder):
            at, here = at + 1, here + 1
        elif after is not None:
            after = (after[0], after[1] + 1)
            at, here = after
        else:
            return False
    return all(word.text == ANY for word in words[at:])


def _equals(word: Word, text: str, folder: str) -> bool:
    # What is not known could be anything, and `src/*` is not `src/../..`.
    if UNKNOWN in text:
        return False
    if folder != "." and not {"/", "*", "?", "["}.isdisjoint(word.text):
        text = posixpath.normpath(posixpath.join(folder, text))
    return bool(word.exact.fullmatch(plain(text) if ".." in text.split("/") else text))


def _is_flag(text: str) -> bool:
    return text.startswith("-") and len(text) > 1


def _word(text: str) -> Word:
    options = tuple(braces(unquoted(text))) if "{" in text else (text,)
    pattern = "|".join(map(_regex, options))
    return Word(text, options, re.compile(pattern, re.IGNORECASE | re.DOTALL), re.compile(pattern, re.DOTALL))


def _regex(glob: str) -> str:
    parts = re.split(r"(\*\*|\*|\?|\[[^]]+\])", glob)
    stars = [place for place, part in enumerate(parts) if part in _STARS]
    made = _fixed(parts[: stars[0]]) if stars else _fixed(parts)
    for place, after in zip(stars, [*stars, len(parts)][1:], strict=True):
        star, fixed = _STARS[parts[place]], _fixed(parts[place + 1 : after])
        later = {parts[each] for each in stars if each > place}
        # If what is behind it reaches as far, the first place of *fixed* will do: the others would cost a power of the length.
        made += f"(?>{star}?{fixed})" if later and (parts[place] == ANY or ANY not in later) else f"{star}{fixed}"
    return made


def _fixed(parts: Sequence[str]) -> str:
    return "".join(
        "[^/]" if part == "?" else part if part.startswith("[") and part.endswith("]") else re.escape(part)
        for part in parts
    )
