"""
The syntax tree of a command, as tree-sitter's grammar of bash reads it, and its plain form.
"""

import re

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.values.errors import needs


if TYPE_CHECKING:
    from tree_sitter import Node


UNKNOWN: Final = "\0"
"""A piece of text that nobody knows before the command runs; no command holds a NUL."""
Step = tuple[str, list[list[str]]]
"""`;`, `&&` or `||`, and behind it commands that are piped into each other, each as its words."""
Operand = tuple[bool, list[str]]
"""Whether a part of a word is not known, and the forms that a rule may name it by."""
SHORT: Final = {"--recursive": "-r", "--force": "-f"}
"""The meaning of these two in every program that has them both."""
MOST: Final = 512
"""Options of one word, and characters of a command's word that a rule which forbids looks at."""
_ALL_OF: Final = frozenset({"", "*", "**", ".*", ".[!.]*", "{*,.*}", "?*", "*.*"})


class Fault(NamedTuple):
    """
    A reason, as a clause, and what to write instead if that is known.
    """

    reason: str
    advice: str = ""


class UnreadableError(Exception):
    """
    A command that cannot be read: the reason, and what to write instead.
    """


@dataclass(frozen=True, eq=False)
class Command:
    """
    One command that would run.
    """

    words: tuple[str, ...]
    """Expanded, the program first; `(">", FILE)` is a file that is written, `("NAME=value",)` an assignment."""
    folder: str = "."
    """Where it runs: `.` is where the whole command starts, `~` the home directory."""
    before: "Command | None" = None
    """The command that is piped into it."""

    @cached_property
    def program(self) -> str:
        """
        The first word as far as it is known, lowercase.
        """
        return self.words[0].replace(UNKNOWN, "").lower()

    @cached_property
    def name(self) -> str:
        """
        The program without its folder; an assignment as a whole.
        """
        text = self.program if "=" in self.program else self.program.rpartition("/")[2]
        return text.removesuffix(".exe") or self.program

    @cached_property
    def parts(self) -> tuple[set[str], list[Operand]]:
        """
        Its flags, lowercase, merged ones by each letter too, and its other words.
        """
        flags, operands, over = set[str](), list[Operand](), False
        for text in self.words[1:]:
            if over or not is_flag(text):
                operands.append(_operand(text, self.folder))
            elif text == "--":
                over = True
            else:
                name, _, value = text.lower().partition("=")
                flags |= {SHORT.get(name, name), *(f"-{char}" for char in name[1:] if name[1] != "-")}
                operands += [_operand(value, self.folder)] if value else []
        return flags, operands


def is_flag(text: str) -> bool:
    """
    Returns whether a word is a flag.
    """
    return text.startswith("-") and len(text) > 1


def _operand(text: str, folder: str) -> Operand:
    known = re.sub(r"\s+", " ", text.replace(UNKNOWN, ""))[:MOST]
    seen = [] if UNKNOWN in folder or not known else [under(folder, known)]
    if known and (plain(known) not in (".", "..") or not seen):
        seen += [known, plain(known)]
    return UNKNOWN in text, seen


@dataclass(slots=True)
class Contents:
    """
    The commands that a text may run.
    """

    commands: list[Command] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    """The texts that shells read of it."""
    unreadable: Fault | None = None
    unclear: Fault | None = None
    """A word of a program behind which nobody knows what the program starts."""
    undecidable: str | None = None
    """A command that would run, and that nobody can see before it does."""
    fork_bomb: bool = False

    @property
    def not_plain(self) -> Fault | None:
        """
        Why an allow list cannot be held against it.
        """
        faults = (fault for fault in map(plain_steps, self.scripts) if isinstance(fault, Fault))
        return next(faults, self.unclear)


def plain(word: str) -> str:
    """
    Returns *word* as a path without `//`, `.` and `..`, and without a last `/*`: all in a directory is the directory.
    """
    if "/" not in word and not word.startswith(("~", ".")):
        return "." if word == "*" else word
    given = word.split("/")
    while len(given) > 1 and given[-1] in _ALL_OF:
        given.pop()
    # A home directory is two levels down at the most that matter: `~/../..` is the root, `~/..` all homes.
    home = "/home/" if given[0] == "~" else ""
    path = normpath(home + "/".join(given) or "/").replace("//", "/")
    if not home or f"{path}/".startswith("/home/~/"):
        return path.removeprefix(home)
    return "/home" if path.startswith("/home") else "/"


def under(folder: str, word: str) -> str:
    """
    Returns *word* as seen from *folder*.
    """
    return plain(word if word.startswith(("/", "~")) else f"{folder}/{word}")


