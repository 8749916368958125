"""
Policy files: YAML read strictly, put together with the files it extends, and every mistake told at its place.

Promises, each with a test:

* YAML is read as editors read it, by the 1.2 core schema: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and
  `2024-01-01` are text. Text that readers disagree on (`010`), tags, merge keys, repeated keys, second documents and numbers without a
  finite value are mistakes.
* No text does harm: size, depth, values (aliases written out), files and mistakes are bounded while a text is read.
* A mistake is `file:line:column: message`, the line and a caret, on three lines that any terminal can show. It names the value as it was
  written, how to write it if that is plain, and the key or the word that was probably meant. All mistakes of all files come at once.
* A policy is found by its name among the library's own, or at a path; the working directory is never searched for a name. Of a file that
  another one extends and that is no policy nothing is shown, and nothing below `/proc`, `/sys` and `/dev` is opened.
* Maps merge key by key, other values replace, the later file wins, the file itself comes last. The rules of `tools:` add up: those of a
  file stand before those of the policies it extends, and each once. `tools: !replace` drops those. A cap that a file writes is not
  softened by what another file said of the cap it replaces.
* Each file is checked by itself too, so that no mistake hides behind a file that replaces it. A key that another file may supply is no
  mistake of a part.
"""

import json
import math
import os
import re

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from yaml.composer import Composer

from guardrails.core.guards import Kinds
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import Fault, quoted, suggestion

from .check import VERSION
from .reload import Content, digest, is_name, stamp


REPLACE: Final = "!replace"
"""The tag of a list of `tools:` that drops those of the policies it extends."""
MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 32
MAX_WEIGHT: Final = 100_000
"""Values of a file once its aliases are written out; a long text counts as one value per 32 characters."""
MAX_MISTAKES: Final = 200
MAX_FILES: Final = 32
_PATH: Final = 500
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
_NO_POLICY: Final = f"is no policy: a policy begins with `version: {VERSION}`"
_SAID_OF: Final = {"max_cost_usd": "on_unpriced"}
"""Settings by the limit that they are said of."""


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
        heading = f"{source.name}:{line}:{column}: {self.message}"
        return (
            f"{_printable(heading)}\n    {_printable(text[start : start + _LINE])}\n    {' ' * (column - 1 - start)}^"
        )


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


@dataclass(slots=True, eq=False)
class Node:
    """
    A value of the text. Merged trees share nodes: nothing changes one once it is read.
    """

    position: Position
    value: "str | int | float | bool | list[Node] | dict[str, Entry] | None"
    written: str = ""
    """A scalar as it was written, quoted text in double quotes."""
    block: bool = False
    """A collection spread over lines: messages about it point to its key."""
    broken: bool = False
    """A mistake was reported here, the value says nothing."""
    replaces: bool = False
    """A list of `tools:` that is tagged `!replace`."""


class Entry(NamedTuple):
    """
    A value with the place of its key (an item of a list and the root: with its own place).
    """

    key: Position
    node: Node

    @property
    def place(self) -> Position:
        """
        The place to point at if the value is wrong.
        """
        return self.key if self.node.block else self.node.position


def plain(node: Node) -> Any:
    """
    Returns the value of *node* without positions: dicts, lists and scalars.
    """
    if isinstance(node.value, dict):
        return {key: plain(entry.node) for key, entry in node.value.items()}
    return [plain(item) for item in node.value] if isinstance(node.value, list) else node.value


def child(node: Node | None, part: str | int) -> Entry | None:
    """
    Returns the value of the map or list *node* at *part*; None if there is none.
    """
    value = None if node is None else node.value
    if isinstance(value, dict):
        return value.get(str(part)) if isinstance(part, str) else None
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return Entry(value[part].position, value[part])
    return None


def inner(node: Node | None, *path: str | int) -> Node | None:
    """
    Returns the value at *path* below *node*; None if there is none.
    """
    for part in path:
        entry = child(node, part)
        node = None if entry is None else entry.node
    return node


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


_Deep: Any = yaml.MarkedYAMLError
_BASES: Any = (Composer, yaml.CSafeLoader) if yaml.__with_libyaml__ else (yaml.SafeLoader,)


