"""
A policy file put together with the files it extends, each value still knowing its own place.

Maps merge key by key, other values replace, the later one wins and the file itself comes last. The rules of `tools:` add
up: those of a file stand before those of the policies it extends, and the first match wins. `tools: !replace` drops those.
"""

import os

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.late_pattern import pattern as late
from guardrails.policy.reload import Content
from guardrails.policy.source import digest, is_name, stamp

from .folder import PATH_SHOWN, find, inner
from .schema import VERSION, OtherNames
from .spelling import Respelling
from .wording import got
from .yaml_events import MAX_BYTES
from .yaml_position import Entry, Mistake, Node, Position, Source, plain, quoted
from .yaml_reader import parse


MAX_FILES: Final = 32
_NO_FILES: Final = (("proc",), ("sys",), ("dev",))
"""Folders of a system in which to read is to ask: it may wait for ever, and tell what no file tells."""
_VERSION_LINE: Final = late(r"version:[ ]{1,9}[0-9]{1,9}\s{0,9}(?:#.*)?")
_LINES: Final = 200
_LINE: Final = 200
_NO_VERSION: Final = f": a policy begins with `version: {VERSION}`"
_FILE_KEYS: Final = ("version", "extends")
_SAID_OF: Final = {"max_cost_usd": "on_unpriced"}
"""Settings by the limit that they are said of: a cap that a file writes is not softened by a file that it extends."""


def read(name_or_path: str | PathLike[str], *, other_names: OtherNames | None = None) -> "Document":
    """
    Returns a policy file with all it extends, read but not yet validated. Raises PolicyError only if there is no such
    file.

    The mapping *other_names* gives spellings of keys, each with the key of the settings that replaces it.
    """
    path = find(name_or_path)
    document = Document(other_names=other_names or {})

    try:
        document.root = _Assembly(document).file(path, ())
    except OSError as error:
        raise PolicyError([_unreadable(path, error)]) from None

    return document


@dataclass(slots=True)
class Document:
    """
    A policy file and all it extends.
    """

    root: Node | None = None
    """The merged settings; None where a file could not be read or is of a newer version."""
    below: Node | None = None
    """The settings of all that the named file extends, merged; None if it extends nothing."""
    parts: list[Node] = field(default_factory=list)
    """The settings of each readable file by itself."""
    sources: list[Source] = field(default_factory=list)
    """The texts that were read, the named file first."""
    files: dict[str, Content] = field(default_factory=dict)
    """Those that are files, by name."""
    mistakes: list[Mistake] = field(default_factory=list)
    """What is wrong with the YAML, `version` and `extends`."""
    outdated: list[Mistake] = field(default_factory=list)
    """Keys that are written otherwise now."""
    other_names: OtherNames = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Any]:
        """
        The merged settings as plain data, without `version` and `extends`. Empty if a file could not be read.
        """
        return plain(self.root) if self.root is not None else {}


