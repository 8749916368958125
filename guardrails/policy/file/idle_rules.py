"""
Finds rules of a policy that no call can match, at their places. The policy can be used, but does not say what its
author meant.
"""

from collections.abc import Iterator

from guardrails.core.commands import unmatched
from guardrails.core.commands.language import speaks

from .extends import Document, rules
from .yaml_position import Entry, Mistake, Node, numbered, quoted


def idle_rules(document: Document) -> list[Mistake]:
    """
    Returns the rules in `shell.allow` of the valid *document* that match no command. A rule is idle if it matches
    neither a command in the plain form nor one that a script may run by argv.
    """
    if document.root is None:
        return []
    found = list(_allowed(document.root, "shell"))
    for number, rule in numbered(rules(document.root)):
        found += _allowed(rule, f"tools.{number}.shell")
    return [
        Mistake(node.position, f"{where}: {quoted(node.value)} matches no command: {reason}")
        for where, node in found
        if isinstance(node.value, str) and (reason := unmatched(node.value)) is not None and not speaks(node.value)
    ]


def _allowed(settings: Node, where: str) -> Iterator[tuple[str, Node]]:
    for number, node in enumerate(_items(_child(_child(settings, "shell"), "allow"))):
        yield f"{where}.allow.{number}", node


def _child(node: Node | None, key: str) -> Node | None:
    entry: Entry | None = node.value.get(key) if node is not None and isinstance(node.value, dict) else None
    return None if entry is None else entry.node


def _items(node: Node | None) -> list[Node]:
    return node.value if node is not None and isinstance(node.value, list) else []
