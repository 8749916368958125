"""
Every command that a script may run, found by walking through it as a shell would, without running anything.

Branches are all taken, one after the other, and what the script itself assigned to a variable last is known. Text that a
word has only at run time is `UNKNOWN`: the output of a program is never worked out.
"""

import re

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from getopt import GetoptError, getopt
from itertools import dropwhile, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrails.core.commands.rules import braces
from guardrails.core.commands.syntax import (
    HIDDEN,
    UNKNOWN,
    Command,
    Contents,
    Fault,
    UnreadableError,
    leaves,
    parse,
    under,
)


if TYPE_CHECKING:
    from tree_sitter import Node


SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash", "csh", "tcsh"})
WRAPPERS: Final = {
    **dict.fromkeys(("!", "builtin", "coproc", "nohup"), ("", "", 0)),
    "command": ("p", "", 0),
    "env": ("iv0u:C:S:", "ignore-environment debug null unset= chdir= split-string=", 0),
    "exec": ("cla:", "", 0),
    "nice": ("n:", "adjustment=", 0),
    "setsid": ("cfw", "ctty fork wait", 0),
    "ssh": ("46AaCfnqTtvXYb:c:D:E:F:I:i:J:L:l:m:o:p:R:W:", "", 1),
    "stdbuf": ("i:o:e:", "input= output= error=", 0),
    "sudo": ("AbEHknPSu:g:h:p:C:r:t:T:U:D:R:", "preserve-env user= group= chdir=", 0),
    "time": ("apqvf:o:", "append portability quiet verbose format= output=", 0),
    "timeout": ("fpvs:k:", "foreground preserve-status verbose signal= kill-after=", 1),
    "xargs": ("0oprtxI:n:L:P:s:d:E:a:", "no-run-if-empty null verbose max-args= max-procs=", 0),
}
"""By program its options, as `getopt` reads them, and the number of words before what it runs."""
_STDIN: Final = frozenset({"-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"})
_EXEC: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


class Inner(NamedTuple):
    """
    A command that a program runs: *words* as they are, or a *script* for a shell to read.
    """

    words: tuple[str, ...] = ()
    script: str | None = None
    unclear: str = ""
    """A word of the program itself that is not known: an option may take what stands behind it."""


def started(name: str, rest: list[str], stdin: str | None) -> Iterator[Inner]:
    """
    Returns the commands that the program *name* runs when called with *rest*.

    *stdin* is the program's input: `UNKNOWN` if only the running shell knows it, None if nothing is piped in.
    """
    if name in SHELLS:
        yield from _shell(rest, stdin)
    elif name in (".", "source"):
        yield from [Inner(script=stdin or UNKNOWN)] if rest and (rest[0] in _STDIN or rest[0] == UNKNOWN) else []
    elif name in ("eval", "trap"):
        yield Inner(script=" ".join(rest if name == "eval" else [word for word in rest if word[:1] != "-"][:1]))
    elif name in ("su", "script", "runuser"):
        yield from (Inner(script=value) for word, value in pairwise(rest) if re.fullmatch(r"-\w*c|--command", word))
    elif name in ("find", "fd", "fdfind"):
        yield from _of_find(rest)
    elif name in WRAPPERS and not (name == "command" and rest[:1] and rest[0] in ("-v", "-V")):
        yield from _wrapped(name, rest, stdin)