class _Assembly:
    """
    Reads files into *document*, each once; a chain is the files from the named one to the one being read.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.done: dict[Path, Node | None] = {}
        self.spelling = Respelling(document.other_names, document.mistakes, document.outdated)

    def file(self, path: Path, chain: tuple[Path, ...], named: Position | None = None) -> Node | None:
        """
        Returns the settings of a file, which is *named* by another one, unless a person gave it.
        """
        real = path.resolve()

        if real not in self.done:
            with path.open("rb") as stream:
                seen = stamp(os.fstat(stream.fileno()))
                text = stream.read(MAX_BYTES + 1)

            self.document.files[str(path)] = Content(seen, digest(text))
            self.done[real] = self._settings(text, path, (*chain, path), named)

        return self.done[real]

    def _settings(self, text: bytes, path: Path, chain: tuple[Path, ...], named: Position | None) -> Node | None:
        name = str(path)
        parsed = parse(text, name)

        if named is not None and not _is_policy(parsed.root, parsed.source.lines):
            place = parsed.mistakes[-1].position if parsed.root is None else None
            where = "" if place is None else f": it cannot be read from line {place.line}, column {place.column} on"
            self._mistake(named, f"extends: {quoted(name, PATH_SHOWN)} is no policy{where or _NO_VERSION}")

            return None

        self.document.sources.append(parsed.source)
        self.document.mistakes += parsed.mistakes
        root = parsed.root

        if root is None:
            return None

        if not isinstance(root.value, dict):
            self._mistake(root.position, f"not a map of keys: got {got(root)}")
            return None

        settings = {key: entry for key, entry in root.value.items() if key not in _FILE_KEYS}

        if "tools" in settings and settings["tools"].node.value is None and not settings["tools"].node.written:
            # All of its rules are comments.
            del settings["tools"]

        own = self.spelling.of(replace(root, value=settings))
        readable = self._check_version(root.value.get("version"), root.position)

        if readable:
            self.document.parts.append(own)

        parents = list(self._parents(root.value.get("extends"), path.parent, chain))
        # The named file is finished last.
        self.document.below = reduce(_laid, parents) if parents else None

        if not parents or not readable:
            return own if readable else None

        tools = inner(own, "tools")

        return _laid(self.document.below, own, replaces=tools is not None and tools.replaces)

    def _mistake(self, position: Position, message: str) -> None:
        self.document.mistakes.append(Mistake(position, message))

    def _check_version(self, entry: Entry | None, start: Position) -> bool:
        if entry is None:
            self._mistake(start, f"missing key `version`: write `version: {VERSION}`, the version of the file format")
            return True

        version = entry.node.value

        if entry.node.broken:
            return True

        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            self._mistake(entry.place, f"version: not a version: write {VERSION}, got {got(entry.node)}")
        elif version > VERSION:
            problem = f"version: newer than this library, which reads version {VERSION}: upgrade toolcall-guardrails, got {got(entry.node)}"
            self._mistake(entry.place, problem)

            return False

        return True

    def _parents(self, entry: Entry | None, directory: Path, chain: tuple[Path, ...]) -> Iterator[Node | None]:
        if entry is None:
            return

        items = entry.node.value if isinstance(entry.node.value, list) else [entry.node]

        for item in items:
            if isinstance(item.value, str) and item.value:
                yield self._parent(item.value, item.position, directory, chain)
            else:
                if not item.broken:
                    self._mistake(Entry(entry.key, item).place, f"extends: not a name or a path: got {got(item)}")

                yield None

    def _parent(self, name: str, position: Position, directory: Path, chain: tuple[Path, ...]) -> Node | None:
        try:
            path = find(name if is_name(name) else directory / name)
            real = path.resolve()

            circle = [i for i, above in enumerate(chain) if above.resolve() == real]

            if real.parts[1:2] in _NO_FILES:
                self._mistake(position, f"extends: no policy file {quoted(str(path), PATH_SHOWN)}")
            elif circle:
                links = " -> ".join(quoted(str(link), PATH_SHOWN) for link in [*chain[circle[0] :], path])
                self._mistake(position, f"extends: goes in a circle, {links}")
            elif len(self.document.sources) >= MAX_FILES:
                self._mistake(position, f"extends: more than {MAX_FILES} files")
            else:
                return self.file(path, chain, position)
        except PolicyError as error:
            self._mistake(position, f"extends: {error}")
        except OSError as error:
            self._mistake(position, f"extends: {_unreadable(path, error)}")

        return None


def _is_policy(root: Node | None, lines: tuple[str, ...]) -> bool:
    """
    Whether a file says that it is a policy. The content of another file may be a secret, and is not shown in a mistake.
    """
    if root is None:
        return any(_VERSION_LINE.fullmatch(line[:_LINE]) for line in lines[:_LINES])

    version = root.value.get("version") if isinstance(root.value, dict) else None

    return version is not None and type(version.node.value) is int


def _laid(base: Node | None, over: Node | None, *, replaces: bool = False) -> Node | None:
    """
    Returns the settings *over* laid upon *base*: the rules of `tools:` stand before those of *base*, or *replaces* them.
    Returns None if one of both could not be read.
    """
    if base is None or over is None:
        return None

    merged, own, below = merge(base, over), rules(over), rules(base)
    entry = merged.value.get("tools") if isinstance(merged.value, dict) else None

    if entry is None or replaces or not isinstance(entry.node.value, list):
        return merged

    # Two files may extend the same one: its rules stand once, below those of both.
    again = set(map(id, below))
    both = [*(rule for rule in own if id(rule) not in again), *below]

    return merge(merged, replace(merged, value={"tools": entry._replace(node=replace(entry.node, value=both))}))


def rules(settings: Node) -> list[Node]:
    """
    Returns the rules of `tools:`, in order.
    """
    written = inner(settings, "tools")

    return written.value if written is not None and isinstance(written.value, list) else []


def merge(base: Node, over: Node) -> Node:
    """
    Returns *over* laid upon *base*: two maps merge key by key, anything else replaces what is below it.

    A limit that *base* sets goes with its other keys if *over* sets another limit in its place.
    """
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over

    merged = dict(base.value)

    for limit, setting in _SAID_OF.items():
        if limit in base.value and limit in over.value:
            merged.pop(setting, None)

    for key, entry in over.value.items():
        below = merged.get(key)
        merged[key] = entry._replace(node=merge(below.node, entry.node)) if below else entry

    return replace(over, value=merged)


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {quoted(str(path), PATH_SHOWN)}: {(error.strerror or 'unknown error').lower()}"
