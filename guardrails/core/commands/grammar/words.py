"""
The forms that the words of a command may take once a shell has expanded them, as far as the script itself writes them
out.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from guardrails.core.values.late_pattern import pattern

from .escapes import ansi, braces, double_quoted, unquoted
from .scope import SPLIT, UNKNOWN, Scope
from .syntax import text_of
from .work import Work


if TYPE_CHECKING:
    from tree_sitter import Node

Variants = tuple[str, ...]

_SUBSTITUTIONS: Final = frozenset({"command_substitution", "process_substitution"})
_DEFAULTS: Final = frozenset({":-", "-", ":=", "=", ":?", "?", ":+", "+"})
_BLANKS: Final = pattern(r"[ \t\n]+")
_PRINTS: Final = pattern(r"[$`]\(?\s*(?:(pwd)|which\s+([\w.-]+))\s*[)`]")
"""Substitutions that are as good as a word: `$(pwd)`, `$(which python3)`."""
_SHORT: Final = 80
_ROOTED: Final = frozenset({"HOME", "PATH", "PWD", "OLDPWD", "SHELL", "BASH"})
"""Variables whose values begin with `/`: so may what is cut out of one."""


class Words:
    """
    Expansion in one *scope*, at the cost of *work*.
    """

    def __init__(self, scope: Scope, work: Work) -> None:
        self._scope = scope
        self._work = work

    def lists(self, nodes: "Iterable[Node]") -> list[list[str]]:
        """
        Returns the word lists that *nodes* may become, at most 16: each form of a word stands in one of them.
        """
        # Of an expansion that nothing quotes and that is empty no word is left.
        variants = [tuple(one or _nothing(node) for one in self.variants(node)) for node in nodes]
        return [[word for one in chosen for word in self._split(one)] for chosen in _side_by_side(variants)]

    def texts(self, node: "Node") -> Variants:
        """
        Returns the texts that *node* may become if it is not split into words: the value of an assignment, a file's
        name.
        """
        return tuple(" ".join(self._split(text)) for text in self.variants(node))

    def variants(self, node: "Node", *, quoted: bool = False) -> Variants:
        """
        Returns the texts that *node* may become, with marks at the places that split into words and that expand braces.
        """
        match node.type:
            case "raw_string":
                return (text_of(node)[1:-1],)
            case "ansi_c_string":
                return (ansi(text_of(node)[2:-1]),)
            case "string":
                return self._joined(node, quoted=True)
            case "translated_string":
                return self.variants(node.children[-1])
            case "simple_expansion":
                return self._values(text_of(node)[1:], quoted=quoted)
            case "expansion":
                return self._expansion(node, quoted=quoted)
            case kind if kind in _SUBSTITUTIONS:
                said = _PRINTS.fullmatch(text_of(node)) if node.end_byte - node.start_byte < _SHORT else None
                return (UNKNOWN if said is None else "." if said[1] else said[2],)
            case "arithmetic_expansion":
                return (UNKNOWN,)
            case "array":
                return (SPLIT.join(word for words in self.lists(node.named_children)[:1] for word in words),)
            case "concatenation" | "command_name":
                return self._joined(node, quoted=quoted)
            case "string_content":
                return (double_quoted(text_of(node)),)
        if any(child.type in _SUBSTITUTIONS or "expansion" in child.type for child in node.children):
            return self._joined(node, quoted=quoted)
        return (unquoted(text_of(node)),)

    def _joined(self, node: "Node", *, quoted: bool) -> Variants:
        """
        Returns the children of *node* side by side; the grammar leaves some blanks between them to no child.
        """
        source, begin = node.text or b"", node.start_byte
        parts: list[Variants] = []
        end = begin
        for child in node.children:
            if child.type == '"':
                end = child.end_byte
                continue
            gap = source[end - begin : child.start_byte - begin].decode(errors="replace")
            if gap and (quoted or gap.strip()):
                parts.append((double_quoted(gap) if quoted else unquoted(gap),))
            parts.append(self.variants(child, quoted=quoted))
            end = child.end_byte
        if node.child_count == 0:
            return (unquoted(text_of(node)),)
        return tuple(dict.fromkeys("".join(one) for one in _side_by_side(parts)))

    def _values(self, name: str, *, quoted: bool) -> Variants:
        values = self._scope.variables.get(name, (UNKNOWN,))
        self._work.spend(sum(map(len, values)))
        if quoted:
            return tuple(value if name == "@" else value.replace(SPLIT, " ") for value in values)
        if self._scope.variables.get("IFS") != (" ",) and name != "IFS":
            # What parts words now is another thing.
            return (UNKNOWN,)
        return tuple(_BLANKS.sub(SPLIT, value) for value in values)

    def _expansion(self, node: "Node", *, quoted: bool) -> Variants:
        """
        Returns `${name}`, an array as a whole, and `${name:-word}` and its like; UNKNOWN for all else that can stand in
        braces.
        """
        inner = text_of(node)[2:-1]
        named = next((c for c in node.named_children if "variable_name" in c.type or c.type == "subscript"), None)
        if named is None:
            return self._values(inner, quoted=quoted)
        said = text_of(named)
        name, bracket, index = said.partition("[")
        if not inner.startswith(said) or (bracket and index.strip("]\"'") not in ("@", "*")):
            return (UNKNOWN,)
        values = self._values(name, quoted=quoted and not bracket)
        if inner == said:
            return values
        behind = [child for child in node.children if child.start_byte >= named.end_byte]
        if behind[0].type not in _DEFAULTS:
            return (UNKNOWN, "/") if name in _ROOTED else (UNKNOWN,)
        sign = behind[0].type[-1]
        if sign == "?":
            return values
        other = tuple("".join(one) for one in _side_by_side([self.variants(c) for c in behind[1:] if c.type != "}"]))
        return ("", *other) if sign == "+" else (*(value for value in values if value != UNKNOWN), *other)

    def _split(self, text: str) -> list[str]:
        if SPLIT not in text:
            words = braces(text)
        else:
            words = [word for part in text.split(SPLIT) if part for word in braces(part)]
        self._work.spend(len(words) + sum(map(len, words)))
        return words


def _side_by_side(parts: Sequence[Variants]) -> Iterable[tuple[str, ...]]:
    """
    Returns as many rows as the part with the most variants has, each variant in one of them.
    """
    rows = max(map(len, parts), default=1)
    return [tuple(part[row % len(part)] for part in parts) for row in range(rows)]


def _nothing(node: "Node") -> str:
    while node.type == "command_name" and node.children:
        node = node.children[0]
    return SPLIT if node.type.endswith(("expansion", "substitution")) else ""