class _Loader(*_BASES):  # type: ignore[misc]
    """
    PyYAML's composer over the parser's events, bounded in depth. Untagged nodes have no tag, and an alias has its own place.
    """

    def __init__(self, text: str) -> None:
        _BASES[-1].__init__(self, text)
        Composer.__init__(self)
        self.depth = 0

    def resolve(self, *_: Any) -> str:
        return ""

    def descend_resolver(self, *_: Any) -> None: ...
    def ascend_resolver(self) -> None: ...

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()
        if self.depth >= MAX_DEPTH and isinstance(event, yaml.CollectionStartEvent):
            raise _Deep(problem="nesting", problem_mark=event.start_mark)
        self.depth += 1
        node: Any = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            node = copy(node)
            node.start_mark, node.flow_style = event.start_mark, True
        return node


def parse(text: bytes | str, name: str) -> Parsed:
    """
    Read *text* (bytes: UTF-8 without a byte order mark), called *name* in messages. Raises nothing: mistakes are data.
    """
    decoded = text if isinstance(text, str) else text.decode(errors="replace")
    source = Source(name, tuple(re.split(_BREAK, decoded)))
    reading = _Reading(source)
    try:
        _check_text(text, decoded, source)
        root = reading.node(_composed(decoded, source))
        if root.value is None and not root.broken:
            raise _Unreadable(Position(source, 1, 1), "the file is empty")
    except _Unreadable as stopped:
        return Parsed(source, None, [*reading.mistakes, stopped.mistake])
    return Parsed(source, root, reading.mistakes)


def _check_text(text: bytes | str, decoded: str, source: Source) -> None:
    def place(before: str) -> Position:
        lines = re.split(_BREAK, before)
        return Position(source, len(lines), len(lines[-1]) + 1)

    if len(text) > MAX_BYTES:
        raise _Unreadable(place(""), f"the file is larger than {MAX_BYTES} bytes")
    try:
        _ = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        before, byte = error.object[: error.start].decode(), error.object[error.start]
        raise _Unreadable(place(before), f"not UTF-8: byte 0x{byte:02x}, save the file as UTF-8") from None
    if found := re.search(_FORBIDDEN, decoded):
        raise _Unreadable(place(decoded[: found.start()]), f"the character U+{ord(found[0]):04X} is not allowed")


def _composed(text: str, source: Source) -> Any:
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line, len(source.lines) - 1) if mark else 0
        shown = source.lines[line]
        column = mark.column if mark and mark.line == line else len(shown)
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        fix = " (a value with `: ` in it needs quotes)" if "mapping values" in problem else ""
        said = f"nested deeper than {MAX_DEPTH}" if "nesting" in problem else f"not YAML: {problem}{fix}"
        if "\t" in shown[: len(shown) - len(shown.lstrip())]:
            said = "a tab in the indentation: use spaces"
        raise _Unreadable(Position(source, line + 1, column + 1), said) from None
    if node is None:
        raise _Unreadable(Position(source, 1, 1), "the file is empty")
    return node


