"""
Commands that a rule speaks of: `git push --force`, `rm -r * {/,~}`, `curl * | sh`, `> /dev/sd*`, `LD_PRELOAD=*`.

A word that is `*` alone stands for any number of words, also zero. Inside a word `*` and `?` stand for what is no `/`,
`**` for anything, `{a,b}` for either. A rule that forbids names flags in any order, merged or long, and any words may
follow. A rule that allows is the whole command, word by word.
"""

import shlex

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrails.core.commands.grammar.paths import plain, under
from guardrails.core.commands.grammar.scope import UNKNOWN

from .globs import Word, may_be


if TYPE_CHECKING:
    from .found import Command

ANY: Final = "*"
_MERGED: Final = 5
"""A single dash and more letters than four is one flag, as find and java have them."""
_LONG: Final = {"-r": "--recursive", "-f": "--force"}
"""The meaning of these two in every program that has them both."""
_GLOB: Final = frozenset("*?[")
_NAMED: Final = frozenset("*?[/")
"""Signs that make the program of a rule more than a name."""
_MAX_RULE: Final = 4_096
_MAX_STAGES: Final = 64


class Rule(NamedTuple):
    """
    A command that is spoken of, and those that are piped into it.
    """

    text: str
    stages: tuple[tuple[Word, ...], ...]


@lru_cache(maxsize=4096)
def rule(text: str) -> Rule:
    """
    Returns *text* as a rule. Raises ValueError if the text is no rule, or longer than 4,096 characters.
    """
    if len(text) > _MAX_RULE:
        raise ValueError(f"`{text[:40]}...` has {len(text):,} characters (limit {_MAX_RULE:,})")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"`{text}` is no command: {str(error).lower()}") from None
    stages: list[list[Word]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(Word(word))
    if not all(stages):
        raise ValueError(f"`{text}` is no command: a word is missing")
    return Rule(text, tuple(map(tuple, stages)))


class Rules:
    """
    Rules that forbid, by the programs that they speak of.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._rules = [rule(text) for text in texts]
        self._named: dict[str, list[int]] = {}
        self._others: list[int] = []
        for number, each in enumerate(self._rules):
            program = each.stages[-1][0]
            if any(not _NAMED.isdisjoint(option) for option in program.options):
                self._others.append(number)
                continue
            for option in program.lowered:
                self._named.setdefault(option, []).append(number)

    def broken(self, commands: "Iterable[Command]") -> "tuple[Command, Rule] | None":
        """
        Returns the first of *commands* that a rule speaks of, and that rule. The rest of the command does not matter.
        Each stands behind what is piped into it.
        """
        for command in commands:
            numbers = self._named.get(command.base.lower(), [])
            words: _Words | None = None
            for number in sorted({*numbers, *self._others}) if numbers else self._others:
                each = self._rules[number]
                if not _speaks(each.stages[-1], command):
                    continue
                words = words or _Words(command)
                if words.fit(each.stages[-1]) and _piped(each.stages[:-1], command):
                    return command, each
        return None


rules = lru_cache(maxsize=64)(Rules)
"""The rules of these texts, which forbid; the same again for the same texts. Raises ValueError if one is no rule."""


def forbids(rule: Rule, command: "Command") -> bool:
    """
    Returns whether *rule* speaks of *command*; the rest of the command does not matter.
    """
    return Rules([rule.text]).broken([command]) is not None


def _speaks(stage: Sequence[Word], command: "Command") -> bool:
    """
    Returns whether *stage* of a rule speaks of the program of *command*.
    """
    return stage[0].loose.fullmatch(command.program if "/" in stage[0].text else command.base) is not None


def _piped(stages: Sequence[Sequence[Word]], command: "Command") -> bool:
    """
    Returns whether what is piped into *command* has all *stages*, one behind the other; only so far back is looked.
    """
    earlier, left = command.previous, list(stages)
    for _ in range(_MAX_STAGES):
        if earlier is None or not left:
            break
        if _speaks(left[-1], earlier) and _Words(earlier).fit(left[-1]):
            left.pop()
        earlier = earlier.previous
    return not left


class _Words:
    """
    The words of a command behind its program: flags, and operands in the forms that a rule may name them by.
    """

    def __init__(self, command: "Command") -> None:
        self._flags, operands = _parts(command.words[1:])
        self._operands = [_Operand(operand, command.directories) for operand in operands]

    def fit(self, stage: Sequence[Word]) -> bool:
        """
        Returns whether *stage* of a rule speaks of them.
        """
        left: list[list[Word]] = [[]]
        for word in stage[1:]:
            if _is_flag(word.options[0]):
                if not any(_has(flag, self._flags) for flag in word.options):
                    return False
            elif word.text == ANY:
                left.append([])
            else:
                left[-1].append(word)
        at = 0
        for number, words in enumerate(left):
            # Behind a `*` the first place will do: what follows may be anything.
            last = len(self._operands) - len(words)
            starts = range(at, min(at, last) + 1) if number == 0 else range(at, last + 1)
            found = next((start for start in starts if self._fit_at(start, words)), None)
            if found is None:
                return False
            at = found + len(words)
        return True

    def _fit_at(self, start: int, words: Sequence[Word]) -> bool:
        return all(self._operands[start + number].fits(word) for number, word in enumerate(words))


def _parts(words: Sequence[str]) -> tuple[set[str], list[str]]:
    """
    Returns the flags among *words*, lowercase, one by one; and the other words.
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
        self._forms = {under(one, known) for one in directories if UNKNOWN not in one}
        if plain(known) not in (".", "..") or not self._forms:
            self._forms |= {known, plain(known)}
        self._partial = known != text
        if not known:
            # Of what is not known at all nothing is said.
            self._forms = {""}
        # `/b*` is `/bin`, among others.
        self._globs = [each for each in self._forms if each.startswith(("/", "~")) and not _GLOB.isdisjoint(each)]

    def fits(self, word: Word) -> bool:
        """
        Returns whether *word* speaks of the place. If a variable in the place may be empty, only the part that *word*
        names in full counts. `"$DIR/"` may be the root; `"$DIR/build"` is no folder of the root.
        """
        if self._partial:
            return any(form.lower() in word.lowered for form in self._forms)
        if any(map(word.loose.fullmatch, self._forms)):
            return True
        return any(may_be(form, option) for form in self._globs for option in word.options)


def _is_flag(text: str) -> bool:
    return text.startswith("-") and len(text) > 1
