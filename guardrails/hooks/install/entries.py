"""
Our entries in the text of a settings file: found by their commands, put in, taken out.
"""

import json
import re

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .edits import Style, added, made_here, replaced, style_of, without, written
from .scanner import BOM, Node, NotJson, parse


HOOKS: Final = "hooks"
Wanted = Mapping[str, Mapping[str, Any]]
"""The handler of each event."""
Recognised = Callable[[str], bool]
_ROOTED: Final = "  "
"""What follows the bracket of a root that was put into a file without a value."""
_ALL_NEW: Final = "  "
_NEW: Final = "    "
"""The indentation of a file that was not there: with its folder, and in a folder that was there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    A handler of ours, with all that it stands in.
    """

    steps: tuple[tuple[Node, int], ...]
    """Container and index from the root down to the handler: the root, the hooks, the event, the group, its handlers."""
    event: str
    handler: Mapping[str, Any]
    counts: bool
    """No later key of the same name takes its place."""


def entries(root: Node | None, ours: Recognised) -> Iterator[Entry]:
    """
    Our handlers in the order of the text; *ours* knows a command.
    """
    for h, hooks in enumerate(root.items if root is not None and root.opened_by == "{" else ()):
        for e, event in enumerate(hooks.node.items if hooks.key == HOOKS and hooks.node.opened_by == "{" else ()):
            for g, group in enumerate(event.node.items if event.node.opened_by == "[" else ()):
                member = group.node.last(HOOKS) if group.node.opened_by == "{" else None
                for n, item in enumerate(member.node.items if member and member.node.opened_by == "[" else ()):
                    handler = item.node.plain()
                    if not _is_ours(handler, ours) or root is None or member is None:
                        continue
                    yield Entry(
                        steps=((root, h), (hooks.node, e), (event.node, g), (member.node, n)),
                        event=str(event.key),
                        handler=handler,  # type: ignore[arg-type]
                        counts=root.last(HOOKS) is hooks and hooks.node.last(str(event.key)) is event,
                    )


def _is_ours(handler: object, ours: Recognised) -> bool:
    if not isinstance(handler, dict) or handler.get("type", "command") != "command":
        return False
    command = handler.get("command")
    return isinstance(command, str) and ours(command)


def removed(text: str, ours: Recognised) -> str | None:
    """
    *text* without our entries. Returns None if the file held nothing else and was not there before. Raises NotJson.
    """
    root = parse(text)
    found = list(entries(root, ours))
    # The text is read anew for each entry, so what holds none of ours is one short word meanwhile.
    rest = [] if root is None or not found or "\0" in text else list(_strange(root, found))
    small = text
    for n, node in reversed(list(enumerate(rest))):
        small = f'{small[: node.start]}"\0{n}\0"{small[node.end :]}'
    # From the last to the first: each finds its place as it was when it was put in.
    while found := list(entries(parse(small), ours)):
        left = _without(small, found[-1])
        if left is None:
            return None
        small = left
    words = [text[node.start : node.end] for node in rest]
    return re.sub('"\0([0-9]+)\0"', lambda held: words[int(held[1])], small) if words else small


def _strange(root: Node, found: Sequence[Entry]) -> Iterator[Node]:
    """
    The largest values in *root* that hold no entry of *found*, in the order of the text.
    """
    holds = {id(one) for entry in found for node, n in entry.steps for one in (node, node.items[n].node)}
    ours = {id(handlers.items[n].node) for handlers, n in (entry.steps[-1] for entry in found)}
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) not in holds:
            yield node
        elif id(node) not in ours:
            todo += [item.node for item in reversed(node.items)]


def _without(text: str, entry: Entry) -> str | None:
    (root, h), (hooks, e), (groups, g), (handlers, n) = entry.steps
    if len(handlers.items) > 1:
        return without(text, handlers, n)
    if len(groups.items) > 1 or not made_here(text, groups):
        return without(text, groups, g)
    if len(hooks.items) > 1 or not made_here(text, hooks):
        return without(text, hooks, e)
    if len(root.items) > 1:
        return without(text, root, h)
    before = text[root.start + 1 : root.items[0].start]
    if before == _ROOTED:
        return text[: root.start] + text[root.end :]
    alone = not text[: root.start].strip("\ufeff \t\r\n") and not text[root.end :].strip(" \t\r\n")
    return None if made_here(text, root) and alone else without(text, root, h)


