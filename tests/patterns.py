"""
The regular expressions of the library, found in its source, and texts on which one that goes back too far takes for ever.

For `test_patterns`. A text is made from the pattern itself: what its repeats repeat, often, after what stands before them, and
before something that fits nothing.
"""

import ast
import importlib
import re
import time

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple


sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
PACKAGE: Final = Path(__file__).parents[1] / "guardrails"
METHODS: Final = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")
SEARCHING: Final = frozenset({"findall", "finditer", "search", "split", "sub", "subn"})
REPEATS: Final = tuple(
    getattr(sre, name) for name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") if hasattr(sre, name)
)
GROUPS: Final = tuple(getattr(sre, name) for name in ("SUBPATTERN", "ATOMIC_GROUP") if hasattr(sre, name))
MANY: Final = 16
"""A repeat of fewer is no matter."""
MOST_TEXTS: Final = 80
NOWHERE: Final = ("\x01", "!", "")


class Used(NamedTuple):
    """
    One pattern of the source, and the methods that it is used with.
    """

    place: str
    """`module:name`, or `module:line` if it has none."""
    pattern: str | bytes
    flags: int
    methods: frozenset[str]


@lru_cache(maxsize=1)
def used() -> tuple[list[Used], list[str]]:
    """
    All patterns, and the places of those that only running code makes.
    """
    found: list[Used] = []
    made: list[str] = []
    sources = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    whole = "\n".join(sources.values())
    for path, source in sources.items():
        if not re.search(r"\bre\b|_pattern", source):
            continue
        dotted = ".".join(("guardrails", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        names = _Names(ast.parse(source))
        for call, kind in names.calls:
            place = f"{dotted.removeprefix('guardrails.')}:{names.of.get(call, call.lineno)}"
            values = _values(dotted, call, kind)
            if values is None:
                made.append(place)
                continue
            name = names.of.get(call)
            where = source if str(name).startswith("_") else whole
            methods = frozenset(re.findall(rf"\b{name}\.({'|'.join(METHODS)})\b", where)) if name else frozenset()
            found.append(Used(place, *values, methods if kind is None else frozenset({kind})))
    return found, made


class _Names(ast.NodeVisitor):
    """
    The calls in a module that make a pattern, with the method of `re` that takes it at once, and the names they are given.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.calls: list[tuple[ast.Call, str | None]] = []
        self.of: dict[ast.Call, str] = {}
        self.visit(tree)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._named(node.targets[0], node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._named(node.target, node.value)

    def _named(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name) and isinstance(value, ast.Call):
            self.of[value] = target.id
        if value is not None:
            self.visit(value)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re":
            if called.attr == "compile":
                self.calls.append((node, None))
            elif called.attr in METHODS:
                self.calls.append((node, called.attr))
        self.generic_visit(node)


def _values(module: str, call: ast.Call, kind: str | None) -> tuple[str | bytes, int] | None:
    """
    Pattern and flags as the module says them; None if they depend on what is only there while it runs.
    """
    flags = [each for each in call.args[1:] if kind is None or "re." in ast.unparse(each)]
    flags += [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    names = vars(importlib.import_module(module))
    try:
        pattern, *said = [eval(compile(ast.Expression(each), module, "eval"), names) for each in (call.args[0], *flags)]
    except NameError:
        return None
    return (pattern, sum(map(int, said))) if isinstance(pattern, str | bytes) else None


class Shape(NamedTuple):
    """
    A text that grows: what stands first, what is repeated, what is repeated after that, and the end that fits nothing.
    """

    prefix: str
    unit: str
    other: str
    end: str

    def text(self, size: int) -> str:
        """
        Returns the text of about *size* characters, with each unit at least once.
        """
        units = [unit for unit in (self.unit, self.other) if unit]
        return self.prefix + "".join(unit * max(1, size // len(units) // len(unit)) for unit in units) + self.end


def shapes(pattern: str, flags: int) -> Iterator[Shape]:
    """
    Texts that *pattern* begins to fit again and again, and does not.
    """
    tree = parser.parse(pattern, flags)
    units: dict[str, None] = {}
    for prefix, body in _repeats(tree, ""):
        for unit in (body, prefix, prefix + body):
            units.setdefault(unit[:200])
    whole = _sample(tree)
    units.setdefault(whole[:200])
    units.update(dict.fromkeys(whole[:40]))
    prefixes = dict.fromkeys(["", *(prefix[:200] for prefix, _ in _repeats(tree, ""))])
    found = {
        Shape(prefix, unit, "", end): None for unit in filter(None, units) for prefix in prefixes for end in NOWHERE
    }
    first = list(islice(filter(None, units), 12))
    found |= {Shape("", one, other, NOWHERE[0]): None for one in first for other in first}
    yield from islice(found, MOST_TEXTS)


def _repeats(tree: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """
    What stands before each long repeat, and what it repeats.
    """
    for kind, value in tree:
        if kind in REPEATS:
            if value[1] >= MANY:
                for body in _samples(value[2]):
                    yield prefix, body
            yield from _repeats(value[2], prefix)
        elif kind in GROUPS:
            yield from _repeats(value[-1] if isinstance(value, tuple) else value, prefix)
        elif kind is sre.BRANCH:
            for each in value[1]:
                yield from _repeats(each, prefix)
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repeats(value[1], prefix)
        prefix += _sample([(kind, value)])


def _samples(tree: Any) -> list[str]:
    """
    Texts that *tree* fits, one for each of its alternatives.
    """
    branches = [each for kind, value in tree if kind is sre.BRANCH for each in value[1]] if len(tree) == 1 else []
    classes = tree[0][1] if len(tree) == 1 and tree[0][0] is sre.IN and tree[0][1][0][0] is not sre.NEGATE else []
    found = [_sample(each) for each in branches] + [_sample([(sre.IN, [each])]) for each in classes[:8]]
    return list(dict.fromkeys([_sample(tree), *found]))


def _sample(tree: Any) -> str:
    return "".join(_one(kind, value) for kind, value in tree)


def _one(kind: Any, value: Any) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is sre.ANY:
        return "a"
    if kind is sre.IN:
        return _of_class(value)
    if kind in REPEATS:
        return _sample(value[2]) * int(max(value[0], min(value[1], 1)))
    if kind in GROUPS:
        return _sample(value[-1] if isinstance(value, tuple) else value)
    if kind is sre.BRANCH:
        return _sample(value[1][0])
    return ""


_CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: "1", sre.CATEGORY_NOT_DIGIT: "a", sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "a", sre.CATEGORY_WORD: "a", sre.CATEGORY_NOT_WORD: " ",
}  # fmt: skip


def _of_class(items: Any) -> str:
    negated = bool(items) and items[0][0] is sre.NEGATE
    if negated:
        pattern = re.compile("[" + "".join(map(_written, items[1:])) + "]")
        return next((char for char in "a1 \n-.:/\"'{}%é" if not pattern.match(char)), "ż")
    kind, value = items[0]
    if kind is sre.CATEGORY:
        return _CATEGORIES.get(value, "a")
    return chr(value[0] if kind is sre.RANGE else value)


def _written(item: Any) -> str:
    kind, value = item
    if kind is sre.CATEGORY:
        names = {"1": r"\d", " ": r"\s", "a": r"\w"}
        said = names[_CATEGORIES.get(value, "a")]
        return said.upper() if "NOT" in str(value) else said
    if kind is sre.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return re.escape(chr(value))


def seconds(compiled: "re.Pattern[Any]", text: Any, methods: frozenset[str]) -> float:
    """
    Seconds of this process that *compiled* takes for all of *text*.
    """
    begun = time.process_time_ns()
    if not methods or methods & SEARCHING:
        for _ in compiled.finditer(text):
            pass
    else:
        compiled.match(text)
        compiled.fullmatch(text)
    return max(1, time.process_time_ns() - begun) / 1e9
