"""
Every regular expression of the library takes time in proportion to the text, whoever wrote the text.

They are found in the source by the test itself, so that a new one is tried too.
"""

import re

from typing import Any, Final

from tests.patterns import SEARCHING, Shape, Used, seconds, shapes, used
from tests.tables import table


STEPS: Final = (((10, 20, 16),), ((100, 400, 40),), ((3_000, 12_000, 8), (12_000, 24_000, 3.4)))
"""
Lengths, and how many times the seconds are too many. First what doubles with each character, then what takes the third power,
so that neither meets a long text; then what takes the second, and still does beyond any bound of its own.
"""
AGAIN: Final = 3
"""How often both texts are tried once more before a pattern is blamed; the shortest times count."""
TRUSTED: Final = {
    "core.arguments.typed": "docstrings and errors of the host's own functions",
    "core.values.units": "a policy's own globs and durations",
    "mcp.proxy.servers": "a user's own list of servers",
    "policy": "a policy's own words",
}
"""Rooms whose patterns meet no stranger's text."""
ONE_FORM: Final[dict[str, frozenset[str]]] = {}
"""Those that are used by another name, with the methods."""
BOUNDED: Final[dict[str, tuple[int, str]]] = {}
"""Characters of the longest text that a pattern meets, and what sees to it."""


def goes_back(
    compiled: "re.Pattern[Any]",
    pattern: str,
    flags: int,
    methods: frozenset[str],
    longest: int | None = None,
    *,
    as_bytes: bool = False,
) -> str | None:
    """
    A text on which *compiled* takes longer by more than it is longer, with the lengths. Returns None if none is found.
    """

    def took(text: str, times: int) -> float:
        given = text.encode("latin-1", "replace") if as_bytes else text
        return min(seconds(compiled, given, methods) for _ in range(times))

    def too_long(shape: Shape, less: int, more: int, most: float) -> bool:
        short, long = shape.text(less), shape.text(more)
        return took(long, 1) > most * took(short, 2) and took(long, AGAIN) > most * took(short, AGAIN)

    tried = list(shapes(pattern, flags))
    for steps in STEPS if longest is None else [((longest // 4, longest, 8),)]:
        for shape in tried:
            if all(too_long(shape, *step) for step in steps):
                return f"{steps} for {shape}"
    return None


def room_of(one: Used) -> str:
    return one.place.rpartition(":")[0].rpartition(".")[0] or "."


def tried() -> list[Used]:
    found, _ = used()
    return [each for each in found if not each.place.startswith(tuple(TRUSTED))]


@table("room", sorted({room_of(one) for one in tried()}))
def test_a_pattern_is_linear_in_what_strangers_write(room: str) -> None:
    found = {}
    for one in tried():
        if room_of(one) == room:
            text = one.pattern.decode("latin-1") if isinstance(one.pattern, bytes) else one.pattern
            found[one.place] = goes_back(
                re.compile(one.pattern, one.flags),
                text,
                one.flags,
                ONE_FORM.get(one.place, one.methods),
                BOUNDED[one.place][0] if one.place in BOUNDED else None,
                as_bytes=isinstance(one.pattern, bytes),
            )
    assert {place: why for place, why in found.items() if why} == {}


def test_the_patterns_are_found() -> None:
    found, made = used()
    assert len(found) > 100
    assert any(each.methods & SEARCHING for each in found)
    assert any(each.methods and not each.methods & SEARCHING for each in found)
    # What only running code makes is of a policy's author, or escaped.
    assert len(made) < 20


@table("pattern", [r"(a+)+$", r"[A-Z].*[a-z].*[A-Z]", r"\s+$", r"<a\s[^>]*>", r"a*b?a*c"])
def test_one_that_goes_back_is_found(pattern: str) -> None:
    assert goes_back(re.compile(pattern), pattern, 0, frozenset()) is not None


@table("pattern", [r"a+", r"[ab]{,9}c", r"^\s+$", r"<a\s[^<>]*>", r"\b\w{1,40}\b"])
def test_one_that_does_not_is_left_alone(pattern: str) -> None:
    assert goes_back(re.compile(pattern), pattern, 0, frozenset()) is None
