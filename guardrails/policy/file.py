"""
Policy files: YAML read strictly, and every mistake told at its place.

Promises, each with a test:

* YAML is read as editors read it, by the 1.2 core schema: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and
  `2024-01-01` are text. Text that readers disagree on (`010`), tags, anchors, merge keys, repeated keys, second documents and numbers without a
  finite value are mistakes.
* No text does harm: size, depth and mistakes are bounded while a text is read.
* A mistake is `file:line:column: message`, the line and a caret, on three lines that any terminal can show. It names the value as it was
  written, how to write it if that is plain, and the key or the word that was probably meant.
* A policy is found by its name among the library's own, or at a path; the working directory is never searched for a name.
"""

import json
import math
import re

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import Fault, quoted, suggestion

from .reload import is_name


REPLACE: Final = "!replace"
"""The tag of a list of `tools:` that drops those of the policies it extends."""
MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 32
MAX_MISTAKES: Final = 200
PATH: Final = 500
"""Characters of a path in a message: its end is what tells it apart."""
_LINE: Final = 100

# Beside control characters: breaks that are one in YAML 1.1 but not in 1.2, the byte order mark, surrogates.
_FORBIDDEN: Final = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
_BREAK: Final = r"\r\n|\r|\n"
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT: Final = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_MAX_INTEGER: Final = (1 << 63) - 1
_NUMBERS: Final = {
    "a whole number": r'"?([-+]?[0-9][0-9_,]*)(?:\.0*)?"?',
    "a number": r'"([-+]?[0-9]+(?:\.[0-9]+)?)"',
}
"""Text that people write for a number, by its kind."""
_YES: Final = ("yes", "on", "y", "true", "1")
_NO: Final = ("no", "off", "n", "false", "0")


# Values and their places


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """
    A text and the name it goes by in messages.
    """

    name: str
    lines: tuple[str, ...]


class Position(NamedTuple):
    """
    A place in a text; *line* and *column* count from 1, columns in characters.
    """

    source: Source
    line: int
    column: int


