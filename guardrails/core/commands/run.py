"""
One command of a script: noted, and followed into what it runs.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from guardrails.core.commands.grammar.paths import under
from guardrails.core.commands.grammar.scope import SPLIT, UNKNOWN, Scope
from guardrails.core.commands.grammar.syntax import Tree, UnreadableError, parse
from guardrails.core.commands.grammar.work import NODE, Work

from .fork_bombs import fork_bomb
from .found import Command, Found
from .interpreters import literals
from .wrappers import Inner, below, inner


if TYPE_CHECKING:
    from tree_sitter import Node

_GLOB: Final = frozenset("*?[")
_ASSIGNING: Final = frozenset({"export", "declare", "local", "readonly", "typeset"})
_SETTING: Final = frozenset({"read", "mapfile", "readarray", "getopts", "unset"})
_CHANGED: Final = frozenset("nilu")
"""Letters of the options by which a variable becomes another one, or its value another than what is written."""
_MAX_POSITIONS: Final = 64
MAX_COMMANDS: Final = 2_000
MAX_NESTED: Final = 12
"""Scripts within scripts: `sh -c "sh -c ..."`."""


class Runner:
    """
    A walk over a script, as far as the script itself says what runs. A subclass walks the syntax.
    """

    def __init__(self, work: Work, scope: Scope | None = None) -> None:
        self.found = Found()
        self._work = work
        self._scope = Scope() if scope is None else scope
        self._tree: Tree | None = None
        self._depth = 0

    def visit(self, node: "Node", stdin: str | None = None, previous: Command | None = None) -> None:
        """
        Follow *node*. Its input is *stdin*: text of the script, `UNKNOWN`, or None if nothing is piped in.
        """
        raise NotImplementedError

    def script(self, text: str, depth: int, stdin: str | None, previous: Command | None) -> None:
        """
        Follow the script *text*, *depth* scripts deep.
        """
        if text.strip() == UNKNOWN:
            self._doubt("what it runs is known only when it runs")
            return
        if depth > MAX_NESTED:
            raise UnreadableError(f"it runs scripts within scripts, more than {MAX_NESTED} deep")
        self._work.spend(NODE * len(text))
        tree = parse(text.replace(UNKNOWN, "${__unknown}"))
        if tree.forks and self.found.fork_bomb is None:
            self.found.fork_bomb = fork_bomb(tree.root)
        outer, self._tree = self._tree, tree
        outer_depth, self._depth = self._depth, depth
        self.visit(tree.root, stdin, previous)
        self._tree, self._depth = outer, outer_depth

    def run(self, words: Sequence[str], stdin: str | None, previous: Command | None, nested: int = 0) -> None:
        """
        Note a command and follow what it runs.
        """
        if not words:
            return
        command = self.note(tuple(words), previous)
        name = command.name
        if UNKNOWN in name or (not _GLOB.isdisjoint(words[0]) and name not in ("[", "[[")):
            self._doubt("which program it runs is known only when it runs")
        if words[0] == UNKNOWN and len(words) > 1:
            # `$SUDO make`: where it is empty, the next word is the program.
            self.run(words[1:], stdin, previous, nested + 1)
        if nested > MAX_NESTED:
            raise UnreadableError(f"it wraps commands in commands, more than {MAX_NESTED} deep")
        if words[0] in self._scope.functions:
            self._call(words, stdin, previous)
            return
        if words[0] in self._scope.aliases:
            self._doubt(f"what `{words[0][:40]}` stands for is known only when it runs")
        self._set(name, words)
        for each in inner(name, words, _piped(previous) if name in ("xargs", "gxargs") and stdin == UNKNOWN else stdin):
            self._inner(each, stdin, previous, nested)
        for group in literals(name, words, stdin):
            self.guess(group)

    def _inner(self, each: Inner, stdin: str | None, previous: Command | None, nested: int) -> None:
        with nullcontext() if each.here else self._scope.apart():
            if each.arguments:
                self._scope.put(self._scope.variables, "0", each.arguments[:1])
                self._position(each.arguments[1:])
            if each.script is None:
                self.run(each.words, stdin, previous, nested + 1)
            else:
                # A script that is read from there leaves nothing to its commands.
                self.script(each.script, self._depth + 1, None if each.script is stdin else stdin, previous)

    def _call(self, words: Sequence[str], stdin: str | None, previous: Command | None) -> None:
        scope = self._scope
        tree, body = scope.functions[words[0]]
        before = scope.directories
        with scope.apart():
            # It may call itself; once through is enough.
            scope.put(scope.functions, words[0], None)
            self._position(words[1:])
            outer, self._tree = self._tree, tree
            self.visit(body, stdin, previous)
            self._tree = outer
            after = scope.directories
        scope.go((*after, *before))

    def _position(self, given: Sequence[str]) -> None:
        """
        Let *given* be `$1`, `$2`, ..., `$@` and `$*`.
        """
        self._work.spend(sum(map(len, given)))
        for number, word in enumerate(given[:_MAX_POSITIONS], 1):
            self._scope.put(self._scope.variables, str(number), (word,))
        for name in ("@", "*"):
            self._scope.put(self._scope.variables, name, (SPLIT.join(given),))

    def _set(self, name: str, words: Sequence[str]) -> None:
        """
        Let the command *words* of the shell itself change what is known: what it works out is known no more.
        """
        scope = self._scope
        flags = "".join(word for word in words[1:] if word.startswith("-"))
        rest = [word for word in words[1:] if not word.startswith("-") or word == "-"]
        if name in ("cd", "pushd", "chdir"):
            target = rest[0] if rest else "~"
            known = UNKNOWN not in target and target != "-"
            scope.go(tuple(under(one, target) for one in scope.directories) if known else (UNKNOWN,))
        elif name in _SETTING or (name == "printf" and words[1:2] == ("-v",)):
            for variable in rest:
                scope.assign(variable, (UNKNOWN,))
        elif name == "set" and (rest or "--" in words):
            for variable in ("@", "*", *map(str, range(1, _MAX_POSITIONS + 1))):
                scope.put(scope.variables, variable, None)
        elif name == "alias":
            for word in rest:
                if "=" in word:
                    scope.put(scope.aliases, *word.partition("=")[::2])
        elif name in _ASSIGNING:
            if not _CHANGED.isdisjoint(flags):
                scope.forget()
            for word in rest:
                variable, sign, value = word.partition("=")
                if sign:
                    scope.assign(variable, (value,))

    def guess(self, group: Sequence[str]) -> None:
        """
        Look at text of another language as at a command.
        """
        walker = type(self)(self._work)
        try:
            walker.script(" ".join(group), MAX_NESTED, None, None)
        except UnreadableError:
            return
        self.found.commands += walker.found.commands

    def note(self, words: tuple[str, ...], previous: Command | None) -> Command:
        """
        Put a command on the list.
        """
        self._work.spend(NODE + len(words) + sum(map(len, words)))
        if len(self.found.commands) >= MAX_COMMANDS:
            raise UnreadableError(f"it may run more than {MAX_COMMANDS:,} commands")
        command = Command(words, self._scope.directories, previous)
        self.found.commands.append(command)
        return command

    def _doubt(self, reason: str) -> None:
        if reason not in self.found.doubts:
            self.found.doubts.append(reason)


def _piped(previous: Command | None) -> str:
    """
    Words that `xargs` may be given behind *previous*: those of `echo`, and where `find` starts.
    """
    if previous is not None and previous.name == "echo":
        return " ".join(word for word in previous.words[1:] if not word.startswith("-")) or UNKNOWN
    if previous is not None and previous.name in ("find", "gfind"):
        return "\n".join(below(previous.words[1:]))
    return UNKNOWN
