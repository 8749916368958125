"""
Functions that start themselves more than once, and endless loops that start something in the background.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from guardrails.core.commands.grammar.escapes import unquoted
from guardrails.core.commands.grammar.syntax import nodes, text_of


if TYPE_CHECKING:
    from tree_sitter import Node

_ENDS: Final = frozenset({"sleep", "wait", "break", "exit", "return", "read", "usleep"})


def fork_bomb(root: "Node") -> str | None:
    """
    The name of what would fill the machine with processes; None where nothing does.
    """
    calls: dict[str, set[str]] = {}
    spawns: dict[str, list[list[set[str]]]] = {}
    for node in nodes(root):
        if node.type == "function_definition":
            called, body = node.child_by_field_name("name"), node.child_by_field_name("body")
            if called is not None and body is not None:
                own = unquoted(text_of(called))
                calls.setdefault(own, set()).update(_called(body))
                spawns.setdefault(own, []).extend(_started(body))
        elif node.type in ("while_statement", "c_style_for_statement") and _endless(node):
            return "an endless loop"
    for name, groups in spawns.items():
        for group in groups:
            if sum(_reaches(calls, started, name) for started in group) >= 2:
                return f"the function `{name[:40]}`"
    return None


def _called(node: "Node") -> set[str]:
    return {unquoted(text_of(each)) for each in nodes(node) if each.type == "command_name"}


def _started(body: "Node") -> Iterator[list[set[str]]]:
    """
    For each place that starts several processes at once: the commands that each calls.
    """
    for node in nodes(body):
        if node.type == "pipeline":
            yield [_called(child) for child in node.named_children]
        following = zip(node.children, node.children[1:], strict=False)
        behind = [_called(one) for one, sign in following if sign.type == "&" and one.is_named]
        if behind:
            # What goes to the background once goes there again from each of its children.
            yield behind + behind


def _reaches(calls: dict[str, set[str]], start: set[str], goal: str) -> bool:
    waiting, seen = list(start), set[str]()
    while waiting:
        name = waiting.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            waiting += calls.get(name, ())
    return False


def _endless(node: "Node") -> bool:
    condition = node.child_by_field_name("condition")
    if node.type == "while_statement":
        always = condition is not None and text_of(condition).strip() in ("true", ":", "1", "[ 1 ]", "/bin/true")
    else:
        always = condition is None
    body = node.child_by_field_name("body")
    if not always or body is None or _called(body) & _ENDS:
        return False
    return any(each.type == "&" for each in nodes(body))