class Mistake(NamedTuple):
    """
    One mistake, and its place.
    """

    position: Position
    message: str

    def __str__(self) -> str:
        source, line, column = self.position
        text = source.lines[line - 1] if line <= len(source.lines) else ""
        start = max(0, column - 1 - _LINE // 2) if len(text) > _LINE else 0
        heading, shown = f"{source.name}:{line}:{column}: {self.message}", text[start : start + _LINE]
        return f"{_printable(heading)}\n    {_printable(shown)}\n    {' ' * (column - 1 - start)}^"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


@dataclass(slots=True, eq=False)
class Node:
    """
    A value of the text. Nothing changes one once it is read.
    """

    position: Position
    value: "str | int | float | bool | list[Node] | dict[str, Node] | None"
    written: str = ""
    """A scalar as it was written, quoted text in double quotes."""
    block: bool = False
    """A collection spread over lines: messages about it point to its key."""
    broken: bool = False
    """A mistake was reported here, the value says nothing."""
    replaces: bool = False
    """A list of `tools:` that is tagged `!replace`."""
    key: Position | None = None
    """The place of its key, if it has one."""

    @property
    def named(self) -> Position:
        """
        The place to point at if its key is wrong.
        """
        return self.key or self.position

    @property
    def place(self) -> Position:
        """
        The place to point at if the value is wrong.
        """
        return self.named if self.block else self.position


def plain(node: Node) -> Any:
    """
    Returns the value of *node* without positions: dicts, lists and scalars.
    """
    if isinstance(node.value, dict):
        return {key: plain(value) for key, value in node.value.items()}
    return [plain(item) for item in node.value] if isinstance(node.value, list) else node.value


def inner(node: Node | None, *path: str | int) -> Node | None:
    """
    Returns the value at *path* below *node*; None if there is none.
    """
    for part in path:
        value = None if node is None else node.value
        if isinstance(value, dict) and isinstance(part, str):
            node = value.get(part)
        else:
            node = value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None
    return node


def items(node: Node | None, key: str) -> list[Node]:
    """
    Returns the values of the list under *key*; none if there is no list.
    """
    found = inner(node, key)
    return found.value if found is not None and isinstance(found.value, list) else []


def got(node: Node) -> str:
    """
    Returns the value that was found, as it was written.
    """
    if isinstance(node.value, dict | list):
        return "a map" if isinstance(node.value, dict) else "a list"
    return quoted(node.written) if node.written else "nothing"


# YAML


class Parsed(NamedTuple):
    """
    A text that was read. Its *root* is None if it could not be read to its end.
    """

    source: Source
    root: Node | None
    mistakes: list[Mistake]


class _Unreadable(Exception):
    """
    A mistake that ends the reading.
    """

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.mistake = Mistake(position, message)


def parse(text: bytes | str, name: str) -> Parsed:
    """
    Read *text* (bytes: UTF-8), called *name* in messages. Raises nothing: mistakes are data.
    """
    decoded = text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    source = Source(name, tuple(re.split(_BREAK, decoded)))
    reading = _Reading(source)
    try:
        _check_text(decoded, source, is_bytes=decoded is not text)
        root = reading.document(decoded)
    except _Unreadable as stopped:
        return Parsed(source, None, [*reading.mistakes, stopped.mistake])
    except yaml.MarkedYAMLError as error:
        return Parsed(source, None, [*reading.mistakes, _no_yaml(error, source)])
    return Parsed(source, root, reading.mistakes)


def _check_text(text: str, source: Source, *, is_bytes: bool) -> None:
    if len(text) > MAX_BYTES:
        raise _Unreadable(Position(source, 1, 1), f"the file is larger than {MAX_BYTES} bytes")
    if found := re.search(_FORBIDDEN, text):
        lines, code = re.split(_BREAK, text[: found.start()]), ord(found[0])
        said = f"the character U+{code:04X} is not allowed"
        if is_bytes and 0xDC80 <= code <= 0xDCFF:
            said = f"not UTF-8: byte 0x{code - 0xDC00:02x}, save the file as UTF-8"
        raise _Unreadable(Position(source, len(lines), len(lines[-1]) + 1), said)


def _no_yaml(error: yaml.MarkedYAMLError, source: Source) -> Mistake:
    mark = error.problem_mark or error.context_mark
    line = min(mark.line, len(source.lines) - 1) if mark else 0
    shown = source.lines[line]
    column = mark.column if mark and mark.line == line else len(shown)
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    fix = " (a value with `: ` in it needs quotes)" if "mapping values" in problem else ""
    tab = "\t" in shown[: len(shown) - len(shown.lstrip())]
    said = f"nested deeper than {MAX_DEPTH}" if "nesting" in problem else f"not YAML: {problem}{fix}"
    return Mistake(Position(source, line + 1, column + 1), "a tab in the indentation: use spaces" if tab else said)


class _Reading:
    """
    Makes the tree of a policy from the events of a YAML parser.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.mistakes: list[Mistake] = []

    def document(self, text: str) -> Node:
        """
        Returns the one value of *text*.
        """
        self.events: Iterator[Any] = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        root = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    said = "expected a single document in the stream, but found another document"
                    raise _Unreadable(self._position(event), f"not YAML: {said}")
                root = self.node(next(self.events), ())
        if root is None or (root.value is None and not root.broken):
            raise _Unreadable(Position(self.source, 1, 1), "the file is empty")
        return root

    def node(self, event: Any, path: tuple[str, ...]) -> Node:
        """
        Returns the value that begins with *event*, at *path*.
        """
        position, listed = self._position(event), isinstance(event, yaml.SequenceStartEvent)
        replaces = listed and event.tag == REPLACE and path == ("tools",)
        broken = not replaces and self._is_refused(event, position)
        if isinstance(event, yaml.CollectionStartEvent):
            if len(path) >= MAX_DEPTH:
                raise _Unreadable(position, f"nested deeper than {MAX_DEPTH}")
            value = self._list(path) if listed else self._map(path)
            return Node(position, value, block=not event.flow_style, replaces=replaces)
        text = getattr(event, "value", "")
        if getattr(event, "style", None):
            return Node(position, text, json.dumps(text, ensure_ascii=False), broken=broken)
        scalar, problem = resolve(text)
        if problem:
            self._mistake(position, problem)
        return Node(position, scalar, text, broken=broken or bool(problem))

    def _list(self, path: tuple[str, ...]) -> list[Node]:
        made = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            made.append(self.node(event, (*path, "")))
        return made

    def _map(self, path: tuple[str, ...]) -> dict[str, Node]:
        made: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            position, key = self._position(event), getattr(event, "value", None)
            if key is None:
                self.node(event, (*path, ""))
                self._mistake(position, "a key must be text")
            else:
                self._is_refused(event, position)
            node = self.node(next(self.events), (*path, key or ""))
            if key == "<<" and not event.style:
                self._mistake(position, "merge keys `<<` are not allowed, write the keys out or use `extends`")
            elif key in made:
                self._mistake(position, f"key {quoted(key)} is given twice (first on line {made[key].named.line})")
            elif key is not None:
                node.key = position
                made[key] = node
        return made

    def _position(self, event: Any) -> Position:
        return Position(self.source, event.start_mark.line + 1, event.start_mark.column + 1)

    def _is_refused(self, event: Any, position: Position) -> bool:
        tag = getattr(event, "tag", None)
        if event.anchor:
            self._mistake(position, "anchors and aliases are not allowed, write the value out")
        elif tag == REPLACE:
            self._mistake(position, f"`{REPLACE}` stands before the list of `tools:` only")
        elif tag not in (None, "!"):
            shown = quoted(tag.replace("tag:yaml.org,2002:", "!!"))
            self._mistake(position, f"tags such as {shown} are not allowed, write a plain value")
        return bool(event.anchor) or tag not in (None, "!")

    def _mistake(self, position: Position, message: str) -> None:
        if len(self.mistakes) >= MAX_MISTAKES:
            raise _Unreadable(position, f"more than {MAX_MISTAKES} mistakes stand above")
        self.mistakes.append(Mistake(position, message))


def resolve(text: str) -> tuple[str | int | float | bool | None, str]:
    """
    Returns the value of the unquoted scalar *text* in the core schema, and its mistake or `""`.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text], ""
    if re.fullmatch(r"[-+]?0[0-9]+", text):
        digits = text[: text[0] in "+-"] + (text.lstrip("+-0") or "0")
        return None, f'a number with a leading zero: write {digits} or "{text}", got {quoted(text)}'
    if re.fullmatch(_INTEGER, text):
        whole = int(text, 0) if len(text) <= 20 else _MAX_INTEGER + 1
        big = abs(whole) > _MAX_INTEGER
        return (None, f"a number above 2^63 - 1: got {quoted(text)}") if big else (whole, "")
    if re.fullmatch(_FLOAT, text):
        number = float(text) if text.lstrip("+-").lower() not in (".inf", ".nan") else math.inf
        return (number, "") if math.isfinite(number) else (None, f"not a finite number: got {quoted(text)}")
    return text, ""


