"""
The judgement whether a command only reads and starts no other, by the rules of its program.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from guardrails.core.commands.grammar.scope import UNKNOWN

from .expression import check_expression
from .files import program
from .kinds import KINDS
from .options import Read, read
from .rules import ALSO, NAMES, Rules
from .words import UnsafeError, Word, shown


_PROGRAM_FOLDERS: Final = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/")
_MAX_NESTED: Final = 5


class Refused(NamedTuple):
    """
    The reason, as a clause, why a command is not known to read only; and the text to write in its place, or "".
    """

    reason: str
    advice: str = ""


class Prepared(NamedTuple):
    """
    A command that reads only, as our own executor starts it, so that no settings of a repository start anything either.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]


def reads_only(
    words: Sequence[str], globs: AbstractSet[int] = frozenset(), *, among: Collection[str] = NAMES
) -> Refused | None:
    """
    Returns why the command *words*, the program first, is not known to only read, by the rules of the programs *among*.
    Returns None if it does.

    `UNKNOWN` in a word stands for text that only the running command knows. The words at the places *globs* are patterns: each
    is what it finds, any number of words of which none begins with `-`.
    """
    try:
        _judged([Word(text, glob=place in globs) for place, text in enumerate(words)], among, 0)
    except UnsafeError as error:
        return Refused(error.reason, error.advice)
    return None


def program_of(words: Sequence[str]) -> str | None:
    """
    Returns the name of the rules that speak of the command *words*. Returns None if there are none.
    """
    return _named(words)[0]


def prepared(words: Sequence[str], globs: AbstractSet[int] = frozenset()) -> Prepared:
    """
    Returns *words* with the options and variables that our own executor adds, if the command only reads. Returns
    *words* themselves and no variables if it may do more.
    """
    try:
        places = _judged([Word(text, glob=place in globs) for place, text in enumerate(words)], NAMES, 0)
    except UnsafeError:
        return Prepared(tuple(words), {})
    made, environment = list(words), dict[str, str]()
    for begin, behind, rules in reversed(places):
        made[behind:behind] = rules.added
        name, _ = _named(words[begin:])
        if name is not None:
            environment |= program(name).environment
    return Prepared(tuple(made), environment)


_Place = tuple[int, int, Rules]
"""Where a command begins, where its own options do, and the rules for these."""


def _named(words: Sequence[str]) -> tuple[str | None, int]:
    """
    Returns the name of the rules for *words*, and how many words name it.
    """
    if not words:
        return None, 0
    folder, sign, base = words[0].rpartition("/")
    first = base if f"{folder}{sign}" in _PROGRAM_FOLDERS else words[0]
    for count in (1, 3):
        said = " ".join((first, *words[1:count]))
        name = ALSO.get(said, said)
        if name in NAMES:
            return name, count
    return None, 0


def _judged(words: Sequence[Word], among: Collection[str], depth: int) -> list[_Place]:
    texts = [word.text for word in words[:3]]
    name, start = _named(texts)
    if name is None or name not in among or any(word.glob for word in words[:start]):
        title = shown(texts[0].replace(UNKNOWN, "…")) if texts else "nothing"
        raise UnsafeError(f"there are no rules for {title}", "")
    if depth > _MAX_NESTED:
        raise UnsafeError("it starts commands that start commands", "start the last of them by itself")
    said = program(name)
    if said.style == "words":
        for place, word in enumerate(words[start:]):
            reason = said.rules.left_out.get(word.text[:2]) if place == 0 else None
            if reason is not None:
                raise UnsafeError(f"{shown(word.text)} of {shown(name)} {reason}", f"leave {shown(word.text)} out")
            KINDS[said.rules.operands.kind](word.reading)
        return [(0, start, said.rules)]
    if said.style == "find":
        places = [
            (start + begin + at, start + begin + behind, rules)
            for begin, inner in check_expression(said, words[start:])
            for at, behind, rules in _judged(inner, among, depth + 1)
        ]
        return [(0, start, said.rules), *places]
    if said.style == "starts":
        found = read(name, said.rules, words[start:], in_front=True)
        begin = start + found.place + _own_operands(name, said.rules, words[start + found.place :])
        inner = _with_piped(found, words, begin) if name == "xargs" else words[begin:]
        if name == "xargs" and len(words) == begin:
            return [(0, start, said.rules)]
        places = [(begin + at, begin + behind, rules) for at, behind, rules in _judged(inner, among, depth + 1)]
        return [(0, start, said.rules), *places]
    return [_sub(name, said.rules, words, start, any_word=said.any_word)]