MAX_PARSED: Final = 16_384
"""Characters beside here-documents."""
HIDDEN: Final = "${__hidden}"
"""In place of a long here-document."""
_MOST: Final = {"`": 512, "$(": 256, "|": 1_024}
"""Signs that cost the parser the square of their number, even where nothing is wrong."""
_DOCUMENT: Final = re.compile(
    r"""(<<-?[ \t]*(?:'(\w+)'|"(\w+)"|\\?(\w+))[^\n]*\n)(.*?)(\n\t*(?:\2|\3|\4)(?=\n|$))""", re.DOTALL
)
_TOKEN: Final = re.compile(
    r""" *(?:(&&|\|\||;|\|)|(?!=|\d*[<>])((?:'[^']*'|"[^"$`\\]*"|[A-Za-z0-9@][~^]*+|[_./:,+%=-])++))"""
)
"""A sign between commands, or a word: plain characters, and quotes with nothing in them to expand."""
_PIECE: Final = re.compile("'([^']*)'|\"([^\"]*)\"|([^'\"]+)")
_NO_PROGRAM: Final = re.compile(
    r"""\w+\+?=.*|if|then|elif|else|fi|for|while|until|select|do|done|case|esac|function|time|coproc
|declare|typeset|export|readonly|local|unset|unsetenv""".replace("\n", "")
)
"""What begins no command of words alone: an assignment, a word of the shell's own."""
_WORKED_OUT: Final = re.compile(r"\$\(|`")
"""In a variable's name some commands of a shell work that out between any quotes: `test -v 'x[$(id)]'`."""
_ADVICE: Final = """write each command out on one line, with `&&`, `||`, `|` or `;` between them; text with other signs goes between
single quotes; read and write files with a tool for files""".replace("\n", " ")


@lru_cache(maxsize=1)
def parsers() -> Any:
    """
    Returns what makes a parser. Raises MissingExtra without the extra.
    """
    with needs("shell", "reading commands"):
        import tree_sitter_bash

        from tree_sitter import Language, Parser

    return partial(Parser, Language(tree_sitter_bash.language()))


def parse(text: str) -> "tuple[Node, bytes]":
    """
    Returns the tree of *text*, and the bytes that its places are of. Raises UnreadableError if that is no valid bash or
    too long.
    """
    hidden = 0
    if _is_much(text) and HIDDEN not in text and len(text) * text.count("<<") < 1 << 28:
        text = _DOCUMENT.sub(_without_body, text)
        hidden = text.count(HIDDEN)
    if _is_much(text):
        size = f"beside here-documents it has {len(text):,} characters (limit {MAX_PARSED:,}), or too many signs"
        raise UnreadableError(size, "write a script file, and run it")
    source = text.encode()
    # It is given 32 bytes at a time, and comes back to a text without a fault about once.
    left = 64 + len(source) // 2

    def piece(at: int, _: object) -> bytes:
        nonlocal left
        left -= 1
        return source[at : at + 32] if left > 0 else b""

    root: Node = parsers()().parse(piece).root_node
    if root.has_error or left <= 0:
        raise UnreadableError(f"it is no valid command near `{_near(root, source)}`")
    # Text that only looked like a here-document was taken out all the same.
    bodies = (source[one.start_byte : one.end_byte] for one in leaves(root) if one.type == "heredoc_body")
    if hidden and hidden != sum(HIDDEN.encode() in body for body in bodies):
        raise UnreadableError("what looks like a here-document in it is none")
    return root, source


def leaves(root: "Node") -> "Iterator[Node]":
    """
    Returns the smallest nodes of the tree in their order; quoted text and here-documents are taken as a whole.
    """
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.child_count and node.type not in ("string", "heredoc_body"):
            waiting += reversed(node.children)
        else:
            yield node


def plain_steps(text: str) -> list[Step] | Fault:
    """
    Returns the commands of a valid *text* if it is plain, so that any shell reads it alike: words of plain characters, quotes
    with nothing in them to expand, and `|`, `&&`, `||`, `;` between commands. Returns what is not plain in it.
    """
    steps: list[Step] = []
    sign, at, text = ";", 0, text.rstrip(" ")
    while at < len(text):
        match = _TOKEN.match(text, at)
        joint, word = match.groups() if match else (None, None)
        odd = word and (not word.isprintable() or _WORKED_OUT.search(word.partition("[")[2]))
        none = _NO_PROGRAM.fullmatch(word) if sign and word else joint and sign
        if match is None or odd or none:
            rest = text[at:].lstrip(" ")
            shown = rest if len(rest) <= 40 else f"{rest[:40]}…"
            return Fault(f"`{shown}` is more than words, quotes, and `|`, `&&`, `||`, `;` between commands", _ADVICE)
        if sign == "|" and word:
            steps[-1][1].append([])
        elif sign and word:
            steps.append((sign, [[]]))
        if word:
            steps[-1][1][-1].append("".join(map("".join, _PIECE.findall(word))))
        sign, at = joint or "", match.end()
    return steps


def _is_much(text: str) -> bool:
    return len(text) > MAX_PARSED or any(text.count(sign) > most for sign, most in _MOST.items())


def _without_body(match: re.Match[str]) -> str:
    substitutes = match[4] and not match[1].lstrip("<- \t").startswith("\\") and re.search(r"\$[({]|`", match[5])
    return match[0] if substitutes else f"{match[1]}{HIDDEN}{match[6]}"


def _near(root: "Node", source: bytes) -> str:
    node = root
    while not node.is_error and (inner := next((child for child in node.children if child.has_error), None)):
        node = inner
    return " ".join(source[node.start_byte : node.end_byte].decode(errors="replace").split())[:40]
