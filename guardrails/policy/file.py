"""
Policy files: YAML read strictly, and every mistake told at its place.

Promises, each with a test:

* YAML is read as editors read it, by the 1.2 core schema: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and
  `2024-01-01` are text. So are numbers that readers disagree on (`010`) or without a finite value: mistakes where a number is wanted.
* No text does harm: its size and depth are checked before it is put together. Tags but `!replace`, anchors and second documents end the reading.
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


MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 32
LIST_DEPTH: Final = 2
"""Of the lists of a policy, such as `tools:`."""
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
_TRUTHS: Final = {
    **dict.fromkeys(("yes", "on", "y", "true", "1"), "true"),
    **dict.fromkeys(("no", "off", "n", "false", "0"), "false"),
}


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


def lines_of(mistakes: Iterable[Mistake], sources: Sequence[Source]) -> list[str]:
    """
    Returns the texts of the first 200 of *mistakes*, in the order of their places, file by file.
    """
    ordered = sorted({*mistakes}, key=lambda one: (sources.index(one.position.source), *one.position[1:], one.message))
    more = [f"more than {MAX_MISTAKES} mistakes: {len(ordered) - MAX_MISTAKES} are not shown"]
    return [*map(str, ordered[:MAX_MISTAKES]), *more * (len(ordered) > MAX_MISTAKES)]


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


def parse(text: bytes | str, name: str) -> Parsed:
    """
    Read *text* (bytes: UTF-8), called *name* in messages. Raises nothing: mistakes are data.
    """
    decoded = text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    source, mistakes = Source(name, tuple(re.split(_BREAK, decoded))), list[Mistake]()
    unreadable = next(_unreadable(decoded, source), None)
    if unreadable is not None:
        return Parsed(source, None, [unreadable])
    return Parsed(source, _node(yaml.compose(decoded, Loader=_LOADER), source, mistakes), mistakes)


def _unreadable(text: str, source: Source) -> Iterator[Mistake]:
    """
    Returns what keeps *text* from being read: a character that no policy has (bytes that are not UTF-8 are decoded as such), what is no YAML,
    what YAML has and a policy has no use for, and all that is too large or too deep for what puts it together.
    """
    start = Position(source, 1, 1)
    if len(text) > MAX_BYTES:
        yield Mistake(start, f"the file is larger than {MAX_BYTES} bytes")
    for found in re.finditer(_FORBIDDEN, text):
        lines, code = re.split(_BREAK, text[: found.start()]), ord(found[0])
        no_utf8 = f"not UTF-8: byte 0x{code & 0xFF:02x}, save the file as UTF-8"
        reason = no_utf8 if 0xDC80 <= code <= 0xDCFF else f"the character U+{code:04X} is not allowed"
        yield Mistake(Position(source, len(lines), len(lines[-1]) + 1), reason)
    depth, documents = 0, 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            documents += isinstance(event, yaml.DocumentStartEvent)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            for reason in _refused(event, depth, documents):
                yield Mistake(_position(event, source), reason)
    except yaml.MarkedYAMLError as error:
        yield _no_yaml(error, source)
    if not documents:
        yield Mistake(start, "the file is empty")


def _refused(event: Any, depth: int, documents: int) -> Iterator[str]:
    tag = getattr(event, "tag", None)
    if depth > MAX_DEPTH:
        yield f"nested deeper than {MAX_DEPTH}"
    if documents > 1:
        yield "a second document: a policy is one"
    if getattr(event, "anchor", None):
        yield "anchors and aliases are not allowed, write the value out"
    alone = tag == "!replace" and depth == LIST_DEPTH and isinstance(event, yaml.SequenceStartEvent)
    if tag == "!replace" and not alone:
        yield "`!replace` stands before the list of `tools:` only"
    elif tag not in (None, "!", "!replace"):
        yield f"tags such as {quoted(tag.replace('tag:yaml.org,2002:', '!!'))} are not allowed, write a plain value"


def _position(at: Any, source: Source) -> Position:
    return Position(source, at.start_mark.line + 1, at.start_mark.column + 1)


def _node(at: Any, source: Source, mistakes: list[Mistake]) -> Node:
    position = _position(at, source)
    if isinstance(at, yaml.ScalarNode):
        written = json.dumps(at.value, ensure_ascii=False) if at.style else at.value
        return Node(position, at.value if at.style else resolve(at.value), written)
    if isinstance(at, yaml.SequenceNode):
        return Node(position, [_node(one, source, mistakes) for one in at.value], replaces=at.tag == "!replace")
    made: dict[str, Node] = {}
    for key, value in at.value:
        place, node, reason = _position(key, source), _node(value, source, mistakes), ""
        if not isinstance(key.value, str):
            reason = "a key must be text"
        elif key.value == "<<" and not key.style:
            reason = "merge keys `<<` are not allowed, write the keys out or use `extends`"
        elif key.value in made:
            reason = f"key {quoted(key.value)} is given twice (first on line {made[key.value].named.line})"
        if reason:
            mistakes.append(Mistake(place, reason))
        else:
            made[key.value] = node
            node.key, node.position = place, node.position if getattr(value, "flow_style", True) else place
    return Node(position, made)


def _no_yaml(error: yaml.MarkedYAMLError, source: Source) -> Mistake:
    mark = error.problem_mark or error.context_mark
    line = min(mark.line, len(source.lines) - 1) if mark else 0
    shown = source.lines[line]
    column = mark.column if mark and mark.line == line else len(shown)
    problem = ", ".join(part for part in (error.context, error.problem) if part)
    fix = " (a value with `: ` in it needs quotes)" if "mapping values" in problem else ""
    tab = "\t" in shown[: len(shown) - len(shown.lstrip())]
    reason = "a tab in the indentation: use spaces" if tab else f"not YAML: {problem}{fix}"
    return Mistake(Position(source, line + 1, column + 1), reason)


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
