"""
Changes of a JSON text where it stands: all else keeps its bytes, and what was put in is taken out without a trace.

Text that is put into an empty container has one space before it, `[ {...}]`. A container that is written new has none
or a new line. So a container that was there before is known, and stays when it is empty again.
"""

import json
import re

from dataclasses import dataclass
from typing import Any, Final

from .scanner import COMMENT, TRIVIA, Node


FILLED: Final = " "
"""What follows the bracket of a container that was there, and empty."""
_UNIT: Final = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """
    The layout of a text.
    """

    newline: str = "\n"
    unit: str | None = _UNIT
    """One step of indentation; None: all stands in one line."""
    space: str = " "
    """After a comma or a colon in one line."""


def style_of(text: str, root: Node) -> Style:
    """
    Returns the layout of *text*, whose value is *root*.
    """
    found = re.search(r"\r\n|\n|\r", text)
    newline = found[0] if found else "\n"
    if not root.items:
        return Style(newline=newline)
    first = root.items[0]
    own = indentation(text, first.start)
    unit = None if own is None else own.removeprefix(_line_start(text, root.start))
    return Style(newline=newline, unit=unit, space="" if text[first.node.start - 1] == ":" else " ")


def indentation(text: str, at: int) -> str | None:
    """
    The white space before *at* in its line. Returns None if other things stand there.
    """
    before = _line(text, at)
    return before if not before.strip(" \t") else None


def _line(text: str, at: int) -> str:
    return re.split(r"[\r\n]", text[:at])[-1]


def _line_start(text: str, at: int) -> str:
    line = _line(text, at)
    return line[: len(line) - len(line.lstrip(" \t"))]


def written(value: Any, style: Style, indent: str | None) -> str:
    """
    *value* as JSON: over several lines that begin with *indent*, or in one line with None.
    """
    if indent is None:
        return json.dumps(value, ensure_ascii=False, separators=(f",{style.space}", f":{style.space}"))
    unit = _UNIT if style.unit is None else style.unit
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", style.newline + indent)


def added(text: str, node: Node, values: "dict[str, Any] | list[Any]", style: Style) -> str:
    """
    *text* with *values* at the end of the container *node*: members of an object, elements of an array.
    """
    if not node.items:
        return _filled(text, node, values, style)
    last = node.items[-1]
    indent = indentation(text, last.start)
    anchor = last.end if last.comma is None else last.comma + 1
    at, after_line = _after_comments(text, anchor)
    gap = style.newline + (indent or "") if indent is not None or after_line else style.space
    entries = [gap + one for one in _entries(values, style, indent)]
    if last.comma is not None:
        return text[:at] + "".join(f"{one}," for one in entries) + text[at:]
    return f"{text[: last.end]},{text[last.end : at]}{','.join(entries)}{text[at:]}"


def _filled(text: str, node: Node, values: "dict[str, Any] | list[Any]", style: Style) -> str:
    at = node.start + 1
    indent = None if style.unit is None else _line_start(text, node.start) + style.unit
    gap = style.space if indent is None else style.newline + indent
    return text[:at] + FILLED + f",{gap}".join(_entries(values, style, indent)) + text[at:]


def _entries(values: "dict[str, Any] | list[Any]", style: Style, indent: str | None) -> list[str]:
    if isinstance(values, list):
        return [written(value, style, indent) for value in values]
    colon = ": " if indent is not None else f":{style.space}"
    return [json.dumps(key) + colon + written(value, style, indent) for key, value in values.items()]


def _after_comments(text: str, at: int) -> tuple[int, bool]:
    """
    The end of the comments that follow *at* in its line, and whether the line ends the last.
    """
    found = TRIVIA.match(text, at)
    end, after_line = at, False
    for comment in COMMENT.finditer(text, at, at if found is None else found.end()):
        if re.search(r"[\r\n]", text[end : comment.start()]):
            break
        end, after_line = comment.end(), comment[0].startswith("//")
    return end, after_line


def replaced(text: str, node: Node, value: Any, style: Style) -> str:
    """
    *text* with *value* in place of *node*.
    """
    in_lines = re.search(r"[\r\n]", text[node.start : node.end]) is not None
    return (
        text[: node.start]
        + written(value, style, _line_start(text, node.start) if in_lines else None)
        + text[node.end :]
    )


def without(text: str, node: Node, index: int) -> str:
    """
    *text* without the item *index* of the container *node*, and without the comma that it needed.
    """
    item = node.items[index]
    if index == 0 and len(node.items) > 1 and item.comma is not None:
        # What precedes the first item says whether the container was there before.
        after = node.items[1]
        return text[: item.start] + text[after.start if after.lead == item.comma + 1 else item.comma + 1 :]
    comma = item.comma if item.comma is not None else node.items[index - 1].comma if index else None
    rest = text[item.end : comma] + text[comma + 1 :] if comma is not None and comma >= item.end else text[item.end :]
    # What follows must not get into a comment that ends with its line.
    swallows = item.after_line and rest.lstrip(" \t")[:1] not in ("\r", "\n")
    begin = item.start if swallows else item.lead
    if comma is None:
        return text[:begin] + rest
    if comma < begin:
        return text[:comma] + text[comma + 1 : begin] + rest
    return text[:begin] + rest


def made_here(text: str, node: Node) -> bool:
    """
    The container *node*, which has one item, was not there before that item, and holds nothing else.
    """
    return text[node.start + 1 : node.items[0].start] != FILLED and not node.commented