# Faults at their places


def mistakes_at(faults: Sequence[Fault], root: Node) -> Iterator[Mistake]:
    """
    Returns *faults* in the data of *root*, as mistakes at their places.
    """
    for fault in faults[:MAX_MISTAKES]:
        node = root
        for part in fault.path:
            node = inner(node, part) or node
        where = re.sub(r"\s+", " ", ".".join(map(str, fault.path)))
        if fault.kind in ("unknown", "missing"):
            yield Mistake(node.named, fault.said)
        elif fault.kind == "key":
            yield Mistake(node.named, f"{where}: {fault.sentence(quoted(str(fault.path[-1])))}")
        elif not node.broken:
            said = fault.sentence(got(node), _fix(fault.expected[0], node) if fault.expected else "")
            yield Mistake(node.place, f"{where}: {said}" if where else said)
    if len(faults) > MAX_MISTAKES:
        yield Mistake(root.position, f"more than {MAX_MISTAKES} mistakes: {len(faults) - MAX_MISTAKES} are not shown")


def _fix(kind: str, node: Node) -> str:
    """
    Returns how the value of *node* would have to be written to be of *kind*, "" if that is not plain.
    """
    written, value = node.written, node.value
    if value is None or not written:
        return ""
    text, folded = "", str(value).casefold()
    if kind in _NUMBERS:
        found = re.fullmatch(_NUMBERS[kind], written)
        text = re.sub(r"[_,]", "", found[1]) if found else ""
    elif kind == "true or false":
        text = "true" if folded in _YES else "false" if folded in _NO else ""
    elif kind in ("text", "a list"):
        text = json.dumps(written if kind == "text" else value, ensure_ascii=False)
        text = text if kind == "text" else f"[{text}]"
    return f"write {text}, " if text else ""


# Files


def names() -> list[str]:
    """
    Returns the policies that are found by name, sorted.
    """
    return sorted(path.stem for path in shipped().glob("*.yaml"))


def shipped(package: Path = Path(__file__).parents[1]) -> Path:
    """
    Returns the folder of the policies that come with the library in the folder *package*: inside it after an install, beside it in the
    repository.
    """
    # A wheel carries the policies inside the package; beside it in site-packages, `policies` would be someone else's.
    packaged = package / "_policies"
    return packaged if packaged.is_dir() else package.parent / "policies"


def find(name_or_path: str | PathLike[str]) -> Path:
    """
    Returns the file of a policy: of a bare name in the library's own folder and nowhere else, else the path.

    Raises PolicyError if there is no such file, naming the policies there are.
    """
    if isinstance(name_or_path, str) and is_name(name_or_path):
        known = names()
        if name_or_path in known:
            return shipped() / f"{name_or_path}.yaml"
        listed = f"; there are {', '.join(map(quoted, known))}" if known else ""
        hint = f"{suggestion(name_or_path, known)}{listed}; a file is written as a path, `./{name_or_path}.yaml`"
        raise PolicyError([f"no policy named {quoted(name_or_path)}{hint}"])
    path = Path(name_or_path)
    try:
        found = path.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        raise PolicyError([f"no policy file {quoted(str(path), PATH)}"])
    return path