def _sub(title: str, rules: Rules, words: Sequence[Word], start: int, *, any_word: bool) -> _Place:
    """
    Judge *words* from *start* on, behind the program or subcommand *title*.
    """
    found = read(title, rules, words[start:], in_front=bool(rules.subcommands), any_word=any_word)
    if rules.subcommands:
        place = start + found.place
        if place < len(words):
            name = words[place].text
            if name not in rules.subcommands or words[place].glob:
                names = ", ".join(f"`{each}`" for each in rules.subcommands)
                reason = rules.left_out.get(name, "is not one of those that only read")
                raise UnsafeError(
                    f"{shown(f'{title} {name}'.replace(UNKNOWN, '…'))} {reason}", f"those that do are {names}"
                )
            return _sub(f"{title} {name}", rules.subcommands[name], words, place + 1, any_word=any_word)
        if not rules.alone:
            names = ", ".join(f"`{title} {each}`" for each in rules.subcommands)
            raise UnsafeError(f"{shown(title)} by itself may do more than read", f"write {names}")
    else:
        _check_operands(title, rules, found)
    for group in rules.required:
        if found.given.isdisjoint(group):
            raise UnsafeError(
                f"{shown(title)} without {' or '.join(map(shown, sorted(group)))} may do more than read",
                rules.instead or f"give it {shown(max(group, key=len))}",
            )
    return 0, start, rules


def _check_operands(title: str, rules: Rules, found: Read) -> None:
    operands = rules.operands
    kinds = _kinds(rules, found)
    for word, kind in zip(found.operands, kinds, strict=False):
        try:
            KINDS[kind](word.reading)
        except UnsafeError as error:
            raise UnsafeError(f"{shown(title)}: {error.reason}", error.advice) from None
    if operands.only_with and found.operands and found.given.isdisjoint(operands.only_with):
        names = ", ".join(map(shown, sorted(operands.only_with)))
        raise UnsafeError(f"{shown(title)} with a name changes something", f"write one of {names} before the name")
    count = len(found.operands) + any(word.many for word in found.operands)
    if operands.most is not None and count > operands.most:
        raise UnsafeError(
            f"{shown(title)} takes at most {operands.most} words here that are no options",
            rules.instead or "leave the others out",
        )


def _kinds(rules: Rules, found: Read) -> Iterator[str]:
    leading = rules.leading
    if leading is not None and found.given.isdisjoint(leading.unless):
        yield leading.kind
    while True:
        yield rules.operands.kind


def _own_operands(name: str, rules: Rules, words: Sequence[Word]) -> int:
    """
    Returns how many of *words* are operands of the program *name* itself, before the command that it starts.
    """
    count = rules.operands.least
    if len(words) < count:
        raise UnsafeError(f"{shown(name)} lacks a word", "write it out")
    for word in words[:count]:
        KINDS[rules.operands.kind](word.reading)
        if word.many:
            raise UnsafeError(f"a word of {shown(name)} is known only when it runs", "write it out")
    return count


def _with_piped(found: Read, words: Sequence[Word], begin: int) -> list[Word]:
    """
    Returns the command that xargs starts: with a word that nobody knows behind it, or in place of what `-I` names.
    """
    if "-I" not in found.given:
        return [*words[begin:], Word(UNKNOWN)]
    places = [place for place in range(begin) if words[place].text.startswith("-I")]
    if len(places) == 1:
        sign = words[places[0]].text[2:] or words[places[0] + 1].text
        return [Word(word.text.replace(sign, UNKNOWN), word.glob) for word in words[begin:]]
    raise UnsafeError("what `xargs -I` puts in is not clear", "write `-I` and its sign as words of their own, once")
