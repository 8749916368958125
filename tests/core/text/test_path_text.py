"""
What a path says, before any file system is asked.
"""

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.path_text import BadPathError, path_of, readings, system, within
from tests.tables import table


@table(("path", "root", "inside"), [
    *((path, "/w", True) for path in ("/w/a", "/w", "/w/a/..")), *((path, "/w", False) for path in ("/w/../x", "/wx")),
    ("/a", "/", True), ("a", ".", True), ("a/../..", ".", False), ("..a", ".", True), ("/a", ".", False), ("s/a", "s", True),
    ("s/../a", "s", False),
])  # fmt: skip
def test_a_path_is_inside_by_its_text(path: str, root: str, inside: bool) -> None:
    assert within(path, root) is inside


@given(st.lists(st.sampled_from(["a", "b", ".", "..", ""]), max_size=8))
def test_a_path_that_never_goes_up_further_than_down_is_inside(parts: list[str]) -> None:
    depth, lowest = 0, 0
    for part in parts:
        depth += (part in ("a", "b")) - (part == "..")
        lowest = min(lowest, depth)
    path = "/".join(["w", *parts])
    assert within(system.join("/", path), "/w") or lowest < 0


def test_a_backslash_is_read_both_ways() -> None:
    assert readings("a\\b") == ("a\\b", "a/b")
    assert readings("a") == ("a",)


@given(st.text())
def test_any_text_is_a_path_or_told_why_not(text: str) -> None:
    try:
        assert "\0" not in path_of(text)
    except BadPathError as error:
        assert str(error)  # noqa: PT017
