"""
The settings of a policy file that stand in place of those of the policies it extends.
"""

from collections.abc import Iterator
from pathlib import Path

from guardrails.core.tools.tool import REPEATS
from guardrails.core.values.units import matcher

from .extends import Document, rules
from .folder import inner
from .yaml_position import Entry, Node, plain


def overrides(document: Document) -> list[str]:
    """
    Returns the overrides that the named file of the valid *document* makes, each as `file:line:column: message`.

    Globs of two rules are compared as texts, so that not all that overlap are seen.
    """
    if document.below is None:
        return []

    own, below = document.parts[0], document.below
    found = list(_differing("", own, below))
    tools = inner(own, "tools")

    if tools is not None and tools.replaces:
        files = ", ".join(dict.fromkeys(Path(rule.position.source.name).name for rule in rules(below)))
        return [
            *found,
            _at(Entry(tools.position, tools), f"tools: !replace drops {len(rules(below))} rules of {files}"),
        ]

    for number, rule in enumerate(rules(own)):
        for other in rules(below):
            if _overlap(rule, other):
                found += _differing(f"tools.{number}.", rule, other)

    return found


def renamed(document: Document) -> list[str]:
    """
    Returns the older words of the named file that still work, each with the one that stands for it now.
    """
    return [
        _at(entry, f"tools.{number}.{key}: {key} is now `repeats: {REPEATS[key]}`")
        for number, rule in enumerate(rules(document.parts[0]))
        if isinstance(rule.value, dict)
        for key, entry in rule.value.items()
        if key in REPEATS
    ]


def _differing(where: str, own: Node, below: Node) -> Iterator[str]:
    """
    Returns each setting that both maps have, with another value.
    """
    if not isinstance(own.value, dict) or not isinstance(below.value, dict):
        return

    for key, entry in own.value.items():
        other = below.value.get(key)

        if other is None or (not where and key == "tools") or key == "match":
            continue

        if isinstance(entry.node.value, dict) and isinstance(other.node.value, dict):
            yield from _differing(f"{where}{key}.", entry.node, other.node)
        elif plain(entry.node) != plain(other.node):
            place = f"{Path(other.key.source.name).name}:{other.key.line}"
            yield _at(entry, f"{where}{key}: {_shown(entry.node)} overrides {_shown(other.node)} of {place}")


def _at(entry: Entry, message: str) -> str:
    source, line, column = entry.key

    return f"{source.name}:{line}:{column}: {message}"


def _shown(node: Node) -> str:
    if isinstance(node.value, list):
        return f"a list of {len(node.value)}"

    return "a map" if isinstance(node.value, dict) else node.written or "nothing"


def _overlap(rule: Node, other: Node) -> bool:
    ours, theirs = _globs(rule), _globs(other)

    return any(map(matcher(theirs), ours)) or any(map(matcher(ours), theirs))


def _globs(rule: Node) -> tuple[str, ...]:
    written = plain(rule)["match"]

    return (written,) if isinstance(written, str) else tuple(written)
