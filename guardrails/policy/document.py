"""
A policy file with all it extends, and the arguments of `Policy` that it stands for.

Promises, each with a test:

* Maps merge key by key, other values replace, the later file wins, the file itself comes last. The rules of `tools:` add up: those of a
  file stand before those of the policies it extends, and each once. `tools: !replace` drops those. A cap that a file writes is not
  softened by what another file said of the cap it replaces.
* All mistakes of what holds come at once, each in its own file. A value that another file replaces is not looked at.
* Settings that are each valid and do not go together are told where they stand, also those of a rule with those of the policy.
* Of a file that another one extends and that is no policy nothing is shown, and nothing below `/proc`, `/sys` and `/dev` is opened.
"""

import os
import re

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.guards import Kinds, kinds_of
from guardrails.core.guards.base import Guard
from guardrails.core.tools.tool import REPEATS
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import fit, quoted

from .check import HEAD, VERSION, file_type, unusable
from .file import (
    MAX_BYTES,
    PATH,
    Mistake,
    Node,
    Parsed,
    Position,
    Source,
    find,
    got,
    inner,
    items,
    mistakes_at,
    parse,
    plain,
)
from .reload import Content, digest, is_name, stamp


MAX_FILES: Final = 32
_SAID_OF: Final = {"max_cost_usd": "on_unpriced"}
"""Settings by the limit that they are said of."""


