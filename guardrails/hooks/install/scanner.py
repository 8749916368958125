"""
JSON with comments and trailing commas, read with the position of everything, so that a text can be changed where it stands.
"""

import json
import re

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final


TRIVIA: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
"""White space and comments."""
COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"')
_SCALAR: Final = re.compile(
    r"(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.+-])", re.ASCII
)
_CLOSED_BY: Final = {"{": "}", "[": "]"}
MAX_DEPTH: Final = 200
"""Containers within each other; settings have about six."""
BOM: Final = "\ufeff"


class NotJson(ValueError):
    """
    A text that is no JSON with comments; says where, both from 1.
    """

    def __init__(self, text: str, at: int, what: str) -> None:
        self.line, self.column = place(text, at)
        super().__init__(f"line {self.line}, column {self.column}: {what}")


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """
    A value and where it stands in the text: [start, end).
    """

    start: int
    end: int = 0
    opened_by: str = ""
    """`{`, `[`, or empty for what holds nothing."""
    value: str | float | bool | None = None
    """That of a string, a number, true, false or null."""
    items: "list[Item]" = field(default_factory=list)
    commented: bool = False
    """A comment stands directly in it."""

    def last(self, key: str) -> "Item | None":
        """
        The member *key* that counts: the last of that name. Returns None if there is none.
        """
        return next((item for item in reversed(self.items) if item.key == key), None)

    def plain(self) -> object:
        """
        The value as Python's own types.
        """
        if self.opened_by == "{":
            return {item.key: item.node.plain() for item in self.items}
        return [item.node.plain() for item in self.items] if self.opened_by else self.value


@dataclass(slots=True, kw_only=True, eq=False)
class Item:
    """
    A member of an object, or an element of an array.
    """

    start: int
    """Of its key or, in an array, of its value."""
    lead: int
    """End of what precedes it and is no white space: a bracket, a comma or a comment."""
    after_line: bool = False
    """What precedes it is a comment that its line ends."""
    node: Node
    key: str | None = None
    comma: int | None = None
    """Where the comma after it stands."""

    @property
    def end(self) -> int:
        """
        The end of its value.
        """
        return self.node.end


def place(text: str, at: int) -> tuple[int, int]:
    """
    The line and the column of *at*, from 1.
    """
    before = text[:at].removeprefix(BOM)
    lines = re.split(r"\r\n|\r|\n", before)
    return len(lines), len(lines[-1]) + 1


@lru_cache(maxsize=16)
def parse(text: str) -> Node | None:
    """
    The one value of *text*, which nobody may change: it is kept. Returns None if it holds nothing but white space and comments. Raises NotJson.
    """
    start = _after_trivia(text, len(BOM) if text.startswith(BOM) else 0)
    if start == len(text):
        return None
    node = _value(text, start, 0)
    after = _after_trivia(text, node.end)
    if after != len(text):
        raise NotJson(text, after, f"expected the end of the file, not {_shown(text, after)}")
    return node


def _after_trivia(text: str, at: int) -> int:
    found = TRIVIA.match(text, at)
    end = at if found is None else found.end()
    if text.startswith("/*", end):
        raise NotJson(text, end, "a comment without an end")
    return end


def _value(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] in _CLOSED_BY:
        return _container(text, at, depth)
    if text[at : at + 1] == '"':
        return _string(text, at)
    found = _SCALAR.match(text, at)
    if found is None:
        raise NotJson(text, at, f"expected a value, not {_shown(text, at)}")
    return Node(start=at, end=found.end(), value=json.loads(found[0]) if len(found[0]) < 400 else None)


def _string(text: str, at: int) -> Node:
    found = _STRING.match(text, at)
    if found is None:
        raise NotJson(text, at, "a string without an end")
    try:
        return Node(start=at, end=found.end(), value=json.loads(found[0], strict=False))
    except ValueError:
        raise NotJson(text, at, "a string with an escape that JSON does not have") from None


def _container(text: str, at: int, depth: int) -> Node:
    if depth >= MAX_DEPTH:
        raise NotJson(text, at, f"more than {MAX_DEPTH} containers within each other")
    node = Node(start=at, opened_by=text[at])
    closed_by = _CLOSED_BY[text[at]]
    at += 1
    wanted = False
    while True:
        begin, at = at, _after_trivia(text, at)
        comments = list(COMMENT.finditer(text, begin, at))
        node.commented = node.commented or bool(comments)
        if text.startswith(closed_by, at):
            node.end = at + 1
            return node
        if wanted:
            if not text.startswith(",", at):
                raise NotJson(text, at, f"expected `,` or `{closed_by}`, not {_shown(text, at)}")
            node.items[-1].comma = at
            at, wanted = at + 1, False
            continue
        item, at = _item(text, at, node.opened_by, depth)
        item.lead = comments[-1].end() if comments else begin
        item.after_line = bool(comments) and comments[-1][0].startswith("//")
        node.items.append(item)
        wanted = True


def _item(text: str, at: int, opened_by: str, depth: int) -> tuple[Item, int]:
    if opened_by == "[":
        value = _value(text, at, depth + 1)
        return Item(start=at, lead=at, node=value), value.end
    if text[at : at + 1] != '"':
        raise NotJson(text, at, f"expected a key in double quotes, not {_shown(text, at)}")
    key = _string(text, at)
    colon = _after_trivia(text, key.end)
    if not text.startswith(":", colon):
        raise NotJson(text, colon, f"expected `:`, not {_shown(text, colon)}")
    value = _value(text, _after_trivia(text, colon + 1), depth + 1)
    value.commented = value.commented or COMMENT.search(text, colon + 1, value.start) is not None
    return Item(start=at, lead=at, node=value, key=str(key.value)), value.end


def _shown(text: str, at: int) -> str:
    return "the end of the file" if at >= len(text) else ascii(text[at])