def _shell(rest: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    place, script, piped = 0, False, False
    while place < len(rest) and rest[place][:1] in ("-", "+"):
        word = rest[place]
        letters = "" if word.startswith("--") else word[1:]
        script = script or "c" in letters or word == "--command"
        piped = piped or "s" in letters
        # Each of these takes a word, also among others: `bash -eo pipefail -c ...`.
        place += 1 + sum(map(letters.count, "oO")) + (word in ("--rcfile", "--init-file"))
    named = rest[place : place + 1]
    if script:
        yield from (Inner(script=word) for word in named)
    elif not named or piped or named[0] in _STDIN:
        yield Inner(script=stdin)
    elif named[0] == UNKNOWN:
        yield Inner(script=UNKNOWN)


def _of_find(rest: list[str]) -> Iterator[Inner]:
    yield from [Inner(unclear=UNKNOWN)] if any(UNKNOWN in word for word in rest) else []
    for place, word in enumerate(rest):
        if word in _EXEC:
            ends = (at for at in range(place + 1, len(rest)) if rest[at] == ";" or rest[at - 1 : at + 1] == ["{}", "+"])
            yield Inner(tuple(each.replace("{}", UNKNOWN) for each in rest[place + 1 : next(ends, len(rest))]))


def _wrapped(name: str, rest: list[str], stdin: str | None) -> Iterator[Inner]:
    letters, names, before = WRAPPERS[name]
    unclear, options = "", dict[str, str]()
    try:
        pairs, words = getopt(rest, letters, names.split())
        options = dict(pairs)
    except GetoptError as error:
        unclear = next(word for word in rest if error.opt in word)
        words = list(dropwhile(lambda word: word[:1] == "-", rest))
    words = words[before:]
    unclear = unclear or next((word for word in rest[: len(rest) - len(words)] if UNKNOWN in word), "")
    words = list(dropwhile(lambda word: re.match(r"-|[A-Za-z_]\w*\+?=", word), words))
    if name == "xargs" and words:
        filled = options.get("-I")
        words = [each.replace(filled, UNKNOWN) for each in words] if filled else [*words, *(stdin or UNKNOWN).split()]
    script = options.get("-S", options.get("--split-string", " ".join(words) or stdin if name == "ssh" else None))
    yield Inner(tuple(words), script, unclear)


MAX_WORK: Final = 1 << 20
"""Characters of scripts and words, and 100 for each command."""
_SPLIT: Final = "\x01"
"""Where an expansion that nothing quotes parts into words."""
_PRINTS: Final = re.compile(r"[$`]\(?\s*(?:(pwd)|which\s+([\w.-]{1,80}))\s*[)`]")
"""Substitutions that are as good as a word: `$(pwd)`, `$(which python3)`."""
_VARIABLE: Final = re.compile(r"\$\{?(\w+|[@*])(?:\[[@*]\]|(?<=[@*]):\d+)?(?:(:?[-=?])(.*?))?\}?", re.DOTALL)


@lru_cache(maxsize=8)
def read(command: str | tuple[str, ...]) -> Contents:
    """
    Returns all that *command* may run: the text of a script, or the words of one command that no shell splits again.
    Raises MissingExtra without the parser.
    """
    reader = _Reader()
    try:
        if re.search("[\0\ud800-\udfff]", "".join(command)):
            raise UnreadableError("it holds a NUL, or is not valid Unicode")
        if isinstance(command, str):
            reader.script(command, None, None)
        else:
            reader.run(command, None, None)
    except UnreadableError as error:
        reader.contents.unreadable = Fault(*error.args)
    except RecursionError:
        reader.contents.unreadable = Fault("it is nested too deeply")
    return reader.contents


class _Reader:
    def __init__(self) -> None:
        self.contents = Contents()
        self._variables = {"HOME": "~", "PWD": ".", "IFS": " "}
        self._functions: set[str] = set()
        self._folder = "."
        self._source = b""
        self._work = 0

    def script(self, text: str, stdin: str | None, before: Command | None) -> None:
        """
        Follow the script *text*.
        """
        if text.strip() == UNKNOWN:
            self.contents.undecidable = "what it runs is known only when it runs"
            return
        self._spend(len(text))
        root, source = parse(text.replace(UNKNOWN, HIDDEN))
        self.contents.scripts.append(source.decode())
        outer, self._source = self._source, source
        self.visit(root, stdin, before)
        self._source = outer

    def run(self, words: Sequence[str], stdin: str | None, before: Command | None) -> None:
        """
        Note a command and follow what it runs. Its input is *stdin*: text, `UNKNOWN`, or None if nothing is piped in.
        """
        command = self._note(tuple(words), before)
        name, rest = command.name, list(words[1:])
        if UNKNOWN in words[0].rpartition("/")[2] or not {*"*?]"}.isdisjoint(words[0]):
            self.contents.undecidable = "which program it runs is known only when it runs"
        if name in ("cd", "pushd"):
            target = next((word for word in rest if not word.startswith("-")), "~")
            self._folder = UNKNOWN if UNKNOWN in target or "-" in rest else under(self._folder, target)
        if rest and (words[0] == UNKNOWN or (words[0] in self._functions and UNKNOWN not in rest[0])):
            # `$SUDO make`: where it is empty, the next word is the program. A function may run what it is given.
            self.run(rest, stdin, before)
        for each in started(name, rest, stdin):
            if each.unclear and self.contents.unclear is None:
                shown = each.unclear[:40].replace(UNKNOWN, "…")
                reason = f"what `{name}` starts is not clear behind its word `{shown}`"
                self.contents.unclear = Fault(reason, f"leave that word of `{name}` out")
            if each.script is not None:
                # A script that is read from there leaves nothing to its commands.
                self.script(each.script, None if each.script is stdin else stdin, before)
            elif each.words:
                self.run(each.words, stdin, before)

    def visit(self, node: "Node", stdin: str | None = None, before: Command | None = None) -> None:
        """
        Follow *node*, into which *before* is piped, by the method of its type.
        """
        if node.named_child_count:
            getattr(self, f"visit_{node.type}", self.visit_all)(node, stdin, before)

    def visit_all(self, node: "Node", stdin: str | None = None, before: Command | None = None) -> None:
        """
        Follow what *node* is made of.
        """
        for child in node.named_children:
            self.visit(child, stdin, before)

    def visit_subshell(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        with self._apart():
            self.visit_all(node, stdin, before)

    visit_command_substitution = visit_subshell

    def visit_process_substitution(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        self.visit_subshell(node, UNKNOWN, before)

    def visit_function_definition(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        self.contents.fork_bomb = self.contents.fork_bomb or self._is_bomb(node)
        self._functions.add(self._text(node.named_children[0]))
        with self._apart():
            # What it is given is seen where it is called.
            self._variables |= dict.fromkeys("123456789@*", "argument")
            self.visit_all(node, stdin, before)

    def visit_for_statement(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        name, values = self._text(node.named_children[0]), self._words(node.children_by_field_name("value"))
        for self._variables[name] in values[:8] or [UNKNOWN]:
            self.visit_all(node, stdin, before)

    def visit_pipeline(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        for stage in node.named_children:
            with self._apart():
                before = self._first(stage, stdin, before)
            stdin = UNKNOWN

    def visit_redirected_statement(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        body = node.child_by_field_name("body")
        stdin = self._input(node.named_children, stdin)
        before = before if body is None else self._first(body, stdin, before)
        documents = [child for child in node.named_children if child.type == "heredoc_redirect"]
        for child in (child for each in documents for child in each.named_children):
            # After the word that begins a here-document the rest of its line may follow: `cat <<EOF | sh`.
            if child.type in ("pipeline", "command", "list", "redirected_statement"):
                self.visit(child, UNKNOWN, before)

    def visit_variable_assignment(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        name, *values = node.named_children
        self.visit_all(node)
        own, value = self._text(name).partition("[")[0], _SPLIT.join(self._words(values))
        self._note((f"{own}={value.replace(_SPLIT, ' ')}",), None)
        self._variables[own] = UNKNOWN if [child.type for child in node.children].count("+=") else value

    def visit_command(self, node: "Node", stdin: str | None, before: Command | None) -> None:
        children = node.named_children
        parts = [child for child in children if not child.type.endswith("_redirect")]
        for part in parts:
            self.visit(part)
        stdin = stdin if len(parts) == len(children) else self._input(children, stdin)
        words = self._words(part for part in parts if part.type != "variable_assignment")
        if words:
            self.run(words, stdin, before)

    def _first(self, node: "Node", stdin: str | None, before: Command | None) -> Command | None:
        """
        Follow *node*. Returns its first command, *before* if it has none.
        """
        at = len(self.contents.commands)
        self.visit(node, stdin, before)
        return next(iter(self.contents.commands[at : at + 1]), before)

    def _is_bomb(self, node: "Node") -> bool:
        """
        Returns whether the function *node* starts itself twice, in a pipe or in the background.
        """
        parts = [(self._text(leaf), leaf.parent) for leaf in leaves(node)]
        calls = [text for text, parent in parts if parent is not None and parent.type == "command_name"]
        twice = calls.count(self._text(node.named_children[0])) > 1
        return twice and any(text in ("|", "&") for text, _ in parts)

    def _input(self, nodes: "Iterable[Node]", stdin: str | None) -> str | None:
        """
        Returns the text that is read by the redirections among *nodes*; files that they write are noted as commands.
        """
        for node in nodes:
            if node.type == "file_redirect":
                stdin = self._file(node, stdin)
            elif node.type == "heredoc_redirect":
                stdin = self._input(node.named_children, "")
            elif node.type == "heredoc_body":
                stdin = self._text(node)
                self.visit_all(node)
            elif node.type == "herestring_redirect":
                self.visit_all(node)
                stdin = " ".join(self._words(node.named_children[-1:]))
        return stdin

    def _file(self, node: "Node", stdin: str | None) -> str | None:
        target = node.child_by_field_name("destination")
        if target is None or target.type == "number":
            return stdin
        self.visit(target)
        if any(child.type.startswith("<") for child in node.children):
            # A file is like a script that is named; what a process prints is not.
            return UNKNOWN if target.type == "process_substitution" else None
        self._note((">", " ".join(self._words([target]))), None)
        return stdin

    def _words(self, nodes: "Iterable[Node]") -> list[str]:
        words: list[str] = []
        for node in nodes:
            raw, form = self._text(node), self._form(node)
            if "{" in raw and {*"'\"$\\"}.isdisjoint(raw):
                words += braces(form)
            else:
                words += [word for word in form.split(_SPLIT) if word or raw[:1] in ("'", '"')]
        return words

    def _form(self, node: "Node", *, quoted: bool = False) -> str:
        """
        Returns the text that *node* becomes, with marks where it parts into words.
        """
        text, kind = self._text(node), node.type
        if kind in ("raw_string", "ansi_c_string"):
            return UNKNOWN if text[0] == "$" and "\\" in text else text.partition("'")[2][:-1]
        if kind in ("simple_expansion", "expansion"):
            return self._expanded(text, quoted=quoted)
        if kind in ("command_substitution", "process_substitution", "arithmetic_expansion"):
            match = _PRINTS.fullmatch(text)
            return UNKNOWN if match is None else "." if match[1] else match[2]
        if kind == "array":
            return _SPLIT.join(self._words(node.named_children))
        if not node.child_count:
            return re.sub(r"\\([$`\"\\])" if quoted else r"\\(.)", r"\1", text) if "\\" in text else text
        made, end = "", node.start_byte
        for child in node.children:
            # Blanks between quotes may belong to no child, or to one that means none.
            blanks = 0 if child.type == "string_content" else len(self._text(child)) - len(self._text(child).lstrip())
            made += self._source[end : child.start_byte + blanks].decode(errors="replace")
            made += "" if child.type in ('"', "$") else self._form(child, quoted=kind == "string")
            end = child.end_byte
        return made

    def _expanded(self, text: str, *, quoted: bool) -> str:
        match = _VARIABLE.fullmatch(text)
        if match is None:
            return UNKNOWN
        name, sign, other = match.groups()
        value = self._variables.get(name, UNKNOWN)
        if value == UNKNOWN and sign and sign[-1] in "-=" and re.fullmatch(r"[\w./~-]*", other):
            value = other
        self._spend(len(value))
        return value if quoted else re.sub(r"\s+", _SPLIT, value)

    def _note(self, words: tuple[str, ...], before: Command | None) -> Command:
        self._spend(100 + sum(map(len, words)))
        self.contents.commands.append(Command(words, self._folder, before))
        return self.contents.commands[-1]

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise UnreadableError("it is too long, or runs far more than is written", "write a script file, and run it")

    def _text(self, node: "Node") -> str:
        return self._source[node.start_byte : node.end_byte].decode(errors="replace")

    @contextmanager
    def _apart(self) -> Iterator[None]:
        variables, folder = dict(self._variables), self._folder
        yield
        self._variables, self._folder = variables, folder
