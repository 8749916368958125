"""
The settings that a client itself cannot read: it then leaves the whole file out, or does not start.
"""

import re

from collections.abc import Iterator
from typing import Final

from .places import Client
from .scanner import BOM, COMMENT, Node, parse, place


_TOKENS: Final = re.compile(rf'"(?:[^"\\\r\n]|\\[^\r\n])*"|(?P<comment>{COMMENT.pattern})', re.DOTALL)


def unreadable(client: Client, text: str) -> str | None:
    """
    Why *client* does not read *text*, which holds our entries. Returns None if it does. Raises NotJson.
    """
    for what, at in _strange(text):
        if what not in client.reads:
            line, column = place(text, at)
            return f"{client.title} does not read {what} (line {line}, column {column}): {client.unread}"
    return None


def _strange(text: str) -> Iterator[tuple[str, int]]:
    if text.startswith(BOM):
        yield "a byte order mark", 0
    root = parse(text)
    comment = next((found for found in _TOKENS.finditer(text) if found["comment"]), None)
    if comment is not None:
        yield "comments", comment.start()
    for node in _containers(root):
        if node.items and node.items[-1].comma is not None:
            yield "a comma after the last item", node.items[-1].comma
        keys = [item.key for item in node.items]
        for n, item in enumerate(node.items):
            if item.key is not None and item.key in keys[:n]:
                yield "a key that is there twice", item.start


def _containers(node: Node | None) -> Iterator[Node]:
    if node is not None and node.opened_by:
        yield node
        for item in node.items:
            yield from _containers(item.node)
