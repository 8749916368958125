"""
A policy file with all it extends, and the arguments of `Policy` that it stands for.

Promises, each with a test:

* Maps merge key by key, other values replace, the later file wins, the file itself comes last. The rules of `tools:` add up: those of a file
  stand before those of the policies it extends, and each once; `tools: !replace` drops those. A cap that a file writes is not softened by what another file said of the cap it replaces.
* All mistakes of what holds come at once, each in its own file. A value that another file replaces is not looked at.
* Settings that are each valid and do not go together are told where they stand, also those of a rule with those of the policy.
* Of a file that another one extends and that is no policy nothing is shown, and nothing below `/proc`, `/sys` and `/dev` is opened.
"""

import os

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
from guardrails.core.values.schema import fit, map_type, quoted

from .check import VERSION, Head, file_type, unusable
from .file import MAX_BYTES, PATH, Mistake, Node, Source, find, got, inner, items, lines_of, mistakes_at, parse, plain
from .reload import Content, digest, is_name, stamp


MAX_FILES: Final = 32


def load_document(source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> dict[str, Any]:
    """
    Returns the arguments for `Policy` that a file, or a shipped policy, stands for. The key `sources` lists the files
    that were read. The *guards* are a person's own: instances are added, and for classes the file says whether and how
    they stand.

    Raises PolicyError with every mistake.
    """
    given = list(guards)
    classes = (each if isinstance(each, type) else type(each) for each in given)
    own = tuple(dict.fromkeys(cls for cls in classes if issubclass(cls, Guard)))
    made = [each for each in given if not (isinstance(each, type) and issubclass(each, Guard))]
    document = Document(source, kinds_of(own))
    arguments = document.arguments(made)
    arguments["sources"] = {os.path.abspath(file.name): content for file, content in document.sources.items()}  # noqa: PTH100
    arguments["guards"] += made
    return {"name": str(source), "kinds": own, **arguments}


class Document:
    """
    A policy file and all it extends, read but not yet held to types. It may name guards of these *kinds*. Raises PolicyError only if there is
    no such file.
    """

    def __init__(self, source: str | PathLike[str], kinds: Kinds = ()) -> None:
        self.kinds = {cls.name: cls for cls in kinds}
        self.sources: dict[Source, Content] = {}
        """The files that were read, the named one first."""
        self.mistakes: list[Mistake] = []
        self._done: dict[Path, Node] = {}
        path = find(source)
        try:
            self.root = self._file(path, ())
            """The settings of all files."""
        except OSError as error:
            raise PolicyError([_unreadable(path, error)]) from None

    def arguments(self, made: Iterable[Any] = ()) -> dict[str, Any]:
        """
        Returns the arguments that it stands for, beside guards that were *made* in code. Raises PolicyError with every mistake, file by file.
        """
        arguments, faults = fit(file_type(tuple(self.kinds.values())), plain(self.root))
        self.mistakes += mistakes_at(faults, self.root)
        if not self.mistakes:
            self.mistakes += self._of_rules(arguments, made)
        if self.mistakes:
            raise PolicyError(lines_of(self.mistakes, [*self.sources]))
        return arguments  # type: ignore[no-any-return]

    def older_words(self) -> list[str]:
        """
        Returns the older words of the named file that still work, each with the one that stands for it now.
        """
        return [
            str(Mistake(entry.named, f"tools.{number}.{old}: {old} is now `repeats: {now}`")).partition("\n")[0]
            for number, rule in enumerate(items(self.root, "tools"))
            for old, now in REPEATS.items()
            if (entry := inner(rule, old)) is not None
            and entry.value is True
            and rule.position.source is next(iter(self.sources))
        ]

    def _of_rules(self, arguments: dict[str, Any], made: Iterable[Any]) -> Iterable[Mistake]:
        """
        Returns the settings of rules that do not go together with those of the policy.
        """
        guards = {guard.name: guard for guard in (*made, *arguments["guards"]) if isinstance(guard, Guard)}
        for number, (rule, node) in enumerate(zip(arguments["rules"], items(self.root, "tools"), strict=True)):
            for name, own in rule.guards.items():
                for wrong in unusable(self.kinds[name].ruled(guards.get(name), own)):
                    yield Mistake((inner(node, name) or node).position, f"tools.{number}.{wrong}")

    def _file(self, path: Path, chain: tuple[Path, ...]) -> Node:
        """
        Returns the settings of a file, which those of *chain* extend, with those that it extends. Raises PolicyError if it is extended and is
        no policy: the content of another file may be a secret, and is not shown in a mistake.
        """
        real = path.resolve()
        if real in self._done:
            return self._done[real]
        with path.open("rb") as stream:
            seen, text = stamp(os.fstat(stream.fileno())), stream.read(MAX_BYTES + 1)
        parsed = parse(text, str(path))
        version = inner(parsed.root, "version")
        if chain and (version is None or type(version.value) is not int):
            raise PolicyError([f"{quoted(str(path), PATH)} is no policy that can be read: check it by itself"])
        self.sources[parsed.source] = Content(seen, digest(text))
        self.mistakes += parsed.mistakes
        root = parsed.root or Node(parsed.mistakes[0].position, {})
        made = self._done[real] = self._settings(root, path.parent, (*chain, path)) if parsed.root else root
        return made

    def _settings(self, root: Node, folder: Path, chain: tuple[Path, ...]) -> Node:
        if not isinstance(root.value, dict):
            self.mistakes.append(Mistake(root.position, f"not a map of keys: got {got(root)}"))
            return replace(root, value={})
        version, extends = inner(root, "version"), inner(root, "extends")
        if version is None or got(version) != f"`{VERSION}`":
            place = version.position if version else root.position
            fix = f"write `version: {VERSION}`, the format that this release reads, or upgrade toolcall-guardrails"
            self.mistakes.append(Mistake(place, f"{fix}, got {got(version) if version else 'no version'}"))
        if extends is not None:
            self.mistakes += mistakes_at(fit(map_type(Head).types["extends"], plain(extends), ("extends",))[1], root)
        listed = items(root, "extends") or ([extends] if extends else [])
        parents = [self._parent(item, folder, chain) for item in listed if isinstance(item.value, str)]
        settings = {key: node for key, node in root.value.items() if key not in map_type(Head).types}
        if (tools := inner(root, "tools")) is not None and got(tools) == "nothing":
            # All of its rules are comments.
            del settings["tools"]
        self._anchor(root, folder)
        own = replace(root, value=settings)
        base = reduce(self._merged, parents, replace(root, value={}))
        return _with_rules(self._merged(base, own), own, parents)

    def _parent(self, item: Node, folder: Path, chain: tuple[Path, ...]) -> Node:
        written = str(item.value)
        path = folder / written
        try:
            path = find(written if is_name(written) else path)
            real = path.resolve()
            if real.parts[1:2] in (("proc",), ("sys",), ("dev",)):
                # There to read is to ask: it may wait for ever, and tell what no file tells.
                reason = f"no policy file {quoted(str(path), PATH)}"
            elif real in [above.resolve() for above in chain]:
                reason = f"goes in a circle, {' -> '.join(quoted(str(link), PATH) for link in [*chain, path])}"
            elif len(self.sources) >= MAX_FILES:
                reason = f"more than {MAX_FILES} files"
            else:
                return self._file(path, chain)
        except PolicyError as error:
            reason = str(error)
        except OSError as error:
            reason = _unreadable(path, error)
        self.mistakes.append(Mistake(item.position, f"extends: {reason}"))
        return replace(item, value={})

    def _anchor(self, root: Node, folder: Path) -> None:
        """
        Have each file that a setting of *root* names stand beside the policy in *folder* that names it.
        """
        names = [(kind.name, key) for kind in self.kinds.values() for key in kind.files]
        for place in (root, *items(root, "tools")):
            for named in (inner(place, *name) for name in names):
                if named is not None and isinstance(named.value, str) and named.value:
                    named.value = str(folder.absolute() / named.value)

    def _merged(self, base: Node, over: Node, key: str = "") -> Node:
        """
        Returns the value *over* of *key* laid upon *base*: a setting replaces what was said of it by another name.
        """
        if not isinstance(base.value, dict) or not isinstance(over.value, dict):
            return over
        aliases = self.kinds.get(key, Guard).aliases
        now = {aliases.get(name, name) for name in over.value}
        merged = {
            name: node for name, node in base.value.items() if name in over.value or aliases.get(name, name) not in now
        }
        if "max_cost_usd" in now.intersection(aliases.get(name, name) for name in base.value):
            merged.pop("on_unpriced", None)
        for name, node in over.value.items():
            merged[name] = self._merged(merged[name], node, name) if name in merged else node
        return replace(over, value=merged)


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {quoted(str(path), PATH)}: {(error.strerror or 'unknown error').lower()}"


def _with_rules(merged: Node, own: Node, parents: list[Node]) -> Node:
    """
    Returns the settings *merged* of a file and its *parents*: the rules of `tools:` of its *own* stand before theirs.
    """
    tools: Any = inner(merged, "tools")
    if tools is None or not isinstance(tools.value, list) or tools.replaces:
        return merged
    # Two files may extend the same one: its rules stand once, below those of both.
    below_first = dict.fromkeys(rule for layer in (*parents, own) for rule in reversed(items(layer, "tools")))
    merged.value["tools"] = replace(tools, value=[*below_first][::-1])  # type: ignore[call-overload, index]
    return merged
