"""
The syntax tree of a command, as tree-sitter's grammar of bash reads it, and its plain form.
"""

import re

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import needs

from .found import Fault, Step, UnreadableError


if TYPE_CHECKING:
    from tree_sitter import Node

MAX_PARSED: Final = 16_384
"""Characters beside here-documents."""
HIDDEN: Final = "${__hidden}"
"""In place of a long here-document."""
_MOST: Final = {"`": 512, "$(": 256, "|": 1_024}
"""Signs that cost the parser the square of their number, even where nothing is wrong."""
_DOCUMENT: Final = re.compile(
    r"""(<<-?[ \t]*(?:'(\w+)'|"(\w+)"|\\?(\w+))[^\n]*\n)(.*?)(\n\t*(?:\2|\3|\4)(?=\n|$))""", re.DOTALL
)
_BARE: Final = re.compile(r"(?:[A-Za-z0-9@][~^]+|[A-Za-z0-9_./:,+@%=-])+")
_WORKED_OUT: Final = re.compile(r"\$\(|`")
"""In a variable's name some commands of a shell work that out between any quotes: `test -v 'x[$(id)]'`."""
_JOINTS: Final = frozenset({"&&", "||", ";", "|"})
_ADVICE: Final = {
    "$`": "write the value itself, or run an inner command by a call of its own; text with `$` goes between single quotes",
    "<>": "leave it out; read and write files with a tool for files",
    "&": "run it in the foreground; `&&` joins two commands",
    "\n": "write all on one line, with `&&` or `;` between the commands",
}


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


def plain_steps(root: "Node", source: bytes) -> list[Step] | Fault:
    """
    Returns the commands of the tree if it is plain, so that any shell reads it alike: words of plain characters, quotes
    with nothing in them to expand, and `|`, `&&`, `||`, `;` between commands. Returns what is not plain in it.
    """
    found: list[Step] = []
    words: list[str] = []
    sign, end, last = ";", 0, None
    for node in leaves(root):
        gap, text = source[end : node.start_byte].decode(), source[node.start_byte : node.end_byte].decode()
        if gap.strip(" "):
            return _fault(source[end:].decode())
        if not text:
            continue
        quoted = node.type == "raw_string" or (node.type == "string" and {*"$`\\"}.isdisjoint(text))
        if text in _JOINTS and node.type == text:
            _join(found, sign, words)
            words, sign = [], text
        elif not (
            (quoted and text.isprintable() and not _WORKED_OUT.search(text.partition("[")[2]))
            or (node.type in ("word", "number") and _BARE.fullmatch(text))
        ):
            return _fault(source[node.start_byte :].decode())
        else:
            word = text[1:-1] if quoted else text
            if end == node.start_byte and last not in (None, *_JOINTS):
                words[-1] += word
            else:
                words.append(word)
        end, last = node.end_byte, node.type
    _join(found, sign, words)
    programs = (pipe[0] for _, pipes in found for pipe in pipes)
    bad = source[end:].decode().strip(" ") or next((one for one in programs if one in ("time", "coproc")), "")
    return _fault(bad) if bad else found


def _join(found: list[Step], sign: str, words: list[str]) -> None:
    if words and sign == "|":
        found[-1][1].append(words)
    elif words:
        found.append((sign, [words]))


def _fault(text: str) -> Fault:
    other = "put the word between single quotes, or leave it out; write each command out, without loops and conditions"
    advice = next((advice for signs, advice in _ADVICE.items() if not {*signs}.isdisjoint(text[:2])), other)
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return Fault(f"`{shown}` is more than words, quotes, and `|`, `&&`, `||`, `;` between commands", advice)


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
