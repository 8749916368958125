"""
Every regular expression of the library takes time in proportion to the text, whoever wrote the text.

They are found in the source by the test itself, so that a new one is tried too.
"""

import re

from typing import Any, Final

import pytest

from tests.patterns import SEARCHING, Used, seconds, texts, used


FEW: Final = (24, 400)
"""Characters that are enough for what doubles with each, and for what takes the third power."""
SIZE: Final = 16_000
SOON_S: Final = 0.03
"""What takes less is not looked at: of so much text, one that goes back takes more, and any other seldom so much."""
TRUSTED: Final = {
    "core.arguments.docstring": "docstrings of the host's own functions",
    "core.text.linear_pattern": "patterns of a policy's author, of up to 1,000 characters",
    "core.values.units": "a policy's own globs and durations",
    "hooks.install": "settings of the user's own programs, and their commands",
    "mcp.proxy.snippets": "what a person types",
    "mcp.proxy.servers": "a user's own list of servers",
    "policy": "a policy's own words",
}
"""Rooms whose patterns meet no stranger's text."""
ONE_FORM: Final = {"core.repetition.volatile:_ID": frozenset({"fullmatch"})}
"""Those that are used by another name, with the methods."""
BOUNDED: Final[dict[str, tuple[int, str]]] = {"core.repetition.idle:_COUNTS": (100, "names of fields up to that")}
"""Characters of the longest text that a pattern meets, and what sees to it."""


def goes_back(
    compiled: "re.Pattern[Any]",
    pattern: str,
    flags: int,
    methods: frozenset[str],
    longest: int,
    *,
    as_bytes: bool = False,
) -> str | None:
    """
    A text on which *compiled* takes longer by more than it is longer, with the seconds. Returns None if none is found.
    """

    def took(text: str) -> float:
        given = text.encode("latin-1", "replace") if as_bytes else text
        return seconds(compiled, given, methods)

    for size in FEW:
        for text in texts(pattern, flags, size):
            if (whole := took(text)) > SOON_S:
                return f"{whole:.2f} s for {text[:80]!r}..."
    for quarter, text in zip(texts(pattern, flags, longest // 4), texts(pattern, flags, longest), strict=False):
        if (first := took(text)) > SOON_S:
            whole, less = min(first, took(text)), min(took(quarter), took(quarter))
            if whole > max(SOON_S, 7 * less):
                return f"{whole:.2f} s for {text[:80]!r}..., {less:.3f} s for a quarter of it"
    return None


def tried() -> list[Used]:
    found, _ = used()
    return [each for each in found if not each.place.startswith(tuple(TRUSTED))]


@pytest.mark.parametrize("one", tried(), ids=lambda one: one.place)
def test_a_pattern_is_linear_in_what_strangers_write(one: Used) -> None:
    compiled = re.compile(one.pattern, one.flags)
    as_bytes = isinstance(one.pattern, bytes)
    text = one.pattern.decode("latin-1") if isinstance(one.pattern, bytes) else one.pattern
    methods = ONE_FORM.get(one.place, one.methods)
    longest = BOUNDED.get(one.place, (SIZE, ""))[0]
    assert goes_back(compiled, text, one.flags, methods, longest, as_bytes=as_bytes) is None


def test_the_patterns_are_found() -> None:
    found, made = used()
    assert len(found) > 300
    assert any(each.methods & SEARCHING for each in found)
    assert any(each.methods and not each.methods & SEARCHING for each in found)
    # What only running code makes is of a policy's author, or escaped.
    assert len(made) < 15


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"[A-Z].*[a-z].*[A-Z]", r"\s+$", r"<a\s[^>]*>"])
def test_one_that_goes_back_is_found(pattern: str) -> None:
    assert goes_back(re.compile(pattern), pattern, 0, frozenset(), SIZE) is not None
