"""
YAML text read into a tree with positions, strictly, with every mistake on the way.

YAML is read as editors read it, by the 1.2 core schema. Only `true` and `false` are booleans; `on`, `no`, `1:30`,
`1_000` and `2024-01-01` are text. Text that YAML 1.1 and 1.2 read differently (`010`) is a mistake. So are tags, merge
keys, second documents, repeated keys and numbers without a finite value. The tree is built from parser events, not from
composed nodes, so that size and depth are bounded while the text is read.
"""

import json
import math

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from guardrails.core.values.late_pattern import pattern

from .yaml_events import UnreadableError, check_text, decode, events
from .yaml_position import MAX_MISTAKES, Entry, Mistake, Node, Position, Source, quoted


MAX_DEPTH: Final = 32
MAX_WEIGHT: Final = 100_000
"""Values of a file once its aliases are written out; a long text counts as one value per 32 characters."""

_WEIGHT_CHARACTERS: Final = 32

# Section 10.3.2 of YAML 1.2.2, the core schema.
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = pattern(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = pattern(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = pattern(r"[-+]?0[0-9]+")

_MAX_INTEGER: Final = (1 << 63) - 1
_MAX_DIGITS: Final = 20
_STANDARD_TAG: Final = "tag:yaml.org,2002:"
REPLACE: Final = "!replace"
"""The tag of a list of `tools:` that drops those of the policies it extends."""


class Parsed(NamedTuple):
    """
    A text that was read. Its *root* is None if it could not be read to its end.
    """

    source: Source
    root: Node | None
    mistakes: list[Mistake]


def parse(text: bytes | str, name: str) -> Parsed:
    """
    Read *text* (bytes: UTF-8 without a byte order mark), called *name* in messages. Raises nothing: mistakes are data.
    """
    decoded, source = decode(text, name)
    composer = _Composer(source)

    try:
        check_text(text, decoded, source)
        root = composer.compose(events(decoded, source))
    except UnreadableError as stopped:
        return Parsed(source, None, [*composer.mistakes, stopped.mistake])

    return Parsed(source, root, composer.mistakes)


@dataclass(slots=True)
class _Open:
    """
    A collection that is still being read; *key* is the one that waits for its value, `(None, ...)` a refused one.
    """

    node: Node
    anchor: str | None
    key: tuple[str | None, Position] | None = None

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.node.value, dict)


class _Composer:
    """
    Builds the tree of one document from parser events.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.mistakes: list[Mistake] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node | None] = {}
        self.weight = 0
        self.root: Node | None = None

    def compose(self, stream: Iterator[Any]) -> Node:
        for event in stream:
            if not self._step(event, type(event).__name__):
                break

        if self.root is None or (self.root.value is None and not self.root.broken):
            raise UnreadableError(Position(self.source, 1, 1), "the file is empty")

        return self.root

    def _step(self, event: Any, kind: str) -> bool:
        match kind:
            case "ScalarEvent" if self.stack and self.stack[-1].wants_key:
                self._take_key(event)
            case "ScalarEvent":
                self._add(self._scalar(event), event.anchor)
            case "AliasEvent":
                self._add(self._alias(event), None)
            case "MappingStartEvent":
                self._open(event, {})
            case "SequenceStartEvent":
                self._open(event, [])
            case "MappingEndEvent" | "SequenceEndEvent":
                closed = self.stack.pop()
                self._add(closed.node, closed.anchor)
            case "DocumentStartEvent":
                return self._document(event)

        return True

    def _position(self, event: Any) -> Position:
        return Position(self.source, event.start_mark.line + 1, event.start_mark.column + 1)

    def _mistake(self, position: Position, message: str) -> None:
        if len(self.mistakes) >= MAX_MISTAKES:
            raise UnreadableError(position, f"more than {MAX_MISTAKES} mistakes stand above")

        self.mistakes.append(Mistake(position, message))

    def _document(self, event: Any) -> bool:
        position = self._position(event)

        if self.root is not None:
            self._mistake(position, "a second document starts here, a policy is one")
            return False

        if event.version not in {None, (1, 2)} or event.tags:
            self._mistake(position, "only the directive `%YAML 1.2` is allowed, leave it out")

        return True

    def _refuse_tag(self, event: Any) -> None:
        if event.tag == REPLACE:
            self._mistake(self._position(event), f"{quoted(REPLACE)} stands before the list of `tools:` only")
        elif event.tag is not None:
            tag = event.tag.replace(_STANDARD_TAG, "!!")
            self._mistake(self._position(event), f"tags such as {quoted(tag)} are not allowed, write a plain value")

    def _open(self, event: Any, value: dict[str, Entry] | list[Node]) -> None:
        replaces = event.tag == REPLACE and isinstance(value, list) and self._is_tools()

        if not replaces:
            self._refuse_tag(event)

        position = self._position(event)

        if len(self.stack) >= MAX_DEPTH:
            raise UnreadableError(position, f"nested deeper than {MAX_DEPTH}")

        if event.anchor is not None:
            self.anchors[event.anchor] = None

        self._weigh(position, 1)
        node = Node(position, value, block=not event.flow_style, replaces=replaces, height=1)
        self.stack.append(_Open(node, event.anchor))

    def _is_tools(self) -> bool:
        return len(self.stack) == 1 and self.stack[0].key is not None and self.stack[0].key[0] == "tools"

    def _weigh(self, position: Position, weight: int) -> None:
        self.weight += weight

        if self.weight > MAX_WEIGHT:
            raise UnreadableError(position, f"more than {MAX_WEIGHT} values, aliases written out")

    def _take_key(self, event: Any) -> None:
        self._refuse_tag(event)
        top, position, key = self.stack[-1], self._position(event), event.value
        weight = len(key) // _WEIGHT_CHARACTERS
        self._weigh(position, weight)
        top.node.weight += weight

        if event.anchor is not None:
            written = json.dumps(key, ensure_ascii=False)
            self.anchors[event.anchor] = Node(position, key, written=written, weight=1 + weight)

        if key == "<<" and not event.style:
            self._mistake(position, "merge keys `<<` are not allowed, write the keys out or use `extends`")
            top.key = (None, position)
        elif isinstance(top.node.value, dict) and key in top.node.value:
            first = top.node.value[key].key.line
            self._mistake(position, f"key {quoted(key)} is given twice (first on line {first})")
            top.key = (None, position)
        else:
            top.key = (key, position)

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self.anchors[anchor] = node

        if not self.stack:
            self.root = node
            return

        top = self.stack[-1]

        if isinstance(top.node.value, list):
            top.node.value.append(node)
        elif top.key is None:
            self._mistake(node.position, "a key must be text")
            top.key = (None, node.position)
            return
        elif isinstance(top.node.value, dict):
            key, position = top.key
            top.key = None

            if key is None:
                return

            top.node.value[key] = Entry(position, node)

        top.node.weight += node.weight
        top.node.height = max(top.node.height, node.height + 1)

    def _alias(self, event: Any) -> Node:
        position = self._position(event)
        target = self.anchors.get(event.anchor)

        if target is None:
            problem = "contains itself" if event.anchor in self.anchors else "has no anchor above it"
            self._mistake(position, f"alias {quoted('*' + event.anchor)} {problem}")

            return Node(position, None, broken=True)

        if len(self.stack) + target.height > MAX_DEPTH:
            raise UnreadableError(position, f"nested deeper than {MAX_DEPTH}, aliases written out")

        self._weigh(position, target.weight)

        return replace(target, position=position, block=False)

    def _scalar(self, event: Any) -> Node:
        self._refuse_tag(event)
        position, text = self._position(event), event.value
        weight = 1 + len(text) // _WEIGHT_CHARACTERS
        self._weigh(position, weight)

        if event.style:
            return Node(position, text, written=json.dumps(text, ensure_ascii=False), weight=weight)

        value, problem = resolve(text)

        if problem:
            self._mistake(position, problem)

        return Node(position, value, written=text, weight=weight, broken=bool(problem) or event.tag is not None)


def resolve(text: str) -> tuple[str | int | float | bool | None, str]:
    """
    Returns the value of the unquoted scalar *text* in the core schema, and its mistake or `""`.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text], ""

    if _LEADING_ZERO.fullmatch(text):
        return None, f'a number with a leading zero: write {_without_zeros(text)} or "{text}", got {quoted(text)}'

    if _INTEGER.fullmatch(text):
        return _integer(text)

    if _NOT_FINITE.fullmatch(text):
        return None, f"not a finite number: got {quoted(text)}"

    if _FLOAT.fullmatch(text):
        value = float(text)
        return (value, "") if math.isfinite(value) else (None, f"not a finite number: got {quoted(text)}")

    return text, ""


def _without_zeros(text: str) -> str:
    sign = text[0] if text[0] in "+-" else ""

    return sign + (text.lstrip("+-0") or "0")


def _integer(text: str) -> tuple[int | None, str]:
    value = int(text, 0) if len(text) <= _MAX_DIGITS else _MAX_INTEGER + 1

    return (value, "") if abs(value) <= _MAX_INTEGER else (None, f"a number above 2^63 - 1: got {quoted(text)}")
