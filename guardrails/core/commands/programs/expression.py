"""
Expressions of find: tests, and actions that print.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern

from .kinds import KINDS
from .options import unlisted
from .rules import Program
from .words import UnsafeError, Word, shown


_LEVEL: Final = pattern(r"-O[0-3]")
_SIGNS: Final = frozenset("()!,")


def check_expression(program: Program, words: Sequence[Word]) -> Iterator[tuple[int, list[Word]]]:
    """
    Returns the commands that the expression *words* of *program* starts by `-exec`, each with the place where it
    begins.

    Raises UnsafeError for a test or an action that is not listed.
    """
    title, rules, place = program.name, program.rules, 0
    kind = "searched" if any(word.text == "-exec" for word in words) else rules.operands.kind
    while place < len(words):
        word = words[place]
        text = word.text
        place += 1
        if text.startswith(UNKNOWN) and not word.glob:
            raise UnsafeError(f"a word of {shown(title)} itself is known only when it runs", "write it out")
        if text in _SIGNS or _LEVEL.fullmatch(text):
            continue
        if text == "-exec":
            end = _end(words, place)
            inner = [_found(each) for each in words[place:end]]
            if words[end].text == "+":
                # As many files as there are.
                inner[-1] = inner[-1]._replace(glob=True)
            yield place, inner
            place = end + 1
            continue
        if not text.startswith("-"):
            KINDS[kind](word.reading)
            continue
        listed = rules.options.get(text)
        if listed is None or UNKNOWN in text or word.glob:
            raise unlisted(title, rules, text.replace(UNKNOWN, ""))
        if listed.takes == "valued":
            if place >= len(words) or words[place].many:
                # Where it finds several files, the others are words of the expression.
                raise UnsafeError(f"the word behind {shown(text)} is not clear", "put a pattern between single quotes")
            KINDS[listed.kind](words[place].text)
            place += 1


def _end(words: Sequence[Word], start: int) -> int:
    place = start
    while place < len(words) and words[place].text != ";":
        if words[place].text == "+" and words[place - 1].text == "{}" and place > start:
            return place
        place += 1
    if place >= len(words):
        raise UnsafeError("its `-exec` has no end", "end the command of `-exec` with `';'` or `'{}' +`")
    return place


def _found(word: Word) -> Word:
    """
    Returns *word* with what is found in place of `{}`: a path, which begins as the folder does where the search began.
    """
    text = word.text
    if text.startswith("{}"):
        text = f"./{text}"
    return Word(text.replace("{}", UNKNOWN), word.glob)