def folder_is_ours(text: str) -> bool:
    """
    The file *text*, in which nothing is left, was made with its folder.
    """
    root = parse(text)
    if root is None or not root.items:
        return False
    return text[root.start + 1 : root.items[0].start].lstrip("\r\n") == _ALL_NEW


def installed(text: str | None, wanted: Wanted, ours: Recognised, *, new_folder: bool = False) -> str:
    """
    *text* with the handlers *wanted*, and no others of ours; None: there is no file. Raises NotJson.
    """
    if text is None:
        return json.dumps({HOOKS: _groups(wanted)}, ensure_ascii=False, indent=_ALL_NEW if new_folder else _NEW) + "\n"
    before = text
    while True:
        root = parse(text)
        changed = _step(text, root, wanted, ours)
        if changed is None:
            # All was surplus, and the file was ours alone.
            return installed(None, wanted, ours, new_folder=folder_is_ours(before))
        if changed == text:
            break
        text = changed
    _check(before, text, wanted, ours)
    return text


def _groups(wanted: Wanted) -> dict[str, Any]:
    return {event: [{HOOKS: [handler]}] for event, handler in wanted.items()}


def _step(text: str, root: Node | None, wanted: Wanted, ours: Recognised) -> str | None:
    """
    *text* one change nearer to what is wanted, or as it is.
    """
    if root is None:
        at = len(BOM) if text.startswith(BOM) else 0
        hooked = written(_groups(wanted), Style(), "")
        return f"{text[:at]}{{{_ROOTED}{json.dumps(HOOKS)}: {hooked}}}{text[at:]}"
    if root.opened_by != "{":
        raise NotJson(text, root.start, "expected an object")
    style = style_of(text, root)
    there: dict[str, Entry] = {}
    for entry in entries(root, ours):
        if entry.event not in wanted or entry.event in there or not entry.counts:
            return _without(text, entry)
        there[entry.event] = entry
    before = text
    # From the last to the first: what is before an edit stays where it was read.
    for event, entry in reversed(there.items()):
        if entry.handler != wanted[event]:
            handlers, n = entry.steps[-1]
            text = replaced(text, handlers.items[n].node, wanted[event], style)
    if text != before:
        return text
    missing = _groups({event: handler for event, handler in wanted.items() if event not in there})
    if not missing:
        return text
    hooks = root.last(HOOKS)
    if hooks is None:
        return added(text, root, {HOOKS: missing}, style)
    if hooks.node.opened_by != "{":
        raise NotJson(text, hooks.node.start, f"`{HOOKS}` is not an object")
    members = [member for event in missing if (member := hooks.node.last(event)) is not None]
    for member in members:
        if member.node.opened_by != "[":
            raise NotJson(text, member.node.start, f"`{HOOKS}.{member.key}` is not an array")
    new = {event: groups for event, groups in missing.items() if hooks.node.last(event) is None}
    if new:
        text = added(text, hooks.node, new, style)
    for member in sorted(members, key=lambda one: one.start, reverse=True):
        text = added(text, member.node, missing[str(member.key)], style)
    return text


def _check(before: str, after: str, wanted: Wanted, ours: Recognised) -> None:
    """
    Raises RuntimeError if *after* says anything but *before* with our entries: no file is written then.
    """
    root = parse(after)
    found = {entry.event: entry.handler for entry in entries(root, ours)}
    left, right = (removed(text, ours) for text in (before, after))
    same = left == right or (left and _plain(left)) == (right and _plain(right))
    if found != dict(wanted) or not same:
        raise RuntimeError("the edit would have changed more than our entries")


def _plain(text: str) -> object:
    root = parse(text)
    return None if root is None else root.plain()
