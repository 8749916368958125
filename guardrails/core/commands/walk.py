"""
Every command that a script may run, found by walking through it as a shell would, without running anything.

Branches are all taken, functions are followed when they are called, and what a variable may be is kept. What a word is
worth only at run time stays `UNKNOWN`.
"""

import re

from typing import TYPE_CHECKING, Final

from guardrails.core.commands.grammar.escapes import unquoted
from guardrails.core.commands.grammar.scope import MAX_VARIANTS, UNKNOWN, Scope
from guardrails.core.commands.grammar.syntax import text_of
from guardrails.core.commands.grammar.words import Words
from guardrails.core.values.late_pattern import pattern

from . import builtins
from .found import Command
from .run import Runner


if TYPE_CHECKING:
    from tree_sitter import Node

_BRANCHES: Final = frozenset(
    {
        "if_statement",
        "while_statement",
        "case_statement",
        "for_statement",
        "c_style_for_statement",
        "function_definition",
    }
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


class Walker(Runner):
    """
    Walks through the syntax of a script.
    """

    def _statements(self, node: "Node", scope: Scope, stdin: str | None, previous: Command | None) -> str | None:
        said: list[str | None] = []
        for child in node.named_children:
            before = scope.directories
            said.append(self.visit(child, scope, stdin, previous))
            if scope.directories != before:
                # What changes the directory may fail, and the next statement runs all the same.
                scope.go((*scope.directories, *before))
        return None if None in said else "\n".join(text for text in said if text)

    def visit(
        self, node: "Node", scope: Scope, stdin: str | None = None, previous: Command | None = None
    ) -> str | None:
        match node.type:
            case "command":
                return self._command(node, scope, stdin, previous)
            case "redirected_statement":
                return self._redirected(node, scope, stdin, previous)
            case "pipeline":
                return self._pipeline(node.named_children, scope, stdin, previous)
            case "list":
                left, *right = node.named_children
                said = self.visit(left, scope, stdin, previous)
                either = scope.copy() if any(child.type == "||" for child in node.children) else None
                last = self._maybe(right, scope, stdin, previous)
                if either is not None:
                    scope.join(either)
                return None if said is None or last is None else said + last
            case "subshell":
                return self._statements(node, scope.copy(), stdin, previous)
            case "command_substitution" | "process_substitution":
                # What is written to `>(sh)` is what it reads.
                written = node.type == "process_substitution" and node.children[0].type == ">("
                said = self._statements(node, scope.copy(), UNKNOWN if written else stdin, previous)
                self._outputs[node.id] = None if node.type == "process_substitution" else said
                return said
            case "compound_statement" | "program" | "negated_command":
                return self._statements(node, scope, stdin, previous)
            case "function_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                if name is not None and body is not None and self._tree is not None:
                    scope.functions[unquoted(text_of(name))] = (self._tree, body)
                    # Once for itself, as a trap or a completion calls it; what it is given is seen where it is called.
                    doubts = len(self.found.doubts)
                    self._maybe([body], scope.copy(), stdin, previous)
                    del self.found.doubts[doubts:]
                return ""
            case "variable_assignment":
                self._assign(node, scope)
                return ""
            case "declaration_command":
                return self._declaration(node, scope)
            case "for_statement":
                self._loop(node, scope)
            case "file_redirect":
                # `$(< file)`
                self._file(node, scope, None)
                return None
        self._backticks(node, scope)
        if node.type in _OPAQUE:
            return ""
        branch = node.type in _BRANCHES
        said = (
            self._maybe(node.named_children, scope, stdin, previous)
            if branch
            else self._each(node, scope, stdin, previous)
        )
        return None if branch else said

    def _each(self, node: "Node", scope: Scope, stdin: str | None, previous: Command | None) -> str | None:
        said = [self.visit(child, scope, stdin, previous) for child in node.named_children]
        return None if None in said else "".join(text or "" for text in said)

    def _maybe(self, parts: "list[Node]", scope: Scope, stdin: str | None, previous: Command | None) -> str | None:
        """
        Visit what may or may not run.
        """
        outer, self._certain = self._certain, False
        said = [self.visit(part, scope, stdin, previous) for part in parts]
        self._certain = outer
        return None if None in said else "".join(text or "" for text in said)

    def _pipeline(self, stages: "list[Node]", scope: Scope, stdin: str | None, previous: Command | None) -> str | None:
        said = stdin
        for number, stage in enumerate(stages):
            at = len(self.found.commands)
            given = said if number == 0 else UNKNOWN if said is None else said
            said = self.visit(stage, scope.copy(), given, previous)
            fresh = self.found.commands[at:]
            previous = fresh[0] if fresh else previous
        return said

    def _redirected(self, node: "Node", scope: Scope, stdin: str | None, previous: Command | None) -> str | None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child != body]
        given = self._inputs(redirects, scope, stdin)
        said = None if body is None else self.visit(body, scope, given, previous)
        for redirect in redirects:
            # After the word that begins a here-document the rest of its line may follow: `cat <<EOF | sh`.
            if redirect.type != "heredoc_redirect":
                continue
            for child in redirect.named_children:
                if child.type == "pipeline":
                    said = self._pipeline(child.named_children, scope, UNKNOWN if said is None else said, previous)
                elif child.type not in ("file_redirect", "heredoc_body", "heredoc_start", "heredoc_end"):
                    self._maybe([child], scope, None, previous)
        return said

    def _inputs(self, redirects: "list[Node]", scope: Scope, stdin: str | None) -> str | None:
        """
        What is read of *redirects*; what they write is noted as commands.
        """
        for redirect in redirects:
            if redirect.type == "file_redirect":
                stdin = self._file(redirect, scope, stdin)
            elif redirect.type == "herestring_redirect":
                for child in redirect.named_children:
                    self.visit(child, scope)
                    stdin = next(iter(self._words(scope).texts(child)), UNKNOWN)
            elif redirect.type == "heredoc_redirect":
                stdin = self._heredoc(redirect, scope)
                stdin = self._inputs([c for c in redirect.named_children if c.type == "file_redirect"], scope, stdin)
        return stdin

    def _heredoc(self, node: "Node", scope: Scope) -> str:
        text, quoted = "", False
        for child in node.named_children:
            if child.type == "heredoc_start":
                quoted = not _QUOTES.isdisjoint(text_of(child))
            if child.type == "heredoc_body":
                text = text_of(child)
                if not quoted:
                    self.visit(child, scope)
            elif child.type == "heredoc_start" and self._tree is not None:
                text = self._tree.bodies.get(child.start_byte, text)
        return text

    def _file(self, node: "Node", scope: Scope, stdin: str | None) -> str | None:
        target = node.child_by_field_name("destination")
        if target is None:
            return stdin
        said = self.visit(target, scope) if target.type == "process_substitution" else ""
        signs = [child.type for child in node.children]
        if any(sign.startswith("<") for sign in signs):
            # A file is like a script that is named; what a process prints is not.
            return (UNKNOWN if said is None else said) if target.type == "process_substitution" else None
        if ">&" in signs and target.type == "number":
            return stdin
        for file in self._words(scope).texts(target):
            self.note((">", file), scope, None)
        return stdin

    def _assign(self, node: "Node", scope: Scope, *, kept: bool = True) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        for child in node.named_children:
            self.visit(child, scope)
        own = text_of(name).partition("[")[0]
        words = self._words(scope)
        values = ("",) if value is None else words.variants(value) if value.type == "array" else words.texts(value)
        if any(child.type == "+=" for child in node.children):
            before = scope.variables.get(own, ("",))
            values = tuple(one + two for one in before for two in values)[:MAX_VARIANTS]
        for one in values:
            self.note((f"{own}={one}",), scope, None)
            if own in _RUN_LATER:
                self.guess([one])
        if kept:
            scope.assign(own, values, certain=self._certain)

    def _declaration(self, node: "Node", scope: Scope) -> str:
        words = self._words(scope)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, scope)
            else:
                self.visit(child, scope)
        plain = [child for child in node.named_children if child.type != "variable_assignment"]
        for said in words.lists(plain):
            self.note((node.children[0].type, *said), scope, None)
            builtins.apply("export", ["export", *said], scope, certain=self._certain)
        return ""

    def _loop(self, node: "Node", scope: Scope) -> None:
        variable = node.child_by_field_name("variable")
        values = [word for words in self._words(scope).lists(node.children_by_field_name("value")) for word in words]
        if variable is not None:
            scope.assign(text_of(variable), tuple(dict.fromkeys(values)) or (UNKNOWN,), certain=False)

    def _command(self, node: "Node", scope: Scope, stdin: str | None, previous: Command | None) -> str | None:
        redirects = [child for child in node.named_children if child.type.endswith("_redirect")]
        parts = [c for c in node.named_children if c not in redirects and c.type != "variable_assignment"]
        own = scope
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, scope, kept=False)
        for part in parts:
            self._substitutions(part, own)
        given = self._inputs(redirects, own, stdin)
        said: list[str | None] = [
            self.run(words, own, given, previous) for words in self._words(own).lists(parts) if words
        ]
        return said[0] if len(said) == 1 else None

    def _substitutions(self, node: "Node", scope: Scope) -> None:
        """
        Visit the outermost substitutions in a word; each visits those within it.
        """
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each.type in ("command_substitution", "process_substitution"):
                self.visit(each, scope)
            else:
                self._backticks(each, scope)
                waiting += each.named_children

    def _backticks(self, node: "Node", scope: Scope) -> None:
        """
        Follow the substitutions that the grammar takes for text: in patterns, defaults and here-documents.
        """
        if node.type not in _TEXTS or b"`" not in (node.text or b""):
            return
        for inner in _BACKTICKS.findall(text_of(node)):
            self.script(_ESCAPED.sub(r"\1", inner), scope.copy(), self._depth + 1, None, None)

    def _words(self, scope: Scope) -> Words:
        return Words(scope, self._outputs)
