"""
Policy files: YAML read strictly, all that a file extends, every mistake at its place, and the arguments of `Policy` that it stands for.

Promises, each with a test:

* YAML is read as editors read it, by the 1.2 core schema: only `true` and `false` are booleans; `on`, `no`, `1:30`, `1_000` and
  `2024-01-01` are text. So are numbers that readers disagree on (`010`) or without a finite value: mistakes where a number is wanted.
* No text does harm: its depth is looked at while it is read. Tags but `!replace`, anchors and second documents end the reading.
* A mistake is `file:line:column: message`, the line and a caret, on three lines that any terminal can show. It names the value as it was
  written, how to write it if that is plain, and the key or the word that was probably meant.
* A policy is found by its name among the library's own, or at a path; the working directory is never searched for a name.
* Maps merge key by key, other values replace, the later file wins, the file itself comes last. The rules of `tools:` add up: those of a file
  stand before those of the policies it extends, and each once; `tools: !replace` drops those. A cap that a file writes is not softened by what another file said of the cap it replaces.
* All mistakes of what holds come at once, each in its own file. A value that another file replaces is not looked at.
* Settings that are each valid and do not go together are told where they stand, also those of a rule with those of the policy.
* Of a file that another one extends and that is no policy nothing is shown, and nothing below `/proc`, `/sys` and `/dev` is opened.
"""

import json
import math
import os
import re

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import yaml

from xxhash import xxh3_128_hexdigest as digest

from guardrails.core.guards import kinds_of
from guardrails.core.guards.base import Guard
from guardrails.core.guards.rules import RuleSettings
from guardrails.core.tool import REPEATS
from guardrails.core.values.errors import MissingExtra, PolicyError
from guardrails.core.values.schema import Fault, fit, map_type, quoted, suggestion

from .check import PARTS, VERSION, Head, policy_type, unusable
from .reload import Contents, Stamp, is_name, stamp_of


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
_NULLS, _TRUE, _FALSE = ("", "~", "null", "Null", "NULL"), ("true", "True", "TRUE"), ("false", "False", "FALSE")
_CONSTANTS: Final = dict.fromkeys(_NULLS) | dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
_INTEGER: Final = r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT: Final = r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_TRUTHS: Final = {"yes": "true", "on": "true", "y": "true", "true": "true", "1": "true"}
_UNTRUTHS: Final = {"no": "false", "off": "false", "n": "false", "false": "false", "0": "false"}


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
        value: Any = node.value if node is not None else None
        below = dict(enumerate(value)) if isinstance(value, list) else value
        node = below.get(part) if isinstance(below, dict) else None
    return node


def items(node: Node | None, key: str) -> list[Node]:
    """
    Returns the values of the list under *key*; none if there is no list.
    """
    below = inner(node, key)
    return below.value if below is not None and isinstance(below.value, list) else []


def _fitting(kind: Any, root: Node | None) -> list[tuple[int, Any]]:
    """
    Returns (number, value) of those of the list *root* that are of the *kind*.
    """
    nodes = root.value if root is not None and isinstance(root.value, list) else []
    fitted = ((number, *fit(kind, plain(node))) for number, node in enumerate(nodes))
    return [(number, made) for number, made, faults in fitted if not faults]


def got(node: Node) -> str:
    """
    Returns the value that was found, as it was written.
    """
    if isinstance(node.value, dict | list):
        return "a map" if isinstance(node.value, dict) else "a list"
    return quoted(node.written) if node.written else "nothing"


# YAML


class _UnreadableError(Exception):
    """
    The place from which a text is not read any further, and why.
    """


def parse(text: bytes | str, name: str) -> tuple[Source, Node | None, list[Mistake]]:
    """
    Read *text* (bytes: UTF-8), called *name* in messages. Returns its value, None if it could not be read to its end, and its mistakes.
    """
    decoded = text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    source, mistakes = Source(name, tuple(re.split(_BREAK, decoded))), list[Mistake]()
    try:
        return source, _root(decoded, source, mistakes), mistakes
    except _UnreadableError as error:
        return source, None, [Mistake(*error.args)]


