"""
Policy files: YAML read strictly, and every mistake told at its place.

Promises, each with a test:

* YAML is read as editors read it, by the 1.2 core schema: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and
  `2024-01-01` are text. So are numbers that readers disagree on (`010`) or without a finite value: mistakes where a number is wanted.
* No text does harm: its depth is looked at while it is read. Tags but `!replace`, anchors and second documents end the reading.
* A mistake is `file:line:column: message`, the line and a caret, on three lines that any terminal can show. It names the value as it was
  written, how to write it if that is plain, and the key or the word that was probably meant.
* A policy is found by its name among the library's own, or at a path; the working directory is never searched for a name.
"""

import json
import math
import re

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import Fault, quoted, suggestion

from .reload import is_name


MAX_DEPTH: Final = 32
LIST_DEPTH: Final = 2
"""Of the lists of a policy, such as `tools:`."""
PATH: Final = 500
"""Characters of a path in a message: its end is what tells it apart."""
_LINE: Final = 100
_MAX_INTEGER: Final = (1 << 63) - 1

# Beside control characters: breaks that are one in YAML 1.1 but not in 1.2, the byte order mark, surrogates.
_FORBIDDEN: Final = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
_BREAK: Final = r"\r\n|\r|\n"
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT: Final = r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_TRUTHS: Final = {
    **dict.fromkeys(("yes", "on", "y", "true", "1"), "true"),
    **dict.fromkeys(("no", "off", "n", "false", "0"), "false"),
}


# Values and their places


class Source(NamedTuple):
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


def lines_of(mistakes: Iterable[Mistake], sources: Sequence[Source]) -> list[str]:
    """
    Returns the texts of *mistakes*, in the order of their places, file by file.
    """
    ordered = sorted({*mistakes}, key=lambda one: (sources.index(one.position.source), *one.position[1:], one.message))
    return [*map(str, ordered)]


@dataclass(slots=True, eq=False)
class Node:
    """
    A value of the text.
    """

    position: Position
    """The place to point at if the value is wrong: of a collection spread over lines that is its key."""
    value: "str | int | float | bool | list[Node] | dict[str, Node] | None"
    written: str = ""
    """A scalar as it was written, quoted text in double quotes."""
    key: Position | None = None
    """The place of its key, if it has one."""
    replaces: bool = False
    """It is marked `!replace`: a list that stands alone."""

    @property
    def named(self) -> Position:
        """
        The place to point at if its key is wrong.
        """
        return self.key or self.position


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
        value: Any = None if node is None else node.value
        try:
            node = None if isinstance(value, str) else value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return node


def items(node: Node | None, key: str) -> list[Node]:
    """
    Returns the values of the list under *key*; none if there is no list.
    """
    found = inner(node, key)
    return found.value if found is not None and isinstance(found.value, list) else []


def inside(node: Node, line: int, column: int) -> Position:
    """
    Returns the place of a line and column of the text that *node* is: of one on its own line, or of a block with `|`.
    """
    at = node.position
    mark = at.source.lines[at.line - 1][at.column - 1]
    if line == 1 and mark not in "|>":
        return at._replace(column=at.column + column - 1 + (mark in "\"'"))
    if mark != "|" or at.line + line > len(at.source.lines):
        return at
    text = at.source.lines[at.line + line - 1]
    return Position(at.source, at.line + line, len(text) - len(text.lstrip()) + column)


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


class _UnreadableError(Exception):
    """
    The place from which a text is not read any further, and why.
    """


def parse(text: bytes | str, name: str) -> Parsed:
    """
    Read *text* (bytes: UTF-8), called *name* in messages. Raises nothing: mistakes are data.
    """
    decoded = text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    source, mistakes = Source(name, tuple(re.split(_BREAK, decoded))), list[Mistake]()
    try:
        return Parsed(source, _root(decoded, source, mistakes), mistakes)
    except _UnreadableError as error:
        return Parsed(source, None, [Mistake(*error.args)])


def _root(text: str, source: Source, mistakes: list[Mistake]) -> Node:
    if found := re.search(_FORBIDDEN, text):
        lines, code = re.split(_BREAK, text[: found.start()]), ord(found[0])
        no_utf8 = f"not UTF-8: byte 0x{code & 0xFF:02x}, save the file as UTF-8"
        reason = no_utf8 if 0xDC80 <= code <= 0xDCFF else f"the character U+{code:04X} is not allowed"
        raise _UnreadableError(Position(source, len(lines), len(lines[-1]) + 1), reason)
    try:
        roots = [*_values(yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), source, mistakes)]
    except yaml.MarkedYAMLError as error:
        raise _UnreadableError(*_no_yaml(error, source)) from None
    if not roots:
        raise _UnreadableError(Position(source, 1, 1), "the file is empty")
    if len(roots) > 1:
        raise _UnreadableError(roots[1].position, "a second document: a policy is one")
    return roots[0]


