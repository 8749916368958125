"""
One command of a script: noted, and followed into what it runs.
"""

from typing import TYPE_CHECKING, Final

from guardrails.core.commands.grammar.scope import UNKNOWN, Scope
from guardrails.core.commands.grammar.syntax import Tree, UnreadableError, parse

from . import builtins
from .fork_bombs import fork_bomb
from .found import Command, Found
from .interpreters import literals
from .wrappers import Inner, inner


if TYPE_CHECKING:
    from tree_sitter import Node

_GLOB: Final = frozenset("*?[")
MAX_COMMANDS: Final = 2_000
MAX_NESTED: Final = 12
"""Scripts within scripts: `sh -c "sh -c ..."`."""


class Runner:
    """
    What runs a script as far as it can be told without running it; how its syntax is walked is a subclass's.
    """

    def __init__(self) -> None:
        self.found = Found()
        self._certain = True
        self._tree: Tree | None = None
        self._depth = 0
        self._trees: list[Tree] = []
        self._outputs: dict[int, str | None] = {}
        """What each substitution printed when its command was last met, by node; the trees stay, so that ids do."""

    def visit(
        self, node: "Node", scope: Scope, stdin: str | None = None, previous: Command | None = None
    ) -> str | None:
        """
        Follow *node*; what it prints, None where nobody knows.
        """
        raise NotImplementedError

    def script(self, text: str, scope: Scope, depth: int, stdin: str | None, previous: Command | None) -> str | None:
        """
        Follow the script *text*, *depth* scripts deep; what it prints.
        """
        if text.strip() == UNKNOWN:
            self._doubt("what it runs is known only when it runs")
            return None
        if depth > MAX_NESTED:
            raise UnreadableError(f"it runs scripts within scripts, more than {MAX_NESTED} deep")
        tree = parse(text.replace(UNKNOWN, "${__unknown}"))
        self.found.fork_bomb = self.found.fork_bomb or fork_bomb(tree.root)
        self._trees.append(tree)
        outer, self._tree = self._tree, tree
        outer_depth, self._depth = self._depth, depth
        said = self.visit(tree.root, scope, stdin, previous)
        self._tree, self._depth = outer, outer_depth
        return said

    def run(
        self, words: list[str], scope: Scope, stdin: str | None, previous: Command | None, nested: int = 0
    ) -> str | None:
        """
        Note a command and follow what it runs; what it prints, None where nobody knows.
        """
        if not words:
            return ""
        command = self.note(tuple(words), scope, previous)
        name = command.name
        if UNKNOWN in name or (not _GLOB.isdisjoint(words[0]) and name not in ("[", "[[")):
            self._doubt("which program it runs is known only when it runs")
        if words[0] == UNKNOWN and len(words) > 1:
            # `$SUDO make`: where it is empty, the next word is the program.
            self.run(words[1:], scope, stdin, previous, nested + 1)
        if nested > MAX_NESTED:
            raise UnreadableError(f"it wraps commands in commands, more than {MAX_NESTED} deep")
        if words[0] in scope.functions:
            return self._call(words, scope, stdin, previous, nested)
        alias = scope.aliases.get(words[0])
        if alias is not None:
            fresh = scope.copy()
            del fresh.aliases[words[0]]
            return self.script(" ".join((alias, *words[1:])), fresh, self._depth + 1, stdin, previous)
        builtins.apply(name, words, scope, certain=self._certain)
        said = builtins.printed(name, words, stdin)
        for each in inner(name, words, stdin):
            said = self._inner(each, scope, stdin, previous, nested)
        for group in literals(name, words, stdin):
            self.guess(group)
        return said

    def _inner(self, each: Inner, scope: Scope, stdin: str | None, previous: Command | None, nested: int) -> str | None:
        own = scope if each.here else scope.copy()
        if each.arguments:
            own.variables["0"] = each.arguments[:1]
            builtins.positional(own, each.arguments[1:])
        if each.script is not None:
            # A script that is read from there leaves nothing to its commands.
            rest = None if each.script is stdin else stdin
            return self.script(each.script, own, self._depth + 1, rest, previous)
        return self.run(list(each.words), own, stdin, previous, nested + 1)

    def _call(
        self, words: list[str], scope: Scope, stdin: str | None, previous: Command | None, nested: int
    ) -> str | None:
        tree, body = scope.functions[words[0]]
        own = scope.copy()
        # It may call itself; once through is enough.
        del own.functions[words[0]]
        builtins.positional(own, words[1:])
        outer, self._tree = self._tree, tree
        said = self.visit(body, own, stdin, previous)
        self._tree = outer
        own.functions.pop(words[0], None)
        scope.go((*own.directories, *scope.directories))
        return said

    def guess(self, group: list[str]) -> None:
        """
        Look at text of another language as at a command.
        """
        walker = type(self)()
        try:
            walker.script(" ".join(group), Scope(), MAX_NESTED, None, None)
        except UnreadableError:
            return
        self.found.commands += walker.found.commands

    def note(self, words: tuple[str, ...], scope: Scope, previous: Command | None) -> Command:
        """
        Put a command on the list.
        """
        if len(self.found.commands) >= MAX_COMMANDS:
            raise UnreadableError(f"it may run more than {MAX_COMMANDS:,} commands")
        command = Command(words, scope.directories, previous)
        self.found.commands.append(command)
        return command

    def _doubt(self, reason: str) -> None:
        if reason not in self.found.doubts:
            self.found.doubts.append(reason)
