"""
Quoting undone.
"""

from guardrails.core.commands.grammar.escapes import ansi, braces, double_quoted, unquoted
from tests.tables import table


@table(
    ("text", "expected"),
    [
        (r"\x72m", "rm"),
        (r"\162\155", "rm"),
        (r"\u0072m", "rm"),
        (r"a\nb\'", "a\nb'"),
        (r"\ud800", "\ufffd"),
        (r"\q", r"\q"),
    ],
)
def test_ansi_escapes_are_decoded(text: str, expected: str) -> None:
    assert ansi(text) == expected


def test_backslashes_quote_one_character_and_join_lines() -> None:
    assert unquoted("r\\m\\\n-x") == "rm-x"
    assert double_quoted(r"a\"b\$c\d") == 'a"b$c\\d'


@table(
    ("word", "expected"),
    [
        ("a{b,c}d", ["abd", "acd"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{c..a}", ["c", "b", "a"]),
        ("{a}", ["{a}"]),
        ("{a,", ["{a,"]),
        (r"\{a,b\}", ["{a,b}"]),
        ("{,x}", ["", "x"]),
    ],
)
def test_braces_expand_where_nothing_quotes_them(word: str, expected: list[str]) -> None:
    assert braces(unquoted(word)) == expected


def test_braces_expand_to_a_bounded_number_of_words() -> None:
    assert len(braces(unquoted("{1..9}" * 20))) == 64
