"""
Command text in which every character is accounted for: the only form that an allow list is held against.

Words of plain characters, quotes with nothing in them to expand, and `|`, `&&`, `||`, `;` between commands. A list of
dangerous commands is never complete, but a list of harmless forms is. Text that is not on it is refused.
"""

import re

from typing import Final

from guardrails.core.commands.grammar.syntax import MAX_PARSED_BYTES, UnreadableError
from guardrails.core.values.late_pattern import pattern


Step = tuple[str, list[list[str]]]
"""`;`, `&&` or `||`, and behind it commands that are piped into each other, each as its words."""

_TOKEN: Final = pattern(
    r"""(?P<blank>[ ]+)
    |(?P<bare>(?:[A-Za-z0-9@][~^]+|[A-Za-z0-9_./:,+@%=-])+)
    |'(?P<single>[^']*)'
    |"(?P<double>[^"$`\\]*)"
    |(?P<sign>&&|\|\||[|;])""",
    re.VERBOSE,
)
_KEYWORDS: Final = frozenset(
    {"!", "[", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "end", "esac", "fi", "for"}
    | {"foreach", "function", "if", "in", "repeat", "select", "then", "time", "until", "while"}
)
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by Unicode's tables that show nothing."""

_ADVICE: Final = {
    "a substitution": "run the inner command by a call of its own and write its result here",
    "an expansion": "write the value itself; text that holds `$` goes between single quotes",
    "a redirection": "leave it out; read and write files with a tool for files",
    "a here-document": "write the text with a tool for files, and name the file here",
    "a group": "write the commands one after another, with `&&` or `;` between them",
    "a brace": "write each word out; a brace that is meant goes between single quotes",
    "a pattern": "name the files; a pattern that the program itself reads goes between single quotes",
    "a home directory": "write the path of the directory out",
    "a comment": "leave it out; `#` in a word goes between single quotes",
    "a backslash": "put what follows it between single quotes in its place",
    "a backslash between double quotes": "put the word between single quotes, where a backslash is itself",
    "a job in the background": "run it in the foreground; `&&` joins two commands",
    "a negation": "leave it out; `!` in a word goes between single quotes",
    "a circumflex": "put the word between single quotes",
    "a second line": "write all on one line, with `&&` or `;` between the commands",
    "a control or invisible character": "leave it out",
    "a character beyond ASCII that nothing quotes": "put the word between single quotes",
    "a quote that is never closed": "close it; an apostrophe goes between double quotes",
    "a missing command": "write one command before and one after each `|`, `&&` and `||`",
    "a word of the shell's own language": "write each command out, without loops and conditions; `test` stands for `[`",
    "a variable before a command": "leave it out, or write `env NAME=value command` if `env` is allowed",
    "no name of a program": "begin the command with the name of a program",
}
_SIGNS: Final = {
    "`": "a substitution",
    "$": "an expansion",
    "<": "a redirection",
    ">": "a redirection",
    "(": "a group",
    ")": "a group",
    "{": "a brace",
    "}": "a brace",
    "*": "a pattern",
    "?": "a pattern",
    "[": "a pattern",
    "]": "a pattern",
    "~": "a home directory",
    "#": "a comment",
    "\\": "a backslash",
    "&": "a job in the background",
    "!": "a negation",
    "^": "a circumflex",
    "'": "a quote that is never closed",
    "\n": "a second line",
    "\r": "a second line",
}
_LONGER: Final = {
    "$(": "a substitution",
    "<(": "a substitution",
    ">(": "a substitution",
    "<<": "a here-document",
    "&>": "a redirection",
    "\\\n": "a second line",
    "\\\r": "a second line",
}


class NotPlainError(UnreadableError):
    """
    Text that is not in the plain form: which *kind* of thing stands at which *place*, and what to write instead.
    """

    def __init__(self, kind: str, place: int, within: str = "it") -> None:
        super().__init__(
            f"character {place + 1} of {within} is {kind}" if kind != "a missing command" else "a command is missing",
            _ADVICE[kind],
        )
        self.kind = kind
        self.place = place


def steps(text: str) -> list[Step]:
    """
    Returns the commands of *text*, with their words as any shell splits them.

    Raises NotPlainError for the first character that is not in the form, UnreadableError for more than 16 KiB.
    """
    if len(text) > MAX_PARSED_BYTES:
        raise UnreadableError(f"it has {len(text):,} characters (limit {MAX_PARSED_BYTES:,})")
    found: list[Step] = []
    words: list[str] = []
    word: str | None = None
    sign, begin, place = ";", 0, 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise _fault(text, place, first=word is None and not words)
        kind, said = str(token.lastgroup), str(token[str(token.lastgroup)])
        if kind in ("blank", "sign"):
            _ended(word, words, begin)
            word = None
        else:
            if kind != "bare":
                _seen(said, place + 1)
            begin, word = (place, said) if word is None else (begin, word + said)
        if kind == "sign":
            _keep(words, sign, found, place)
            words, sign = [], said
        place = token.end()
    _ended(word, words, begin)
    if words or sign != ";":
        _keep(words, sign, found, place)
    return found


def _ended(word: str | None, words: list[str], begin: int) -> None:
    """
    Put *word*, if there is one, behind *words*; the first is a program.
    """
    if word is None:
        return
    if not words:
        if word in _KEYWORDS:
            raise NotPlainError("a word of the shell's own language", begin)
        if "=" in word:
            raise NotPlainError("a variable before a command", begin)
        if not word or word.startswith("%"):
            raise NotPlainError("no name of a program", begin)
    words.append(word)


def _keep(words: list[str], sign: str, found: list[Step], place: int) -> None:
    if not words:
        raise NotPlainError("a missing command", place)
    if sign == "|":
        found[-1][1].append(words)
    else:
        found.append((sign, [words]))


def _seen(quoted: str, start: int) -> None:
    if quoted.isprintable() and _UNSEEN.isdisjoint(quoted):
        return
    for place, char in enumerate(quoted, start):
        if not char.isprintable() or char in _UNSEEN:
            raise NotPlainError(_SIGNS.get(char, "a control or invisible character"), place)


def _fault(text: str, place: int, *, first: bool) -> NotPlainError:
    char = text[place]
    if char == '"':
        # What ends the plain part of it is what is wrong with it.
        end = place + 1
        while end < len(text) and text[end] not in "$`\\":
            end += 1
        if end == len(text):
            return NotPlainError("a quote that is never closed", place)
        found = _fault(text, end, first=False)
        return NotPlainError("a backslash between double quotes", end) if found.kind == "a backslash" else found
    if first and char == "[":
        return NotPlainError("a word of the shell's own language", place)
    named = _LONGER.get(text[place : place + 2]) or _SIGNS.get(char)
    if named is None:
        seen = char.isprintable() and char not in _UNSEEN
        named = "a character beyond ASCII that nothing quotes" if seen else "a control or invisible character"
    return NotPlainError(named, place)
