"""
Every command that a script may run, found by walking through it as a shell would, without running anything.

Branches are all taken, functions are followed when they are called, and what a script itself assigns to a variable is
kept. Values that a word has only at run time stay `UNKNOWN`: the output of a program is never worked out.
"""

import re

from typing import TYPE_CHECKING, Final

from guardrails.core.commands.grammar.escapes import unquoted
from guardrails.core.commands.grammar.scope import MAX_VARIANTS, UNKNOWN
from guardrails.core.commands.grammar.syntax import text_of
from guardrails.core.commands.grammar.words import Words
from guardrails.core.commands.grammar.work import NODE
from guardrails.core.values.late_pattern import pattern

from .found import Command
from .run import Runner


if TYPE_CHECKING:
    from tree_sitter import Node

_BRANCHES: Final = frozenset(
    {"if_statement", "while_statement", "case_statement", "for_statement", "c_style_for_statement"}
)
_TEXTS: Final = frozenset({"word", "regex", "extglob_pattern", "heredoc_body"})
_BACKTICKS: Final = pattern(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ESCAPED: Final = pattern(r"\\([`\\$])")
_QUOTES: Final = frozenset("'\"\\")
_RUN_LATER: Final = frozenset(
    {"PROMPT_COMMAND", "PS1", "PS4", "BASH_ENV", "ENV", "EDITOR", "VISUAL", "PAGER", "LESSOPEN"}
    | {"GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS"}
)
"""Variables whose values other programs run."""
_OPAQUE: Final = frozenset({"comment", "heredoc_start", "heredoc_end", "word", "raw_string", "ansi_c_string", "number"})
_SUBSTITUTIONS: Final = frozenset({"command_substitution", "process_substitution"})


class Walker(Runner):
    """
    Walks through the syntax of a script.
    """

    def visit(self, node: "Node", stdin: str | None = None, previous: Command | None = None) -> None:  # noqa: C901  a case for each kind of node
        self._work.spend(NODE)
        scope = self._scope
        match node.type:
            case "command":
                self._command(node, stdin, previous)
            case "redirected_statement":
                self._redirected(node, stdin, previous)
            case "pipeline":
                self._pipeline(node.named_children, stdin, previous)
            case "list":
                left, *right = node.named_children
                self.visit(left, stdin, previous)
                before = scope.directories
                self._maybe(right, stdin, previous)
                if any(child.type == "||" for child in node.children):
                    scope.go((*scope.directories, *before))
            case "subshell":
                with scope.apart():
                    self._statements(node, stdin, previous)
            case "command_substitution" | "process_substitution":
                # What is written to `>(sh)` is what it reads.
                written = node.type == "process_substitution" and node.children[0].type == ">("
                with scope.apart():
                    self._statements(node, UNKNOWN if written else stdin, previous)
            case "compound_statement" | "program" | "negated_command":
                self._statements(node, stdin, previous)
            case "function_definition":
                self._definition(node, stdin, previous)
            case "variable_assignment":
                self._assign(node)
            case "declaration_command" | "unset_command":
                self._declaration(node)
            case "file_redirect":
                # `$(< file)`
                self._file(node, None)
            case kind if kind in _BRANCHES:
                if kind == "for_statement":
                    self._loop(node)
                self._maybe(node.named_children, stdin, previous)
            case kind:
                self._backticks(node)
                if kind not in _OPAQUE:
                    for child in node.named_children:
                        self.visit(child, stdin, previous)

    def _statements(self, node: "Node", stdin: str | None, previous: Command | None) -> None:
        scope = self._scope
        for child in node.named_children:
            before = scope.directories
            self.visit(child, stdin, previous)
            if scope.directories != before:
                # What changes the directory may fail, and the next statement runs all the same.
                scope.go((*scope.directories, *before))

    def _maybe(self, parts: "list[Node]", stdin: str | None, previous: Command | None) -> None:
        with self._scope.maybe():
            for part in parts:
                self.visit(part, stdin, previous)

    def _definition(self, node: "Node", stdin: str | None, previous: Command | None) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None or self._tree is None:
            return
        scope = self._scope
        scope.put(scope.functions, unquoted(text_of(name)), (self._tree, body))
        # Once for itself, as a trap or a completion calls it; what it is given is seen where it is called.
        doubts = len(self.found.doubts)
        with scope.apart():
            self._maybe([body], stdin, previous)
        del self.found.doubts[doubts:]

    def _pipeline(self, stages: "list[Node]", stdin: str | None, previous: Command | None) -> None:
        for stage in stages:
            at = len(self.found.commands)
            with self._scope.apart():
                self.visit(stage, stdin, previous)
            previous = next(iter(self.found.commands[at : at + 1]), previous)
            stdin = UNKNOWN

    def _redirected(self, node: "Node", stdin: str | None, previous: Command | None) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        given = self._inputs(redirects, stdin)
        if body is not None:
            at = len(self.found.commands)
            self.visit(body, given, previous)
            previous = next(iter(self.found.commands[at : at + 1]), previous)
        for redirect in redirects:
            # After the word that begins a here-document the rest of its line may follow: `cat <<EOF | sh`.
            if redirect.type != "heredoc_redirect":
                continue
            for child in redirect.named_children:
                if child.type == "pipeline":
                    self._pipeline(child.named_children, UNKNOWN, previous)
                elif child.type not in ("file_redirect", "heredoc_body", "heredoc_start", "heredoc_end"):
                    self._maybe([child], None, previous)

    def _inputs(self, redirects: "list[Node]", stdin: str | None) -> str | None:
        """
        Returns the text that is read of *redirects*; files that they write are noted as commands.
        """
        for redirect in redirects:
            if redirect.type == "file_redirect":
                stdin = self._file(redirect, stdin)
            elif redirect.type == "herestring_redirect":
                for child in redirect.named_children:
                    self.visit(child)
                    stdin = next(iter(self._words().texts(child)), UNKNOWN)
            elif redirect.type == "heredoc_redirect":
                stdin = self._heredoc(redirect)
                stdin = self._inputs([c for c in redirect.named_children if c.type == "file_redirect"], stdin)
        return stdin

    def _heredoc(self, node: "Node") -> str:
        text, quoted = "", False
        for child in node.named_children:
            if child.type == "heredoc_start" and self._tree is not None:
                quoted = not _QUOTES.isdisjoint(text_of(child))
                text = self._tree.bodies.get(child.start_byte, text)
            elif child.type == "heredoc_body":
                # Where its text was taken out, nothing is left of it here.
                text = text or text_of(child)
                if not quoted:
                    self.visit(child)
        return text

    def _file(self, node: "Node", stdin: str | None) -> str | None:
        target = node.child_by_field_name("destination")
        if target is None:
            return stdin
        self._substitutions(target)
        signs = [child.type for child in node.children]
        if any(sign.startswith("<") for sign in signs):
            # A file is like a script that is named; what a process prints is not.
            return UNKNOWN if target.type == "process_substitution" else None
        if ">&" in signs and target.type == "number":
            return stdin
        for file in self._words().texts(target):
            self.note((">", file), None)
        return stdin

    def _assign(self, node: "Node", *, kept: bool = True) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        for child in node.named_children:
            self._substitutions(child)
        own = text_of(name).partition("[")[0]
        words, scope = self._words(), self._scope
        values = ("",) if value is None else words.variants(value) if value.type == "array" else words.texts(value)
        if any(child.type == "+=" for child in node.children):
            before = scope.variables.get(own, ("",))
            values = tuple(one + two for one in before for two in values)[:MAX_VARIANTS]
        for one in values:
            self.note((f"{own}={one}",), None)
            if own in _RUN_LATER:
                self.guess([one])
        if kept:
            scope.assign(own, values)

    def _declaration(self, node: "Node") -> None:
        plain: list[Node] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child)
            else:
                self._substitutions(child)
                plain.append(child)
        name = node.children[0].type
        for said in self._words().lists(plain):
            self.note((name, *said), None)
            self._set(name, (name, *said))

    def _loop(self, node: "Node") -> None:
        variable = node.child_by_field_name("variable")
        values = [word for words in self._words().lists(node.children_by_field_name("value")) for word in words]
        if variable is not None:
            with self._scope.maybe():
                self._scope.assign(text_of(variable), tuple(dict.fromkeys(values)) or (UNKNOWN,))

    def _command(self, node: "Node", stdin: str | None, previous: Command | None) -> None:
        redirects: list[Node] = []
        parts: list[Node] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, kept=False)
            elif child.type.endswith("_redirect"):
                redirects.append(child)
            else:
                parts.append(child)
        for part in parts:
            self._substitutions(part)
        given = self._inputs(redirects, stdin)
        for words in self._words().lists(parts):
            self.run(words, given, previous)

    def _substitutions(self, node: "Node") -> None:
        """
        Visit the outermost substitutions in a word; each visits those within it.
        """
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each.type in _SUBSTITUTIONS:
                self.visit(each)
            else:
                self._work.spend(NODE)
                self._backticks(each)
                waiting += each.named_children

    def _backticks(self, node: "Node") -> None:
        """
        Follow the substitutions that the grammar takes for text: in patterns, defaults and here-documents.
        """
        if node.type not in _TEXTS or b"`" not in (node.text or b""):
            return
        for inner in _BACKTICKS.findall(text_of(node)):
            with self._scope.apart():
                self.script(_ESCAPED.sub(r"\1", inner), self._depth + 1, None, None)

    def _words(self) -> Words:
        return Words(self._scope, self._work)
