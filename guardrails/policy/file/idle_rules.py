"""
Finds rules of a policy that no call can match, at their places. The policy can be used, but does not say what its
author meant.
"""

from collections.abc import Iterator

from guardrails.core.commands import unmatched

from .extends import Document, rules
from .yaml_position import Entry, Mistake, Node, numbered, quoted


def idle_rules(document: Document) -> list[Mistake]:
    """
    Returns the rules in `shell.allow` of the valid *document* that match no command in the plain form.
    """
    if document.root is None:
        return []
    found = list(_allowed(document.root, "shell"))
    for number, rule in numbered(rules(document.root)):
        found += _allowed(rule, f"tools.{number}.shell")
    return [
        Mistake(node.position, f"{where}: {quoted(node.value)} matches no command: {reason}")
        for where, node in found
        if isinstance(node.value, str) and (reason := unmatched(node.value)) is not None
    ]


def _allowed(settings: Node, where: str) -> Iterator[tuple[str, Node]]:
    for number, node in enumerate(_items(_child(_child(settings, "shell"), "allow"))):
        yield f"{where}.allow.{number}", node


def _child(node: Node | None, key: str) -> Node | None:
    entry: Entry | None = node.value.get(key) if node is not None and isinstance(node.value, dict) else None
    return None if entry is None else entry.node


def _items(node: Node | None) -> list[Node]:
    return node.value if node is not None and isinstance(node.value, list) else []
