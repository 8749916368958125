"""
Every regular expression of the library takes time in proportion to the text, whoever wrote the text.

They are found in the source by the test itself, so that a new one is tried too. A text is made from the pattern: what its repeats repeat,
often, after what stands before them, and before something that fits nothing.
"""

import ast
import importlib
import re
import time

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.tables import table


sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
compiler: Any = importlib.import_module("re._compiler")
PACKAGE: Final = Path(__file__).parents[1] / "guardrails"
SEARCHING: Final = ("findall", "finditer", "search", "split", "sub", "subn")
METHODS: Final = ("fullmatch", "match", *SEARCHING)
REPEATS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
GROUPS: Final = (sre.SUBPATTERN, sre.ATOMIC_GROUP)
MANY: Final = 16
"""A repeat of fewer is no matter."""
CHARS: Final = "a1A \n-.:/\\\"'{}[]<>%=é\x1b"
STEPS: Final = (((10, 20, 16),), ((100, 400, 40),), ((1_500, 6_000, 8), (6_000, 12_000, 3.4)))
"""
Lengths, and how many times the seconds are too many. First what doubles with each character, then what takes the third power,
so that neither meets a long text; then what takes the second, and still does beyond any bound of its own.
"""
LEAST_NS: Final = 1_000_000
"""What takes less is not too long."""
TRUSTED: Final = {
    "core.arguments.typed": "docstrings and errors of the host's own functions",
    "core.values.units": "a policy's own globs and durations",
    "mcp.proxy.servers": "a user's own list of servers",
    "policy": "a policy's own words",
}
"""Rooms whose patterns meet no stranger's text."""


class Used(NamedTuple):
    """
    One pattern of the source.
    """

    place: str
    """`module:line`."""
    pattern: str | bytes
    flags: int
    searching: bool
    """It is looked for anywhere in a text."""


@cache
def used() -> list[Used]:
    """
    All patterns but those that only running code makes: these are of a policy's author, or escaped.
    """
    found: list[Used] = []
    sources = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    for path, source in sources.items():
        dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        nodes = [*ast.walk(ast.parse(source))]
        names = {node.value: ast.unparse(node.target) for node in nodes if isinstance(node, ast.AnnAssign)}
        for call in [node for node in nodes if isinstance(node, ast.Call)]:
            kind = ast.unparse(call.func).removeprefix("re.")
            if kind not in ("pattern", "compile", *METHODS) or (kind != "pattern" and kind == ast.unparse(call.func)):
                continue
            flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
            flags += [each for each in call.args[1:] if "re." in ast.unparse(each)]
            own = vars(importlib.import_module(dotted))
            try:
                text, *said = [eval(ast.unparse(each), own) for each in (call.args[0], *flags)]
            except NameError:
                continue
            methods = {kind}
            if call in names:
                where = source if names[call].startswith("_") else "\n".join(sources.values())
                methods = {*re.findall(rf"\b{names[call]}\.({'|'.join(METHODS)})\b", where)}
            searching = not methods <= {"fullmatch", "match"} or not methods
            found.append(
                Used(f"{dotted.removeprefix('guardrails.')}:{call.lineno}", text, sum(map(int, said)), searching)
            )
    return found


def sample(tree: Any, state: Any) -> str:
    """
    A text that *tree* fits.
    """
    return "".join(sample_of(kind, value, state) for kind, value in tree)


def sample_of(kind: Any, value: Any, state: Any) -> str:
    if kind in REPEATS:
        return sample(value[2], state) * int(max(value[0], min(value[1], 1)))
    if kind in GROUPS:
        return sample(value[-1] if isinstance(value, tuple) else value, state)
    if kind is sre.BRANCH:
        return sample(value[1][0], state)
    if kind is sre.LITERAL:
        return chr(value)
    if kind not in (sre.NOT_LITERAL, sre.ANY, sre.IN):
        return ""
    one = compiler.compile(parser.SubPattern(state, [(kind, value)]))
    return next((char for char in CHARS + "".join(map(chr, range(256))) if one.match(char)), "")


