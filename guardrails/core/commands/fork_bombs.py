"""
Functions that start themselves more than once, and endless loops that start something in the background.
"""

from typing import TYPE_CHECKING, Final

from guardrails.core.commands.grammar.escapes import unquoted
from guardrails.core.commands.grammar.syntax import UnreadableError, text_of


if TYPE_CHECKING:
    from tree_sitter import Node

_ENDS: Final = frozenset({"sleep", "wait", "break", "exit", "return", "read", "usleep"})
_TRUE: Final = frozenset({"true", ":", "1", "[ 1 ]", "/bin/true"})
_MAX_FUNCTIONS: Final = 100


def fork_bomb(root: "Node") -> str | None:
    """
    Returns the words for the part of a script that would fill the machine with processes. Returns None if there is no
    such part.

    Raises UnreadableError for more than 100 functions.
    """
    placed, behind, calls = _places(root)
    if len(calls) > _MAX_FUNCTIONS:
        raise UnreadableError(f"it defines more than {_MAX_FUNCTIONS} functions")
    leading = {name: _leading(calls, name) for name in calls}
    # Of what is below each node: how many children start their function again, does anything wait or end, is anything
    # put into the background. Children stand behind their parents.
    again, ends, background = ([0] * len(placed) for _ in range(3))
    for at in range(len(placed) - 1, 0, -1):
        node, parent, own = placed[at]
        kind = node.type
        if kind == "command_name":
            name = unquoted(text_of(node))
            again[at] += own is not None and name in leading[own]
            ends[at] += name in _ENDS
        elif kind == "&":
            background[at] += 1
        elif kind == "pipeline" and again[at] > 1:
            return f"the function `{str(own)[:40]}`"
        elif background[at] and not ends[at] and _endless(node):
            return "an endless loop"
        if again[at] and node.id in behind and kind != "function_definition":
            # What goes to the background once goes there again from each of its children.
            return f"the function `{str(own)[:40]}`"
        again[parent] += again[at] > 0 and kind != "function_definition"
        ends[parent] += ends[at] > 0
        background[parent] += background[at] > 0
    return None


def _places(root: "Node") -> "tuple[list[tuple[Node, int, str | None]], set[int], dict[str, set[str]]]":
    """
    Returns all nodes, each with the place of its parent and its function. Beside them are the ids of background nodes,
    and the commands of each function.
    """
    placed: list[tuple[Node, int, str | None]] = []
    behind: set[int] = set()
    calls: dict[str, set[str]] = {}
    waiting: list[tuple[Node, int, str | None]] = [(root, 0, None)]
    while waiting:
        each = waiting.pop()
        node, _, own = each
        place = len(placed)
        placed.append(each)
        if node.type == "function_definition":
            name = node.child_by_field_name("name")
            own = own if name is None else unquoted(text_of(name))
            calls.setdefault(own or "", set())
        elif node.type == "command_name" and own is not None:
            calls[own].add(unquoted(text_of(node)))
        before: Node | None = None
        for child in node.children:
            if child.type == "&" and before is not None:
                behind.add(before.id)
            before = child
            waiting.append((child, place, own))
    return placed, behind, calls


def _leading(calls: dict[str, set[str]], goal: str) -> set[str]:
    """
    Returns the functions by which *goal* is called in the end, itself among them.
    """
    callers: dict[str, list[str]] = {}
    for caller, called in calls.items():
        for name in called:
            callers.setdefault(name, []).append(caller)
    waiting, seen = [goal], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += callers.get(name, ())
    return seen


def _endless(node: "Node") -> bool:
    condition = node.child_by_field_name("condition")
    if node.type == "while_statement":
        return condition is not None and text_of(condition).strip() in _TRUE
    return node.type == "c_style_for_statement" and condition is None