def _values(events: Iterator[Any], source: Source, mistakes: list[Mistake], depth: int = 1) -> Iterator[Node]:
    """
    Returns the values that *events* tell of, until the collection ends that they are in.
    """
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return
        if not hasattr(event, "anchor"):
            # The beginning or the end of the text, or of a document.
            continue
        position = Position(source, event.start_mark.line + 1, event.start_mark.column + 1)
        below = _values(events, source, mistakes, depth + 1)
        if reason := _refusal(event, depth):
            raise _UnreadableError(position, reason)
        if isinstance(event, yaml.SequenceStartEvent):
            yield Node(position, [*below], replaces=event.tag == "!replace")
        elif isinstance(event, yaml.MappingStartEvent):
            yield Node(position, _map(below, mistakes))
        elif event.style:
            yield Node(position, event.value, json.dumps(event.value, ensure_ascii=False))
        else:
            yield Node(position, resolve(event.value), event.value)


def _map(nodes: Iterator[Node], mistakes: list[Mistake]) -> dict[str, Node]:
    """
    Returns the map of *nodes*, which are keys and values in turn.
    """
    made: dict[str, Node] = {}
    for key, node in zip(nodes, nodes, strict=True):
        name, reason = str(key.value) if key.written.startswith('"') else key.written, ""
        if isinstance(key.value, dict | list):
            reason = "a key must be text"
        elif key.written == "<<":
            reason = "merge keys `<<` are not allowed, write the keys out or use `extends`"
        elif name in made:
            reason = f"key {quoted(name)} is given twice (first on line {made[name].named.line})"
        if reason:
            mistakes.append(Mistake(key.position, reason))
            continue
        made[name], node.key = node, key.position
        if isinstance(node.value, dict | list) and node.position.line > key.position.line:
            node.position = key.position
    return made


def _refusal(event: Any, depth: int) -> str:
    """
    Returns why a policy has no use for what *event* begins, or is too deep to read on; "" if it has one.
    """
    tag = getattr(event, "tag", None)
    if depth > MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
        return f"nested deeper than {MAX_DEPTH}"
    if event.anchor:
        return "anchors and aliases are not allowed, write the value out"
    if tag == "!replace" and not (depth == LIST_DEPTH and isinstance(event, yaml.SequenceStartEvent)):
        return "`!replace` stands before the list of `tools:` or `rules:` only"
    if tag not in (None, "!", "!replace"):
        return f"tags such as {quoted(tag.replace('tag:yaml.org,2002:', '!!'))} are not allowed, write a plain value"
    return ""


def _no_yaml(error: yaml.MarkedYAMLError, source: Source) -> tuple[Position, str]:
    mark = error.problem_mark or error.context_mark
    line = min(mark.line, len(source.lines) - 1) if mark else 0
    shown = source.lines[line]
    column = mark.column if mark and mark.line == line else len(shown)
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    fix = " (a value with `: ` in it needs quotes)" if "mapping values" in problem else ""
    tab = "\t" in shown[: len(shown) - len(shown.lstrip())]
    reason = "a tab in the indentation: use spaces" if tab else f"not YAML: {problem}{fix}"
    return Position(source, line + 1, column + 1), reason


def resolve(text: str) -> str | int | float | bool | None:
    """
    Returns the value of the unquoted scalar *text* in the core schema. A number that readers disagree on is text.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if re.fullmatch(_INTEGER, text):
        whole = int(text, 0) if len(text) <= 20 else _MAX_INTEGER + 1
        return whole if abs(whole) <= _MAX_INTEGER else text
    number = float(text) if re.fullmatch(_FLOAT, text) else math.inf
    return number if math.isfinite(number) else text


# Faults at their places


def mistakes_at(faults: Iterable[Fault], root: Node) -> Iterator[Mistake]:
    """
    Returns *faults* in the data of *root*, as mistakes at their places.
    """
    for fault in faults:
        node = root
        for part in fault.path:
            node = inner(node, part) or node
        where = re.sub(r"\s+", " ", ".".join(map(str, fault.path)))
        if fault.kind != "value":
            yield Mistake(node.named, fault.said)
        else:
            sentence = fault.sentence(got(node), _fix(fault.expected[0], node) if fault.expected else "")
            yield Mistake(node.position, f"{where}: {sentence}" if where else sentence)


def _fix(kind: str, node: Node) -> str:
    """
    Returns how the value of *node* would have to be written to be of *kind*, "" if that is not plain.
    """
    value, written, text = node.value, node.written, ""
    number = resolve(re.sub(r'[",_]', "", written))
    if not written or value is None:
        return ""
    if kind == "true or false":
        text = _TRUTHS.get(str(value).casefold(), "")
    elif kind == "text":
        text = json.dumps(written, ensure_ascii=False)
    elif kind == "a list":
        text = f"[{json.dumps(value, ensure_ascii=False)}]"
    elif type(number) is int or (type(number) is float and (kind == "a number" or number.is_integer())):
        text = f"{number}".removesuffix(".0")
    return f"write {text}, " if text not in ("", written) else ""


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
        there = f"{suggestion(name_or_path, known)}; there are {', '.join(map(quoted, known))}"
        raise PolicyError(
            [f"no policy named {quoted(name_or_path)}{there}; a file is written as a path, `./{name_or_path}.yaml`"]
        )
    path = Path(name_or_path)
    with suppress(OSError, ValueError):
        if path.is_file():
            return path
    raise PolicyError([f"no policy file {quoted(str(path), PATH)}"])
