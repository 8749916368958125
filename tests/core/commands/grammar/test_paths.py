"""
Paths of commands, made comparable.
"""

from guardrails.core.commands.grammar.paths import plain, under
from tests.tables import table


@table(
    ("word", "expected"),
    [
        ("/", "/"),
        ("//", "/"),
        ("/./", "/"),
        ("/a/..", "/"),
        ("/../..", "/"),
        ("/*", "/"),
        ("/**/*", "/"),
        ("/usr/*", "/usr"),
        ("~/*", "~"),
        ("~/..", "/home"),
        ("~/../..", "/"),
        ("a/../b/", "b"),
        ("./*", "."),
        ("*", "."),
        ("name", "name"),
        ("../a", "../a"),
    ],
)
def test_a_path_has_one_form(word: str, expected: str) -> None:
    assert plain(word) == expected


def test_a_relative_path_is_seen_from_its_directory() -> None:
    assert under("/", "*") == "/"
    assert under("/a", "../b") == "/b"
    assert under("/a", "/b") == "/b"
