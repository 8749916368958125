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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any

from guardrails.core.guards import kinds_of
from guardrails.core.guards.base import Guard
from guardrails.core.guards.rules import Rules
from guardrails.core.tools.tool import REPEATS
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import fit, map_type, quoted

from .check import VERSION, Head, policy_type, unusable
from .file import (
    PATH,
    Mistake,
    Node,
    Position,
    Source,
    find,
    got,
    inner,
    inside,
    items,
    lines_of,
    mistakes_at,
    parse,
    plain,
)
from .reload import Content, digest, is_name, stamp


class Document:
    """
    A policy file, or a shipped policy, and all it extends, read but not yet held to types. The *guards* are a person's own: instances are
    added, and for classes the file says whether and how they stand. Raises PolicyError only if there is no such file.
    """

    def __init__(self, source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> None:
        given = [*guards]
        own = [each if isinstance(each, type) else type(each) for each in given]
        self.name, self.kinds = str(source), kinds_of(cls for cls in own if issubclass(cls, Guard))
        self._made = [each for each in given if not (isinstance(each, type) and issubclass(each, Guard))]
        self.sources: dict[Source, Content] = {}
        """The files that were read, the named one first."""
        self.mistakes: list[Mistake] = []
        self._overrides: list[Mistake] = []
        self._done: dict[Path, Node] = {}
        path = find(source)
        try:
            self.root = self._file(path, ())
            """The settings of all files."""
        except OSError as error:
            raise PolicyError([_unreadable(path, error)]) from None

    def arguments(self) -> dict[str, Any]:
        """
        Returns the arguments for `Policy` that it stands for. Raises PolicyError with every mistake, file by file.
        """
        arguments, faults = fit(policy_type(self.kinds), plain(self.root))
        self.mistakes += mistakes_at(faults, self.root)
        if not self.mistakes:
            arguments["guards"] += self._made
            self.mistakes += [*self._of_rules(arguments), *self._of_expressions(arguments)]
        if self.mistakes:
            raise PolicyError(lines_of(self.mistakes, [*self.sources]))
        return {"name": self.name, "kinds": self.kinds, **arguments}

    def contents(self) -> dict[str, Content]:
        """
        Returns what was read, by the whole path of each file.
        """
        return {os.path.abspath(source.name): content for source, content in self.sources.items()}  # noqa: PTH100

    def hints(self) -> list[str]:
        """
        Returns, of the named file, its older words with those that stand for them now, and its values that stand in place of others, of files
        that it extends. Rules of `tools:` are not compared.
        """
        named = next(iter(self.sources))
        words = [
            Mistake(entry.named, f"tools.{number}.{old}: {old} is now `repeats: {now}`")
            for number, rule in enumerate(items(self.root, "tools"))
            for old, now in REPEATS.items()
            if (entry := inner(rule, old)) is not None and entry.value is True
        ]
        return [str(one).partition("\n")[0] for one in [*words, *self._overrides] if one.position.source is named]

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

    def _of_expressions(self, arguments: dict[str, Any]) -> Iterator[Mistake]:
        """
        Returns what is wrong with what rules say in CEL, by itself and for the tools whose parameters are declared.
        """
        own = next((guard for guard in arguments["guards"] if isinstance(guard, Rules)), Rules())
        root = inner(self.root, "rules", "rules") or inner(self.root, "rules")
        declared = [rule for rule in arguments["rules"] if isinstance(rule.declared.get("parameters"), Mapping)]
        for number, rule in enumerate(own.rules):
            tools = [each for each in declared if any(map(rule.is_about, each.match))]
            for place, expression in rule.expressions():
                node = inner(root, number, *place) or self.root
                for_tools = (one for each in tools for one in expression.faults_for(each.declared["parameters"]))
                for line, column, said in dict.fromkeys([*expression.faults, *for_tools]):
                    yield Mistake(inside(node, line, column), f"rules.{number}.{'.'.join(place)}: {said}")

    def _file(self, path: Path, chain: tuple[Path, ...]) -> Node:
        """
        Returns the settings of a file, which those of *chain* extend, with those that it extends. Raises PolicyError if it is extended and is
        no policy: the content of another file may be a secret, and is not shown in a mistake.
        """
        real = path.resolve()
        if real not in self._done:
            with path.open("rb") as stream:
                seen, text = stamp(os.fstat(stream.fileno())), stream.read()
            parsed = parse(text, str(path))
            version = inner(parsed.root, "version")
            if chain and (version is None or type(version.value) is not int):
                raise PolicyError([f"{quoted(str(path), PATH)} is no policy that can be read: check it by itself"])
            self.sources[parsed.source] = Content(seen, digest(text))
            self.mistakes += parsed.mistakes
            empty = Node(Position(parsed.source, 1, 1), {})
            self._done[real] = self._whole(parsed.root, (*chain, path)) if parsed.root else empty
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
        own = {key: node for key, node in root.value.items() if key not in map_type(Head).types}
        if "tools" in own and got(own["tools"]) == "nothing":
            # All of its rules are comments.
            del own["tools"]
        self._anchor(root, chain[-1].parent)
        return reduce(self._merged, (*parents, replace(root, value=own)))

    def _parent(self, item: Node, chain: tuple[Path, ...]) -> Node:
        written = str(item.value)
        path = chain[-1].parent / written
        try:
            path = find(written if is_name(written) else path)
            real = path.resolve()
            if real.parts[1:2] in (("proc",), ("sys",), ("dev",)):
                # There to read is to ask: it may wait for ever, and tell what no file tells.
                reason = f"no policy file {quoted(str(path), PATH)}"
            elif real in [above.resolve() for above in chain]:
                reason = f"goes in a circle, {' -> '.join(quoted(str(link), PATH) for link in [*chain, path])}"
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
        names = [(kind.name, key) for kind in self.kinds for key in kind.files]
        for place in (root, *items(root, "tools")):
            for named in (inner(place, *name) for name in names):
                if named is not None and isinstance(named.value, str) and named.value:
                    named.value = str(folder.absolute() / named.value)

    def _merged(self, base: Node, over: Node, path: tuple[str, ...] = ()) -> Node:
        """
        Returns the value *over* at *path* laid upon *base*: a setting replaces what was said of it by another name.
        """
        if (
            path in (("tools",), ("rules",))
            and isinstance(base.value, list)
            and isinstance(over.value, list)
            and not over.replaces
        ):
            # Two files may extend the same one: its rules stand once, below those of both.
            return replace(over, value=[*(rule for rule in over.value if rule not in base.value), *base.value])
        if not isinstance(base.value, dict) or not isinstance(over.value, dict):
            if plain(base) != plain(over):
                below = f"{got(base)} of {Path(base.named.source.name).name}:{base.named.line}"
                self._overrides.append(Mistake(over.named, f"{'.'.join(path)}: {got(over)} overrides {below}"))
            return over
        aliases = next((cls.aliases for cls in self.kinds if path[-1:] == (cls.name,)), {})
        now = {aliases.get(name, name) for name in over.value}
        merged = {name: n for name, n in base.value.items() if name in over.value or aliases.get(name, name) not in now}
        if "max_cost_usd" in now.intersection(aliases.get(name, name) for name in base.value):
            merged.pop("on_unpriced", None)
        for name, node in over.value.items():
            merged[name] = self._merged(merged[name], node, (*path, name)) if name in merged else node
        return replace(over, value=merged)


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {quoted(str(path), PATH)}: {(error.strerror or 'unknown error').lower()}"
