"""
The syntax tree of a shell command, as tree-sitter's grammar of bash reads it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .heredocs import without_bodies


if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = 1 << 20
"""Longer commands are not read."""
MAX_PARSED_BYTES: Final = 16_384
"""The same without here-documents."""
_MOST: Final = {"`": 512, "$(": 256, "|": 1_024}
"""Signs that cost the parser the square of their number, even where nothing is wrong."""
_SMALL: Final = 512
"""The parser reads this number of any bytes in a few milliseconds."""
_PIECE: Final = 32
"""Bytes that the parser is given at a time."""
MAX_DEPTH: Final = 100
"""Levels of the tree; far beyond what people write, far below what Python's stack takes."""
_FORKING: Final = frozenset({"function_definition", "while_statement", "c_style_for_statement"})
_MARKS: Final = frozenset("\x00\x01\x02\ue000\ue001\ue002")


class UnreadableError(Exception):
    """
    A command that cannot be read, with the reason, and what to write instead if that is known.
    """

    def __init__(self, reason: str, advice: str | None = None) -> None:
        super().__init__(reason)
        self.advice = advice


class NoParserError(Exception):
    """
    The parser is not installed.
    """


class Tree(NamedTuple):
    """
    A parsed command.
    """

    root: "Node"
    bodies: dict[int, str]
    """Text of the here-documents that were not parsed, by the byte of the word that begins them."""
    forks: bool
    """Whether it has what a fork bomb needs: a function, or a loop."""


def parse(text: str) -> Tree:
    """
    Returns the tree of *text*.

    Raises UnreadableError if the text is no valid bash, too long, too deep or holds a NUL. Raises NoParserError without
    the extra.
    """
    try:
        source = text.encode()
    except UnicodeEncodeError:
        raise UnreadableError("it is not valid Unicode") from None
    if len(source) > MAX_BYTES:
        raise UnreadableError(f"it has {len(source):,} bytes (limit {MAX_BYTES:,})")
    if not _MARKS.isdisjoint(text):
        raise UnreadableError("it holds a control or private character")
    bodies: dict[int, str] = {}
    if len(source) > MAX_PARSED_BYTES or _crowded(text):
        text, bodies = without_bodies(text)
        source = text.encode()
        if len(source) > MAX_PARSED_BYTES or _crowded(text):
            raise UnreadableError(
                f"beside its here-documents it has {len(source):,} bytes (limit {MAX_PARSED_BYTES:,}) or too many of its signs",
                "write a script file and run that",
            )
    parser = _parser()
    if len(source) > _SMALL:
        _check(_tried(parser, source), source)
    root: Node = parser.parse(source).root_node
    _check(root, source)
    starts, forks = set[int](), False
    for node in nodes(root):
        kind = node.type
        if kind == "heredoc_start":
            starts.add(node.start_byte)
        elif kind in _FORKING:
            forks = True
    if not bodies.keys() <= starts:
        raise UnreadableError("what looks like a here-document in it is none")
    return Tree(root, bodies, forks)


def _crowded(text: str) -> bool:
    return any(text.count(sign) > most for sign, most in _MOST.items())


def _tried(parser: Any, source: bytes) -> "Node":
    """
    Returns the tree of *source*, whose nodes have no text.

    Raises UnreadableError if the parser comes back to the same places again and again. Its work on a wrong text grows
    with the square of it. A command without a fault is read about once.
    """
    left = 64 + len(source) // 2

    def piece(at: int, _: object) -> bytes:
        nonlocal left
        left -= 1
        return source[at : at + _PIECE] if left > 0 else b""

    root: Node = parser.parse(piece).root_node
    if left <= 0:
        raise UnreadableError("it is no valid command, and what is wrong with it takes long to find")
    return root


def _check(root: "Node", source: bytes) -> None:
    if root.has_error:
        raise UnreadableError(f"it is no valid command near `{_near(root, source)}`")


def nodes(root: "Node") -> "Iterator[Node]":
    """
    Returns *root* and all nodes below it. Raises UnreadableError if the tree is too deep.
    """
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise UnreadableError(f"it is nested more than {MAX_DEPTH} levels deep")
        yield node
        waiting += [(child, depth + 1) for child in node.children]


def text_of(node: "Node") -> str:
    """
    Returns the source text of *node*.
    """
    return (node.text or b"").decode(errors="replace")


def _parser() -> Any:
    language = _language()

    from tree_sitter import Parser

    return Parser(language)


@lru_cache(maxsize=1)
def _language() -> Any:
    try:
        import tree_sitter_bash

        from tree_sitter import Language
    except ImportError:
        raise NoParserError from None
    return Language(tree_sitter_bash.language())


def _near(root: "Node", source: bytes) -> str:
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            break
        node = inner
    if node.start_byte == node.end_byte:
        node = node.parent or root
    text = source[node.start_byte : node.end_byte].decode(errors="replace")
    return " ".join(text.split())[:40]