def load_document(source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> dict[str, Any]:
    """
    Returns the arguments for `Policy` that a file, or a shipped policy, stands for. The key `sources` lists the files
    that were read. The *guards* are a person's own: instances are added, and for classes the file says whether and how
    they stand.

    Raises PolicyError with every mistake.
    """
    given = list(guards)
    made = [guard for guard in given if isinstance(guard, Guard)]
    classes = [each if isinstance(each, type) else type(each) for each in given]
    own = tuple(dict.fromkeys(cls for cls in classes if issubclass(cls, Guard)))
    document = Document(source, kinds_of(own))
    arguments = document.arguments()
    document.check_rules(arguments, made)
    arguments["sources"] = {os.path.abspath(name): content for name, content in document.files.items()}  # noqa: PTH100
    arguments["guards"] += [guard for guard in given if not (isinstance(guard, type) and issubclass(guard, Guard))]
    return {"name": str(source), "kinds": own, **arguments}


class Document:
    """
    A policy file and all it extends, read but not yet held to types. It may name guards of these *kinds*. Raises PolicyError only if there is
    no such file.
    """

    def __init__(self, source: str | PathLike[str], kinds: Kinds = ()) -> None:
        self.kinds = {cls.name: cls for cls in kinds}
        self.sources: list[Source] = []
        """The texts that were read, the named file first."""
        self.files: dict[str, Content] = {}
        """Those that are files, by name."""
        self.mistakes: list[Mistake] = []
        self._done: dict[Path, Node] = {}
        path = find(source)
        try:
            self.root = self._file(path, ())
            """The settings of all files."""
        except OSError as error:
            raise PolicyError([_unreadable(path, error)]) from None

    def arguments(self) -> dict[str, Any]:
        """
        Returns the arguments that it stands for. Raises PolicyError with every mistake, file by file.
        """
        arguments, faults = fit(file_type(tuple(self.kinds.values())), plain(self.root))
        self._refuse(*mistakes_at(faults, self.root))
        return arguments  # type: ignore[no-any-return]

    def check_rules(self, arguments: dict[str, Any], made: Iterable[Guard]) -> None:
        """
        Raise PolicyError if the settings of a rule do not go together with those of the policy, or of the guards *made* in code.
        """
        guards = {guard.name: guard for guard in (*made, *arguments["guards"])}
        for number, (rule, node) in enumerate(zip(arguments["rules"], items(self.root, "tools"), strict=True)):
            for name, own in rule.guards.items():
                wrong = unusable(self.kinds[name].ruled(guards.get(name), own))
                self.mistakes += [Mistake((inner(node, name) or node).place, f"tools.{number}.{one}") for one in wrong]
        self._refuse()

    def renamed(self) -> list[str]:
        """
        Returns the older words of the named file that still work, each with the one that stands for it now.
        """
        return [
            str(Mistake(entry.named, f"tools.{number}.{old}: {old} is now `repeats: {now}`")).partition("\n")[0]
            for number, rule in enumerate(items(self.root, "tools"))
            for old, now in REPEATS.items()
            if (entry := inner(rule, old)) is not None and rule.position.source is self.sources[0]
        ]

    def _refuse(self, *mistakes: Mistake) -> None:
        found = {*self.mistakes, *mistakes}
        if found:
            order = {source: place for place, source in enumerate(self.sources)}
            ordered = sorted(found, key=lambda one: (order[one.position.source], *one.position[1:], one.message))
            raise PolicyError(list(map(str, ordered)))

    def _mistake(self, position: Position, message: str) -> None:
        self.mistakes.append(Mistake(position, message))

    def _file(self, path: Path, chain: tuple[Path, ...]) -> Node:
        """
        Returns the settings of a file, which those of *chain* extend, with those that it extends. Raises PolicyError if it is extended and is
        no policy.
        """
        real = path.resolve()
        if real in self._done:
            return self._done[real]
        with path.open("rb") as stream:
            seen, text = stamp(os.fstat(stream.fileno())), stream.read(MAX_BYTES + 1)
        parsed = parse(text, str(path))
        if chain and not _is_policy(parsed):
            raise PolicyError([f"{quoted(str(path), PATH)} is no policy: a policy begins with `version: {VERSION}`"])
        self.files[str(path)] = Content(seen, digest(text))
        self.sources.append(parsed.source)
        self.mistakes += parsed.mistakes
        root = parsed.root or Node(Position(parsed.source, 1, 1), {}, broken=True)
        made = self._done[real] = self._settings(root, path.parent, (*chain, path))
        return made

    def _settings(self, root: Node, folder: Path, chain: tuple[Path, ...]) -> Node:
        if not isinstance(root.value, dict):
            self._mistake(root.position, f"not a map of keys: got {got(root)}")
            return replace(root, value={})
        settings, tools = {**root.value}, inner(root, "tools")
        version, extends = settings.pop("version", None), settings.pop("extends", None)
        if version is None and not root.broken:
            said = f"missing key `version`: write `version: {VERSION}`, the version of the file format"
            self._mistake(root.position, said)
        head = {"version": version, "extends": extends}
        _, faults = fit(HEAD, {name: plain(node) for name, node in head.items() if node is not None})
        self.mistakes += mistakes_at(faults, root)
        if tools is not None and tools.value is None and not tools.written:
            # All of its rules are comments.
            del settings["tools"]
        listed = items(root, "extends") or ([] if extends is None else [extends])
        parents = [self._parent(item, folder, chain) for item in listed if isinstance(item.value, str)]
        own = self._renamed(replace(root, value=settings), folder)
        base = reduce(_laid, parents) if parents else replace(root, value={})
        return _laid(base, own, replaces=tools is not None and tools.replaces)

    def _parent(self, item: Node, folder: Path, chain: tuple[Path, ...]) -> Node:
        path = folder / item.value  # type: ignore[operator]
        try:
            path = find(item.value if is_name(item.value) else path)  # type: ignore[arg-type]
            real = path.resolve()
            circle = [at for at, above in enumerate(chain) if above.resolve() == real]
            if real.parts[1:2] in (("proc",), ("sys",), ("dev",)):
                # There to read is to ask: it may wait for ever, and tell what no file tells.
                said = f"no policy file {quoted(str(path), PATH)}"
            elif circle:
                links = " -> ".join(quoted(str(link), PATH) for link in [*chain[circle[0] :], path])
                said = f"goes in a circle, {links}"
            elif len(self.sources) >= MAX_FILES:
                said = f"more than {MAX_FILES} files"
            else:
                return self._file(path, chain)
        except PolicyError as error:
            said = str(error)
        except OSError as error:
            said = _unreadable(path, error)
        self._mistake(item.position, f"extends: {said}")
        return replace(item, value={})

    def _renamed(self, node: Node, folder: Path, key: str = "") -> Node:
        """
        Returns *node*, the value of *key*, with each key as the settings have it, and each file that a setting names beside the
        policy in *folder* that names it.
        """
        if isinstance(node.value, list):
            return replace(node, value=[self._renamed(item, folder) for item in node.value])
        if not isinstance(node.value, dict):
            return node
        made: dict[str, Node] = {}
        kind = self.kinds.get(key, Guard)
        for written, value in node.value.items():
            name = kind.aliases.get(written, written)
            if name in made:
                said = f"key {quoted(written)} is {quoted(name)} by another name, given twice"
                self._mistake(value.named, f"{said} (first on line {made[name].named.line})")
                continue
            if name in kind.files and isinstance(value.value, str) and value.value:
                value = replace(value, value=str(folder.absolute() / value.value))  # noqa: PLW2901
            made[name] = self._renamed(value, folder, name)
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
    return f"cannot read {quoted(str(path), PATH)}: {(error.strerror or 'unknown error').lower()}"


def _laid(base: Node, over: Node, *, replaces: bool = False) -> Node:
    """
    Returns the settings *over* laid upon *base*: the rules of `tools:` stand before those of *base*, or *replaces* them.
    """
    merged, below = _merged(base, over), items(base, "tools")
    tools = inner(merged, "tools")
    if not below or replaces or tools is None or not isinstance(tools.value, list):
        return merged
    # Two files may extend the same one: its rules stand once, below those of both.
    both = [*(rule for rule in items(over, "tools") if not any(rule is one for one in below)), *below]
    merged.value["tools"] = replace(tools, value=both)  # type: ignore[call-overload, index]
    return merged


def _merged(base: Node, over: Node) -> Node:
    if not isinstance(base.value, dict) or not isinstance(over.value, dict):
        return over
    merged = dict(base.value)
    for limit, setting in _SAID_OF.items():
        if limit in base.value and limit in over.value:
            merged.pop(setting, None)
    for key, node in over.value.items():
        merged[key] = _merged(merged[key], node) if key in merged else node
    return replace(over, value=merged)