def _root(text: str, source: Source, mistakes: list[Mistake]) -> Node:
    if sign := re.search(_FORBIDDEN, text):
        lines, code = re.split(_BREAK, text[: sign.start()]), ord(sign[0])
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
            yield Mistake(node.named, fault.text)
        else:
            sentence = fault.sentence(got(node), _fix(fault.expected[0], node) if fault.expected else "")
            yield Mistake(node.position, f"{where}: {sentence}" if where else sentence)


def _fix(kind: str, node: Node) -> str:
    """
    Returns how the value of *node* would have to be written to be of *kind*, "" if that is not plain.
    """
    value, written = node.value, node.written
    if not written or value is None:
        return ""
    number, quote = resolve(re.sub(r'[",_]', "", written)), partial(json.dumps, ensure_ascii=False)
    texts = {"true or false": (_TRUTHS | _UNTRUTHS).get(str(value).casefold()), "text": quote(written)}
    texts["a list"] = f"[{quote(value)}]"
    if type(number) is int or (isinstance(number, float) and (kind == "a number" or number.is_integer())):
        texts["a number"] = texts["a whole number"] = f"{number}".removesuffix(".0")
    return f"write {texts[kind]}, " if texts.get(kind) not in (None, written) else ""


# Files


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
        known = sorted(path.stem for path in shipped().glob("*.yaml"))
        if name_or_path in known:
            return shipped() / f"{name_or_path}.yaml"
        there = f"{suggestion(name_or_path, known)}; there are {', '.join(map(quoted, known))}"
        fix = f"a file is written as a path, `./{name_or_path}.yaml`"
        raise PolicyError([f"no policy named {quoted(name_or_path)}{there}; {fix}"])
    if os.path.isfile(name_or_path):
        return Path(name_or_path)
    raise PolicyError([f"no policy file {quoted(str(Path(name_or_path)), PATH)}"])


# A file with all that it extends