class _Reading:
    """
    Makes the tree of a policy from YAML nodes.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.mistakes: list[Mistake] = []
        self.weight = 0

    def node(self, made: Any, path: tuple[str | None, ...] = ()) -> Node:
        position = self._position(made)
        text = made.value if isinstance(made.value, str) else ""
        self.weight += 1 + len(text) // 32
        if self.weight > MAX_WEIGHT:
            raise _Unreadable(position, f"more than {MAX_WEIGHT} values, aliases written out")
        replaces = made.tag == REPLACE and path == ("tools",) and isinstance(made, yaml.SequenceNode)
        if made.tag and not replaces:
            self._refuse_tag(position, made.tag)
        if isinstance(made, yaml.ScalarNode):
            if made.style:
                return Node(position, text, json.dumps(text, ensure_ascii=False), broken=bool(made.tag))
            value, problem = resolve(text)
            if problem:
                self._mistake(position, problem)
            return Node(position, value, text, broken=bool(problem or made.tag))
        if len(path) >= MAX_DEPTH:
            raise _Unreadable(position, f"nested deeper than {MAX_DEPTH}, aliases written out")
        if isinstance(made, yaml.MappingNode):
            return Node(position, self._map(made, path), block=not made.flow_style)
        items = [self.node(item, (*path, None)) for item in made.value]
        return Node(position, items, block=not made.flow_style, replaces=replaces)

    def _map(self, made: Any, path: tuple[str | None, ...]) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for key, value in made.value:
            position, node = self._position(key), self.node(value, (*path, key.value))
            if not isinstance(key, yaml.ScalarNode):
                self._mistake(position, "a key must be text")
                continue
            self.weight += len(key.value) // 32
            if key.tag:
                self._refuse_tag(position, key.tag)
            if key.value == "<<" and not key.style:
                self._mistake(position, "merge keys `<<` are not allowed, write the keys out or use `extends`")
            elif key.value in entries:
                first = entries[key.value].key.line
                self._mistake(position, f"key {quoted(key.value)} is given twice (first on line {first})")
            else:
                entries[key.value] = Entry(position, node)
        return entries

    def _position(self, made: Any) -> Position:
        return Position(self.source, made.start_mark.line + 1, made.start_mark.column + 1)

    def _refuse_tag(self, position: Position, tag: str) -> None:
        shown = quoted(tag.replace("tag:yaml.org,2002:", "!!"))
        where = f"{shown} stands before the list of `tools:` only"
        self._mistake(
            position, where if tag == REPLACE else f"tags such as {shown} are not allowed, write a plain value"
        )

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


# A file and all it extends


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
        raise PolicyError([f"no policy file {quoted(str(path), _PATH)}"])
    return path


@dataclass(slots=True)
class Document:
    """
    A policy file and all it extends.
    """

    kinds: Kinds = ()
    """The guards that it may name."""
    root: Node | None = None
    """The merged settings; None where a file could not be read or is of a newer version."""
    parts: list[Node] = field(default_factory=list)
    """The settings of each readable file by itself."""
    sources: list[Source] = field(default_factory=list)
    """The texts that were read, the named file first."""
    files: dict[str, Content] = field(default_factory=dict)
    """Those that are files, by name."""
    mistakes: list[Mistake] = field(default_factory=list)
    """The mistakes in the YAML, `version` and `extends`."""


def read(name_or_path: str | PathLike[str], kinds: Kinds = ()) -> Document:
    """
    Returns a policy file with all it extends, read but not yet checked. It may name guards of these *kinds*. Raises PolicyError only if there
    is no such file.
    """
    path = find(name_or_path)
    document = Document(kinds)
    try:
        document.root = _Assembly(document).file(path, ())
    except OSError as error:
        raise PolicyError([_unreadable(path, error)]) from None
    return document


class _Assembly:
    """
    Reads files into *document*, each once; a chain is the files from the named one to the one being read.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.aliases = {cls.name: cls.aliases for cls in document.kinds}
        self.named_files = {cls.name: cls.files for cls in document.kinds}
        self.done: dict[Path, Node | None] = {}

    def file(self, path: Path, chain: tuple[Path, ...]) -> Node | None:
        """
        Returns the settings of a file. Raises PolicyError if another one extends it and it is no policy.
        """
        real = path.resolve()
        if real in self.done:
            return self.done[real]
        with path.open("rb") as stream:
            seen, text = stamp(os.fstat(stream.fileno())), stream.read(MAX_BYTES + 1)
        parsed = parse(text, str(path))
        if chain and not _is_policy(parsed):
            raise PolicyError([f"{quoted(str(path), _PATH)} {_NO_POLICY}"])
        self.document.files[str(path)] = Content(seen, digest(text))
        self.document.sources.append(parsed.source)
        self.document.mistakes += parsed.mistakes
        self.done[real] = None if parsed.root is None else self._settings(parsed.root, path, (*chain, path))
        return self.done[real]

    def _settings(self, root: Node, path: Path, chain: tuple[Path, ...]) -> Node | None:
        if not isinstance(root.value, dict):
            self._mistake(root.position, f"not a map of keys: got {got(root)}")
            return None
        settings = {key: entry for key, entry in root.value.items() if key not in ("version", "extends")}
        tools = inner(root, "tools")
        if tools is not None and tools.value is None and not tools.written:
            # All of its rules are comments.
            del settings["tools"]
        own = self._renamed(replace(root, value=settings), path.parent)
        readable = self._readable(child(root, "version"), root.position)
        if readable:
            self.document.parts.append(own)
        parents = list(self._parents(child(root, "extends"), path.parent, chain))
        if not parents or not readable:
            return own if readable else None
        return _laid(reduce(_laid, parents), own, replaces=tools is not None and tools.replaces)

    def _mistake(self, position: Position, message: str) -> None:
        self.document.mistakes.append(Mistake(position, message))

    def _readable(self, entry: Entry | None, start: Position) -> bool:
        if entry is None:
            self._mistake(start, f"missing key `version`: write `version: {VERSION}`, the version of the file format")
        elif entry.node.broken:
            return True
        elif type(version := entry.node.value) is not int or version < 1:
            self._mistake(entry.place, f"version: not a version: write {VERSION}, got {got(entry.node)}")
        elif version > VERSION:
            said = f"version: newer than this library, which reads version {VERSION}: upgrade toolcall-guardrails"
            self._mistake(entry.place, f"{said}, got {got(entry.node)}")
            return False
        return True

    def _parents(self, entry: Entry | None, folder: Path, chain: tuple[Path, ...]) -> Iterator[Node | None]:
        if entry is None:
            return
        for item in entry.node.value if isinstance(entry.node.value, list) else [entry.node]:
            if isinstance(item.value, str) and item.value:
                yield self._parent(item.value, item.position, folder, chain)
            else:
                if not item.broken:
                    self._mistake(Entry(entry.key, item).place, f"extends: not a name or a path: got {got(item)}")
                yield None

    def _parent(self, name: str, position: Position, folder: Path, chain: tuple[Path, ...]) -> Node | None:
        path = Path(name)
        try:
            path = find(name if is_name(name) else folder / name)
            real = path.resolve()
            circle = [at for at, above in enumerate(chain) if above.resolve() == real]
            if real.parts[1:2] in (("proc",), ("sys",), ("dev",)):
                # There to read is to ask: it may wait for ever, and tell what no file tells.
                self._mistake(position, f"extends: no policy file {quoted(str(path), _PATH)}")
            elif circle:
                links = " -> ".join(quoted(str(link), _PATH) for link in [*chain[circle[0] :], path])
                self._mistake(position, f"extends: goes in a circle, {links}")
            elif len(self.document.sources) >= MAX_FILES:
                self._mistake(position, f"extends: more than {MAX_FILES} files")
            else:
                return self.file(path, chain)
        except PolicyError as error:
            self._mistake(position, f"extends: {error}")
        except OSError as error:
            self._mistake(position, f"extends: {_unreadable(path, error)}")
        return None

    def _renamed(self, node: Node, folder: Path, key: str = "") -> Node:
        """
        Returns *node*, the value of *key*, with each key as the settings have it, and each file that a setting names beside the
        policy in *folder* that names it.
        """
        if isinstance(node.value, list):
            return replace(node, value=[self._renamed(item, folder) for item in node.value])
        if not isinstance(node.value, dict):
            return node
        made: dict[str, Entry] = {}
        names, files = self.aliases.get(key, {}), self.named_files.get(key, ())
        for written, entry in node.value.items():
            name, own = names.get(written, written), entry.node
            if name in made:
                said = f"key {quoted(written)} is {quoted(name)} by another name, given twice"
                self._mistake(entry.key, f"{said} (first on line {made[name].key.line})")
                continue
            if name in files and isinstance(own.value, str) and own.value:
                own = replace(own, value=str(folder.absolute() / own.value))
            made[name] = entry._replace(node=self._renamed(own, folder, name))
        return replace(node, value=made)


