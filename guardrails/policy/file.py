"""
Policy files: YAML read strictly, and every mistake told at its place.

Promises, each with a test:

* YAML is read as editors read it, by the 1.2 core schema: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and
  `2024-01-01` are text. So are numbers that readers disagree on (`010`) or without a finite value: mistakes where a number is wanted.
* No text does harm: its size and depth are checked before it is put together. Tags, anchors, merge keys and second documents end the reading.
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


REPLACE: Final = "!replace"
"""The tag of a list of `tools:` that drops those of the policies it extends."""
MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 32
MAX_MISTAKES: Final = 200
PATH: Final = 500
"""Characters of a path in a message: its end is what tells it apart."""
_LINE: Final = 100
_MAX_INTEGER: Final = (1 << 63) - 1
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

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
_NUMBERS: Final = {
    "a whole number": r'"?([-+]?)0*([0-9][0-9_,]*)(?:\.0*)?"?',
    "a number": r'"?([-+]?)0*([0-9]+(?:\.[0-9]+)?)"?',
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


def told(mistakes: Iterable[Mistake], sources: Sequence[Source]) -> list[str]:
    """
    Returns the texts of the first 200 of *mistakes*, in the order of their places, file by file.
    """
    ordered = sorted({*mistakes}, key=lambda one: (sources.index(one.position.source), *one.position[1:], one.message))
    more = [f"more than {MAX_MISTAKES} mistakes: {len(ordered) - MAX_MISTAKES} are not shown"]
    return [*map(str, ordered[:MAX_MISTAKES]), *more * (len(ordered) > MAX_MISTAKES)]


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
        value: Any = None if node is None else node.value
        try:
            node = value[part]
        except (KeyError, IndexError, TypeError):
            return None
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


class _UnreadableError(Exception):
    """
    A mistake that ends the reading.
    """


def parse(text: bytes | str, name: str) -> Parsed:
    """
    Read *text* (bytes: UTF-8), called *name* in messages. Raises nothing: mistakes are data.
    """
    decoded = text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    source, root = Source(name, tuple(re.split(_BREAK, decoded))), None
    mistakes: list[Mistake] = []
    try:
        _check_text(decoded, source)
        _check_events(decoded, source)
        root = _node(yaml.compose(decoded, Loader=_LOADER), source, mistakes)
    except _UnreadableError as stopped:
        mistakes.append(stopped.args[0])
    except yaml.MarkedYAMLError as error:
        mistakes.append(_no_yaml(error, source))
    return Parsed(source, root, mistakes)


def _check_text(text: str, source: Source) -> None:
    """
    Raise _UnreadableError if *text* is too large, or has a character that no policy has. A byte that is not UTF-8 is decoded as such a one.
    """
    if len(text) > MAX_BYTES:
        raise _UnreadableError(Mistake(Position(source, 1, 1), f"the file is larger than {MAX_BYTES} bytes"))
    if found := re.search(_FORBIDDEN, text):
        lines, code = re.split(_BREAK, text[: found.start()]), ord(found[0])
        said = f"the character U+{code:04X} is not allowed"
        if 0xDC80 <= code <= 0xDCFF:
            said = f"not UTF-8: byte 0x{code - 0xDC00:02x}, save the file as UTF-8"
        raise _UnreadableError(Mistake(Position(source, len(lines), len(lines[-1]) + 1), said))


def _check_events(text: str, source: Source) -> None:
    """
    Raise _UnreadableError if *text* is empty, nested too deep for what puts it together, or says in YAML what a policy has no use for.
    """
    depth, values = 0, 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        tag, said = getattr(event, "tag", None), ""
        if depth > MAX_DEPTH:
            said = f"nested deeper than {MAX_DEPTH}"
        elif getattr(event, "anchor", None):
            said = "anchors and aliases are not allowed, write the value out"
        elif tag not in (None, "!", REPLACE):
            said = (
                f"tags such as {quoted(tag.replace('tag:yaml.org,2002:', '!!'))} are not allowed, write a plain value"
            )
        if said:
            raise _UnreadableError(Mistake(_position(event, source), said))
    if not values:
        raise _UnreadableError(Mistake(Position(source, 1, 1), "the file is empty"))


def _position(at: Any, source: Source) -> Position:
    return Position(source, at.start_mark.line + 1, at.start_mark.column + 1)


def _node(at: Any, source: Source, mistakes: list[Mistake], *path: str) -> Node:
    position = _position(at, source)
    if at.tag == REPLACE and (path != ("tools",) or not isinstance(at, yaml.SequenceNode)):
        raise _UnreadableError(Mistake(position, f"`{REPLACE}` stands before the list of `tools:` only"))
    if isinstance(at, yaml.ScalarNode):
        written = json.dumps(at.value, ensure_ascii=False) if at.style else at.value
        return Node(position, at.value if at.style else resolve(at.value), written)
    block = not at.flow_style
    if isinstance(at, yaml.SequenceNode):
        listed = [_node(one, source, mistakes, *path, "") for one in at.value]
        return Node(position, listed, block=block, replaces=at.tag == REPLACE)
    made: dict[str, Node] = {}
    for key, value in at.value:
        place, name = _position(key, source), key.value
        if not isinstance(name, str) or (name == "<<" and not key.style):
            said = "merge keys `<<` are not allowed, write the keys out or use `extends`"
            raise _UnreadableError(Mistake(place, said if name == "<<" else "a key must be text"))
        if name in made:
            mistakes.append(
                Mistake(place, f"key {quoted(name)} is given twice (first on line {made[name].named.line})")
            )
        else:
            made[name] = _node(value, source, mistakes, *path, name)
            made[name].key = place
    return Node(position, made, block=block)


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
        if fault.kind in ("unknown", "missing"):
            yield Mistake(node.named, fault.said)
        elif fault.kind == "key":
            yield Mistake(node.named, f"{where}: {fault.sentence(quoted(str(fault.path[-1])))}")
        else:
            said = fault.sentence(got(node), _fix(fault.expected[0], node) if fault.expected else "")
            yield Mistake(node.place, f"{where}: {said}" if where else said)


def _fix(kind: str, node: Node) -> str:
    """
    Returns how the value of *node* would have to be written to be of *kind*, "" if that is not plain.
    """
    written, folded, text = node.written, str(node.value).casefold(), ""
    if node.value is None or not written:
        return ""
    if kind in _NUMBERS:
        found = re.fullmatch(_NUMBERS[kind], written)
        text = re.sub(r"[_,]", "", found[1] + found[2]) if found else ""
    elif kind == "true or false":
        text = "true" if folded in _YES else "false" if folded in _NO else ""
    elif kind == "text":
        text = json.dumps(written, ensure_ascii=False)
    elif kind == "a list":
        text = f"[{json.dumps(node.value, ensure_ascii=False)}]"
    return f"write {text}, " if text and text != written else ""


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
