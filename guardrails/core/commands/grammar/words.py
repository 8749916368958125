"""
What the words of a command may be once a shell has expanded them.
"""

import re

from collections.abc import Iterable, Mapping
from itertools import islice, product
from typing import TYPE_CHECKING, Final

from guardrails.core.values.late_pattern import pattern

from .escapes import ansi, braces, double_quoted, unquoted
from .scope import MAX_VARIANTS, SPLIT, UNKNOWN, Scope
from .syntax import text_of


if TYPE_CHECKING:
    from tree_sitter import Node

Variants = tuple[str, ...]

_SUBSTITUTIONS: Final = frozenset({"command_substitution", "process_substitution"})
_OPERATORS: Final = frozenset({":-", "-", ":=", "=", ":?", "?", ":+", "+", ":", "/", "//", "^", "^^", ",", ",,"})
_SLICE: Final = pattern(r":\s*(-?\d+)(?::\s*(-?\d+))?")


class Words:
    """
    Expansion in one scope; *outputs* has what each substitution prints, by node, None where nobody knows.
    """

    def __init__(self, scope: Scope, outputs: Mapping[int, str | None]) -> None:
        self._scope = scope
        self._outputs = outputs

    def lists(self, nodes: "Iterable[Node]") -> list[list[str]]:
        """
        The word lists that *nodes* may become, at most 16.
        """
        # Of an expansion that nothing quotes and that is empty no word is left.
        variants = [tuple(one or _nothing(node) for one in self.variants(node)) for node in nodes]
        made = [[word for one in chosen for word in _split(one)] for chosen in islice(product(*variants), MAX_VARIANTS)]
        if _count(variants) > MAX_VARIANTS:
            made.append([UNKNOWN if len(options) > 1 else options[0] for options in variants])
        return made

    def texts(self, node: "Node") -> Variants:
        """
        What *node* may become where it does not part into words: the value of an assignment, a file's name.
        """
        return tuple(" ".join(_split(text)) for text in self.variants(node))

    def variants(self, node: "Node", *, quoted: bool = False) -> Variants:
        """
        What *node* may become, with marks where it parts into words and where braces expand.
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
                said = self._outputs.get(node.id)
                value = UNKNOWN if said is None else said.rstrip("\n")
                return (value if quoted else self._parted(value),)
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
        The children of *node* side by side; the grammar leaves some blanks between them to no child.
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
        return tuple(dict.fromkeys("".join(one) for one in islice(product(*parts), MAX_VARIANTS)))

    def _parted(self, value: str) -> str:
        separators = "".join(self._scope.variables.get("IFS", ()))
        return re.sub(f"[ \t\n{re.escape(separators)}]+", SPLIT, value)

    def _values(self, name: str, *, quoted: bool) -> Variants:
        values = self._scope.variables.get(name)
        if values is None:
            return (UNKNOWN,)
        if quoted:
            return tuple(value if name == "@" else value.replace(SPLIT, " ") for value in values)
        return tuple(map(self._parted, values))

    def _expansion(self, node: "Node", *, quoted: bool) -> Variants:
        """
        `${name}` and what can be said within the braces; UNKNOWN where it cannot be worked out.
        """
        inner = text_of(node)[2:-1]
        named = next((c for c in node.named_children if "variable_name" in c.type or c.type == "subscript"), None)
        if named is None:
            return self._values(inner, quoted=quoted)
        name = text_of(named)
        head, _, rest = inner.partition(name)
        values = self._element(name, quoted=quoted)
        if head == "!":
            return tuple(found for value in values for found in self._values(value, quoted=quoted))
        if head == "#":
            return (UNKNOWN,)
        if head or not rest:
            return values if not head else (UNKNOWN,)
        operator = next((c for c in node.children if c.start_byte >= named.end_byte and c.type in _OPERATORS), None)
        if operator is None:
            return (UNKNOWN,)
        said = operator.type
        others = [c for c in node.children if c.start_byte >= operator.end_byte and c.type != "}"]
        if said.lstrip(":") in ("-", "=", "?", "+"):
            other = tuple("".join(one) for one in islice(product(*(self.variants(c) for c in others)), MAX_VARIANTS))
            known = () if UNKNOWN in values else values
            if said.lstrip(":") == "?":
                return values
            return ("", *other) if said.lstrip(":") == "+" else (*known, *other)
        if said in ("^", "^^", ",", ",,"):
            return values
        return tuple(_edited(value, rest) for value in values)

    def _element(self, name: str, *, quoted: bool) -> Variants:
        """
        The values of a variable, or of one or all elements of an array.
        """
        name, bracket, index = name.partition("[")
        values = self._values(name, quoted=False)
        index = index.rstrip("]").strip("\"'")
        if bracket and index.lstrip("-").isdecimal():
            return tuple(_at(value.split(SPLIT), int(index)) for value in values)
        if bracket and index not in ("@", "*"):
            return (UNKNOWN,)
        return values if bracket else self._values(name, quoted=quoted)


def _nothing(node: "Node") -> str:
    while node.type == "command_name" and node.children:
        node = node.children[0]
    return SPLIT if node.type.endswith(("expansion", "substitution")) else ""


def _edited(value: str, rest: str) -> str:
    slice_ = _SLICE.fullmatch(rest)
    if UNKNOWN in value:
        return UNKNOWN
    if slice_ is not None:
        start = int(slice_[1])
        cut = value[start:]
        return cut if slice_[2] is None else cut[: int(slice_[2])]
    if rest.startswith("/") and not set(rest) & set("$`*?["):
        old, _, new = rest.lstrip("/").partition("/")
        return value.replace(old, new, -1 if rest.startswith("//") else 1) if old else value
    return UNKNOWN


def _at(items: list[str], index: int) -> str:
    return items[index] if -len(items) <= index < len(items) else ""


def _split(text: str) -> list[str]:
    if SPLIT not in text:
        return braces(text)
    return [word for part in text.split(SPLIT) if part for word in braces(part)]


def _count(variants: list[Variants]) -> int:
    count = 1
    for options in variants:
        count *= max(1, len(options))
    return count