def _is_policy(parsed: Parsed) -> bool:
    """
    Whether a file says that it is a policy. The content of another file may be a secret, and is not shown in a mistake.
    """
    if parsed.root is None:
        line = re.compile(r"version:[ ]{1,9}[0-9]{1,9}\s{0,9}(?:#.*)?")
        return any(line.fullmatch(one[:200]) for one in parsed.source.lines[:200])
    version = inner(parsed.root, "version")
    return version is not None and type(version.value) is int


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {quoted(str(path), _PATH)}: {(error.strerror or 'unknown error').lower()}"


def _laid(base: Node | None, over: Node | None, *, replaces: bool = False) -> Node | None:
    """
    Returns the settings *over* laid upon *base*: the rules of `tools:` stand before those of *base*, or *replaces* them.
    Returns None if one of both could not be read.
    """
    if base is None or over is None:
        return None
    merged, own, below = _merged(base, over), rules(over), rules(base)
    tools = child(merged, "tools")
    if replaces or tools is None or not isinstance(tools.node.value, list) or not isinstance(merged.value, dict):
        return merged
    # Two files may extend the same one: its rules stand once, below those of both.
    again = set(map(id, below))
    both = [*(rule for rule in own if id(rule) not in again), *below]
    return replace(merged, value={**merged.value, "tools": tools._replace(node=replace(tools.node, value=both))})