def repeats(tree: Any, prefix: str, state: Any) -> Iterator[tuple[str, str]]:
    """
    What stands before each long repeat, and what it repeats: each alternative, and each member of a class.
    """
    for kind, value in tree:
        inner = [value[2]] if kind in REPEATS else value[1] if kind is sre.BRANCH else []
        if kind in GROUPS:
            inner = [value[-1] if isinstance(value, tuple) else value]
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            inner = [value[1]]
        if kind in REPEATS and value[1] >= MANY:
            (first, within), *more = value[2]
            parts = within[1] if first is sre.BRANCH and not more else []
            if first is sre.IN and not more and within[0][0] is not sre.NEGATE:
                parts = [[(sre.IN, [each])] for each in within[:8]]
            yield from ((prefix, sample(part, state)) for part in (value[2], *parts))
        for part in inner:
            yield from repeats(part, prefix, state)
        prefix += sample([(kind, value)], state)


def shapes(pattern: str, flags: int) -> Iterator[tuple[str, str, str]]:
    """
    What stands first, what is repeated and the end of texts that *pattern* begins to fit again and again, and does not.
    """
    tree = parser.parse(pattern, flags)
    found, whole = [*repeats(tree, "", tree.state)], sample(tree, tree.state)
    units = dict.fromkeys(unit[:200] for prefix, body in found for unit in (body, prefix, prefix + body))
    units |= dict.fromkeys([whole[:200], *whole[:40]])
    prefixes = dict.fromkeys(["", *(prefix[:200] for prefix, _ in found)])
    made = [(prefix, unit, end) for unit in units if unit for prefix in prefixes for end in ("\x01", "!", "")]
    yield from made[:80]


def goes_back(pattern: str | bytes, flags: int = 0, *, searching: bool = True) -> str | None:
    """
    A text on which *pattern* takes longer by more than it is longer, with the lengths. Returns None if none is found.
    """
    compiled = re.compile(pattern, flags)

    def took(shape: tuple[str, str, str], size: int, times: int) -> float:
        prefix, unit, end = shape
        text: Any = prefix + unit * max(1, size // len(unit)) + end
        text = text.encode("latin-1", "replace") if isinstance(pattern, bytes) else text
        seconds = []
        for _ in range(times):
            begun = time.process_time_ns()
            if searching:
                for _ in compiled.finditer(text):
                    pass
            else:
                compiled.match(text)
                compiled.fullmatch(text)
            seconds.append(max(1, time.process_time_ns() - begun))
        return min(seconds)

    def too_long(shape: tuple[str, str, str], less: int, more: int, most: float) -> bool:
        # Both are tried again before a pattern is blamed.
        for times in (1, 3):
            long = took(shape, more, times)
            if long < LEAST_NS or long <= most * took(shape, less, times + 1):
                return False
        return True

    tried = [*shapes(pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern, flags)]
    for steps in STEPS:
        for shape in tried:
            if all(too_long(shape, *step) for step in steps):
                return f"{steps} for {shape}"
    return None


def test_a_pattern_is_linear_in_what_strangers_write() -> None:
    tried = [one for one in used() if not one.place.startswith(tuple(TRUSTED))]
    assert len(tried) > 100
    found = {one.place: goes_back(one.pattern, one.flags, searching=one.searching) for one in tried}
    assert {place: why for place, why in found.items() if why} == {}


@table(
    "pattern, found",
    [
        *((pattern, True) for pattern in (r"(a+)+$", r"<a\s[^>]*>")),
        *((pattern, False) for pattern in (r"a+", r"[ab]{,9}c", r"^\s+$", r"<a\s[^<>]*>", r"\b\w{1,40}\b")),
    ],
)
def test_one_that_goes_back_is_found_and_others_are_left_alone(pattern: str, found: bool) -> None:
    assert (goes_back(pattern) is not None) is found