class Document:
    """
    A policy file, or a shipped policy, and all it extends, read but not yet held to types. The *guards* are a person's own: instances are
    added, and for classes the file says whether and how they stand. Raises PolicyError only if there is no such file.
    """

    def __init__(self, source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> None:
        self._given = [*guards]
        own = (each if isinstance(each, type) else type(each) for each in self._given)
        self.name, self.kinds = str(source), kinds_of(cls for cls in own if issubclass(cls, Guard))
        self.sources: dict[Source, tuple[Stamp | None, str]] = {}
        """The files that were read, the named one first."""
        self.mistakes: list[Mistake] = []
        self._hints: list[Mistake] = []
        self._done: dict[Path, Node] = {}
        self.root = self._file(find(source), ())
        """The settings of all files."""

    def arguments(self) -> dict[str, Any]:
        """
        Returns the arguments for `Policy` that it stands for. Raises PolicyError with every mistake, file by file.
        """
        arguments, faults = fit(policy_type(self.kinds), plain(self.root))
        self.mistakes += mistakes_at(faults, self.root)
        if not self.mistakes:
            arguments["guards"] += [each for each in self._given if each not in self.kinds]
            self.mistakes += self._of_rules(arguments)
        self.mistakes += self._of_expressions()
        if self.mistakes:
            raise PolicyError(lines_of(self.mistakes, [*self.sources]))
        return {"name": self.name, "kinds": self.kinds, **arguments}

    def contents(self) -> Contents:
        """
        Returns the stamps of the files that were read, and what stands for all that they hold.
        """
        stamps = {os.path.abspath(source.name): stamp for source, (stamp, _) in self.sources.items()}
        return stamps, digest("\0".join(one for _, one in self.sources.values()).encode())

    def hints(self) -> list[str]:
        """
        Returns, of the named file, its older words with those that stand for them now, and its values that stand in place of others, of files
        that it extends. Rules of `tools:` are not compared.
        """
        named = next(iter(self.sources))
        return [str(one).partition("\n")[0] for one in self._hints if one.position.source is named]

    def _of_rules(self, arguments: dict[str, Any]) -> Iterator[Mistake]:
        """
        Returns the settings of rules that do not go together with those of the policy.
        """
        kinds = {cls.name: cls for cls in self.kinds}
        guards = {guard.name: guard for guard in arguments["guards"] if isinstance(guard, Guard)}
        for number, (rule, node) in enumerate(zip(arguments["rules"], items(self.root, "tools"), strict=True)):
            for name, own in rule.guards.items():
                for wrong in unusable(kinds[name].ruled(guards.get(name), own)):
                    yield Mistake((inner(node, name) or node).position, f"tools.{number}.{wrong}")

    def _of_expressions(self) -> Iterator[Mistake]:
        """
        Returns what is wrong with what rules say of arguments, by itself and for the tools whose parameters are declared. What else is wrong
        in the file hides none of it.
        """
        root = inner(self.root, "rules", "rules") or inner(self.root, "rules")
        of_tools = _fitting(get_args(policy_type(self.kinds).types["tools"])[0], inner(self.root, "tools"))
        declared = [rule for _, rule in of_tools if isinstance(rule.declared.get("parameters"), Mapping)]
        for number, rule in _fitting(RuleSettings, root):
            schemas = [each.declared["parameters"] for each in declared if any(map(rule.is_about, each.match))]
            try:
                for place, text in rule.faults(schemas):
                    node = inner(root, number, *place) or self.root
                    yield Mistake(node.position, f"rules.{number}.{'.'.join(place)}: {text}")
            except MissingExtra as error:
                yield Mistake((inner(root, number) or self.root).position, f"rules.{number}: {error}")
                return

    def _file(self, path: Path, chain: tuple[Path, ...]) -> Node:
        """
        Returns the settings of a file, which those of *chain* extend, with those that it extends. Raises PolicyError if it cannot be read, or is extended and is
        no policy: the content of another file may be a secret, and is not shown in a mistake.
        """
        real = path.resolve()
        if real not in self._done:
            # Before it is read: what is written meanwhile is found by the next look.
            try:
                stamp, text = stamp_of(str(path)), path.read_bytes()
            except OSError as error:
                why = (error.strerror or "unknown error").lower()
                raise PolicyError([f"cannot read {quoted(str(path), PATH)}: {why}"]) from None
            source, root, mistakes = parse(text, str(path))
            version = inner(root, "version")
            if chain and (version is None or type(version.value) is not int):
                raise PolicyError([f"{quoted(str(path), PATH)} is no policy that can be read: check it by itself"])
            self.sources[source] = stamp, digest(text)
            self.mistakes += mistakes
            self._done[real] = self._whole(root, (*chain, path)) if root else Node(Position(source, 1, 1), {})
        return self._done[real]

    def _whole(self, root: Node, chain: tuple[Path, ...]) -> Node:
        version, extends = inner(root, "version"), inner(root, "extends")
        if not isinstance(root.value, dict):
            self.mistakes.append(Mistake(root.position, f"not a map of keys: got {got(root)}"))
            return replace(root, value={})
        if version is None or got(version) != f"`{VERSION}`":
            fix = f"write `version: {VERSION}`, the format that this release reads, or upgrade toolcall-guardrails"
            written = f"{fix}, got {got(version) if version else 'no version'}"
            self.mistakes.append(Mistake((version or root).position, written))
        if extends is not None:
            self.mistakes += mistakes_at(fit(map_type(Head).types["extends"], plain(extends), ("extends",))[1], root)
        named = (*items(root, "extends"), extends)
        parents = [self._parent(one, chain) for one in named if one is not None and isinstance(one.value, str)]
        own = self._apart({key: node for key, node in root.value.items() if key not in map_type(Head).types})
        if "tools" in own and got(own["tools"]) == "nothing":
            # All of its rules are comments.
            del own["tools"]
        for rule in items(root, "tools"):
            older = [(inner(rule, old), f"`{old}` is now `repeats: {now}`") for old, now in REPEATS.items()]
            self._hints += [Mistake(node.named, hint) for node, hint in older if node and node.value is True]
        whole = replace(root, value=own)
        self._anchor(whole, chain[-1].parent)
        return reduce(self._merged, (*parents, whole))

    def _apart(self, own: dict[str, Node]) -> dict[str, Node]:
        """
        Returns the settings of a file, those that are parts of another key by their own names.
        """
        older = [
            (own.get(name), f"`{name}` is now `{key}.{part}`") for name, (key, part) in PARTS.items() if name != key
        ]
        self._hints += [Mistake(node.named, hint) for node, hint in older if node is not None]
        for key in dict.fromkeys(key for key, _ in PARTS.values()):
            node, parts = own.get(key), {part: name for name, (at, part) in PARTS.items() if at == key}
            if node is None or not isinstance(node.value, dict):
                continue
            rest = {at: one for at, one in node.value.items() if at not in parts}
            own = {at: one for at, one in own.items() if at != key}
            # A key that has nothing but parts stands for them alone.
            own |= {key: replace(node, value=rest)} if key != "envelope" and (rest or not node.value) else {}
            for at, one in node.value.items():
                if at not in parts and key == "envelope":
                    self.mistakes.append(Mistake(one.named, f"unknown key {quoted(at)}{suggestion(at, [*parts])}"))
                elif at in parts and own.setdefault(parts[at], one) is not one:
                    self.mistakes.append(Mistake(one.named, f"`{parts[at]}` is given twice"))
        return own

    def _parent(self, item: Node, chain: tuple[Path, ...]) -> Node:
        written = str(item.value)
        path = chain[-1].parent / written
        try:
            path = find(written if is_name(written) else path)
            # There to read is to ask: it may wait for ever, and tell what no file tells.
            if path.resolve().parts[1:2] in (("proc",), ("sys",), ("dev",)):
                raise PolicyError([f"no policy file {quoted(str(path), PATH)}"])
            if path.resolve() in [above.resolve() for above in chain]:
                links = " -> ".join(quoted(str(link), PATH) for link in [*chain, path])
                raise PolicyError([f"goes in a circle, {links}"])
            return self._file(path, chain)
        except PolicyError as error:
            self.mistakes.append(Mistake(item.position, f"extends: {error}"))
        return replace(item, value={})

    def _anchor(self, root: Node, folder: Path) -> None:
        """
        Have each file that a setting of *root* names stand beside the policy in *folder* that names it.
        """
        names = [(kind.name, key) for kind in self.kinds for key in kind.files]
        for place in (root, *items(root, "tools")):
            for named in (inner(place, *name) for name in names):
                if named is not None and isinstance(named.value, str) and named.value:
                    named.value = str(folder.absolute() / named.value)

    def _merged(self, base: Node, over: Node, path: tuple[str, ...] = ()) -> Node:
        """
        Returns the value *over* at *path* laid upon *base*: a setting replaces what was said of it by another name.
        """
        adds = path in (("tools",), ("rules",)) and not over.replaces
        if adds and isinstance(base.value, list) and isinstance(over.value, list):
            # Two files may extend the same one: its rules stand once, below those of both.
            return replace(over, value=[*(rule for rule in over.value if rule not in base.value), *base.value])
        if not isinstance(base.value, dict) or not isinstance(over.value, dict):
            if plain(base) != plain(over):
                below = f"{got(base)} of {Path(base.named.source.name).name}:{base.named.line}"
                self._hints.append(Mistake(over.named, f"{'.'.join(path)}: {got(over)} overrides {below}"))
            return over
        aliases = next((cls.aliases for cls in self.kinds if path[-1:] == (cls.name,)), {})
        now = {aliases.get(name, name) for name in over.value}
        merged = {name: n for name, n in base.value.items() if name in over.value or aliases.get(name, name) not in now}
        if "max_cost_usd" in now.intersection(aliases.get(name, name) for name in base.value):
            merged.pop("on_unpriced", None)
        for name, node in over.value.items():
            merged[name] = self._merged(merged[name], node, (*path, name)) if name in merged else node
        return replace(over, value=merged)