def _merged(base: Node, over: Node) -> Node:
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    merged = dict(base.value)
    for limit, setting in _SAID_OF.items():
        if limit in base.value and limit in over.value:
            merged.pop(setting, None)
    for key, entry in over.value.items():
        below = merged.get(key)
        merged[key] = entry._replace(node=_merged(below.node, entry.node)) if below else entry
    return replace(over, value=merged)


def rules(settings: Node | None) -> list[Node]:
    """
    Returns the rules of `tools:`, in order.
    """
    tools = inner(settings, "tools")
    return tools.value if tools is not None and isinstance(tools.value, list) else []


def numbered(rules: Iterable[Node]) -> Iterator[tuple[int, Node]]:
    """
    Returns the *rules* of a policy that several files make up, each with its number in its own file.
    """
    seen: Counter[Source] = Counter()
    for rule in rules:
        yield seen[rule.position.source], rule
        seen[rule.position.source] += 1


# Faults at their places


def mistakes_at(faults: Sequence[Fault], root: Node, *, partial: bool = False) -> Iterator[Mistake]:
    """
    Returns *faults* in the data of *root*, as mistakes at their places. With *partial* the data is one file of several: a
    key that another file may supply is no mistake.
    """
    for fault in faults[:MAX_MISTAKES]:
        entry = Entry(root.position, root)
        for part in fault.path:
            entry = child(entry.node, part) or entry
        node, where = entry.node, re.sub(r"\s+", " ", ".".join(map(str, fault.path)))
        # An item of a list is whole in its file.
        whole = not partial or any(isinstance(part, int) for part in fault.path)
        if fault.kind == "unknown":
            yield Mistake(entry.key, fault.said)
        elif node.broken or (not whole and fault.kind in ("missing", "whole")):
            continue
        elif fault.kind == "missing":
            yield Mistake(entry.key, fault.said)
        elif fault.kind == "key":
            yield Mistake(entry.key, f"{where}: {fault.sentence(quoted(str(fault.path[-1])))}")
        else:
            said = fault.sentence(got(node), _fix(fault.expected[0], node) if fault.expected else "")
            yield Mistake(entry.place, f"{where}: {said}" if where else said)
    if len(faults) > MAX_MISTAKES:
        yield Mistake(root.position, f"more than {MAX_MISTAKES} mistakes: {len(faults) - MAX_MISTAKES} are not shown")


def _fix(kind: str, node: Node) -> str:
    """
    Returns how the value of *node* would have to be written to be of *kind*, "" if that is not plain.
    """
    text, value = "", node.value
    if isinstance(value, dict | list) or value is None:
        return ""
    if kind == "a whole number" and not isinstance(value, bool):
        found = re.fullmatch(r'"?([-+]?[0-9][0-9_,]*)(?:\.0*)?"?', node.written)
        text = re.sub(r"[_,]", "", found[1]) if found else ""
    elif kind == "a number" and (found := re.fullmatch(r'"([-+]?[0-9]+(?:\.[0-9]+)?)"', node.written)):
        text = found[1]
    elif kind == "true or false":
        folded = str(value).casefold()
        yes, no = ("yes", "on", "y", "true", "1"), ("no", "off", "n", "false", "0")
        text = "true" if folded in yes else "false" if folded in no else ""
    elif kind == "text":
        text = json.dumps(node.written, ensure_ascii=False)
    elif kind == "a list":
        text = f"[{json.dumps(value, ensure_ascii=False)}]"
    return f"write {text}, " if text else ""
