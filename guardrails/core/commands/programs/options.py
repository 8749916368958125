"""
The words of a program, told apart by its listed options. An option that is not listed may take the next word, so behind
it nobody knows the role of a word.
"""

import difflib

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern

from .kinds import KINDS
from .rules import Listed, Rules
from .words import UnsafeError, Word, shown


_DIGITS: Final = pattern(r"-[0-9]+")
_COMPARED: Final = 40


@dataclass(slots=True)
class Read:
    """
    The parts of one command.
    """

    given: set[str] = field(default_factory=set)
    """Its options."""
    operands: list[Word] = field(default_factory=list)
    place: int = 0
    """Behind the last word that was read."""


def read(title: str, rules: Rules, words: Sequence[Word], *, in_front: bool = False, any_word: bool = False) -> Read:
    """
    Returns the options and operands of *words*, behind the program or subcommand *title*. Only those before the first
    operand, if it is *in_front*. With *any_word* a word that nobody knows may be an option.

    Raises UnsafeError for an option that is not listed, and for a value that is not of its kind.
    """
    found = Read()
    words = _unbundled(title, rules, words) if rules.old_bundle else words
    over = False
    while found.place < len(words):
        word = words[found.place]
        if word.text.startswith(UNKNOWN) and not word.glob and not over and not any_word:
            raise UnsafeError(
                f"what stands behind {shown(title)} is known only when it runs, and may be an option of it",
                f"write `--` behind the options of {shown(title)}",
            )
        if over or word.text == "-" or not word.text.startswith("-"):
            if in_front:
                break
            if word.text.startswith("-") and word.text != "-" and not any_word and not _is_pattern(rules, found):
                # Some programs look for options behind `--` as well.
                raise UnsafeError(
                    f"{shown(word.text)} behind {shown(title)} may be an option", "write `./` before the name of a file"
                )
            found.place += 1
            found.operands.append(word)
            continue
        found.place += 1
        if word.text == "--":
            over = True
        elif rules.numbers and _DIGITS.fullmatch(word.text):
            continue
        else:
            _option(title, rules, words, found, any_word=any_word)
    return found


def _is_pattern(rules: Rules, found: Read) -> bool:
    return rules.leading is not None and rules.leading.kind == "text" and not found.operands


def _option(title: str, rules: Rules, words: Sequence[Word], found: Read, *, any_word: bool) -> None:
    word = words[found.place - 1]
    text = word.text
    if UNKNOWN in text.partition("=")[0]:
        if not any_word:
            raise UnsafeError(f"an option of {shown(title)} is known only when it runs", "write it out")
        return
    if text.startswith("--") or not rules.bundled:
        name, given, value = text.partition("=")
        _take(title, rules, name, (value if given else None), words, found)
        return
    place = 1
    while place < len(text):
        name = f"-{text[place]}"
        listed = rules.options.get(name)
        if listed is not None and listed.takes == "flags":
            found.given.add(name)
            place += 1
        else:
            _take(title, rules, name, text[place + 1 :] or None, words, found)
            return


def _take(title: str, rules: Rules, name: str, value: str | None, words: Sequence[Word], found: Read) -> None:
    """
    Keep the option *name* with its *value*, None if its word holds none.
    """
    listed = rules.options.get(name)
    if listed is None:
        raise unlisted(title, rules, name)
    found.given.add(name)
    if listed.takes == "flags":
        if value is not None:
            raise UnsafeError(f"{shown(name)} of {shown(title)} takes no value", f"write {shown(name)}")
    elif value is not None:
        if listed.takes == "pairs":
            raise UnsafeError(f"{shown(name)} of {shown(title)} takes two words", "write each as a word")
        _check(title, name, listed.kind, value)
    elif listed.takes != "attached":
        for _ in range(2 if listed.takes == "pairs" else 1):
            _next(title, name, listed, words, found)


def _next(title: str, name: str, listed: Listed, words: Sequence[Word], found: Read) -> None:
    if found.place >= len(words):
        if listed.takes == "last":
            return
        raise UnsafeError(f"{shown(name)} of {shown(title)} lacks a value", f"write the value behind {shown(name)}")
    word = words[found.place]
    found.place += 1
    text = word.reading
    if text.startswith(UNKNOWN) or (text.startswith("-") and text != "-" and not _DIGITS.fullmatch(text)):
        # Some programs take it for the next option.
        raise UnsafeError(
            f"the value of {shown(name)} begins with `-`, or may",
            f"write it in the same word as {shown(name)}" + ("=" if name.startswith("--") else ""),
        )
    _check(title, name, listed.kind, text)
    if word.many:
        found.operands.append(word)


def _check(title: str, name: str, kind: str, text: str) -> None:
    try:
        KINDS[kind](text)
    except UnsafeError as error:
        raise UnsafeError(f"{shown(name)} of {shown(title)}: {error.reason}", error.advice) from None


def unlisted(title: str, rules: Rules, name: str) -> UnsafeError:
    # A beginning of a long one stands for it.
    long = name if name.startswith("--") and len(name) > len("--x") else None
    whole = [each for each in rules.options if long and each.startswith(long)]
    cut = next((each for each in rules.left_out if long and each.startswith(long)), name) if not whole else name
    reason = rules.left_out.get(name, rules.left_out.get(cut))
    if reason is not None:
        return UnsafeError(f"{shown(name)} of {shown(title)} {reason}", rules.instead or f"leave {shown(name)} out")
    near = whole or difflib.get_close_matches(name[:_COMPARED], rules.options, 1)
    if whole:
        advice = f"write {shown(min(whole))} out"
    elif near and len(name) > len("-x"):
        advice = f"leave it out; the nearest that is listed is {shown(near[0])}"
    else:
        advice = rules.instead or "leave it out"
    return UnsafeError(f"{shown(name)} is not among the options of {shown(title)} that only read", advice)


def _unbundled(title: str, rules: Rules, words: Sequence[Word]) -> Sequence[Word]:
    """
    Returns *words* with the letters of the first as options: `tf x v` is `-t -f x v`.
    """
    if not words or words[0].text.startswith("-"):
        return words
    if words[0].many or UNKNOWN in words[0].text:
        raise UnsafeError(f"the first word behind {shown(title)} may be options of it", "write the options out")
    made, rest = list[Word](), list(words[1:])
    for letter in words[0].text:
        made.append(Word(f"-{letter}"))
        listed = rules.options.get(f"-{letter}")
        if listed is not None and listed.takes == "valued":
            made += rest[:1]
            del rest[:1]
    return [*made, *rest]
