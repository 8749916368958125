"""
Mistakes shown at their place.
"""

from guardrails.policy.file import Entry, Mistake, Node, Position, Source, plain, quoted
from tests.tables import table


SOURCE = Source("p.yaml", ("version: 1", "budget: {max_call: 3}", "\tx: 1", "y: " + "z" * 1_000, "é: \x1b[31m", ""))


@table(
    ("line", "column", "expected"),
    [
        (2, 10, "p.yaml:2:10: wrong\n    budget: {max_call: 3}\n             ^"),
        (1, 1, "p.yaml:1:1: wrong\n    version: 1\n    ^"),
        (3, 2, "p.yaml:3:2: wrong\n     x: 1\n     ^"),
        (5, 4, "p.yaml:5:4: wrong\n    é: \N{REPLACEMENT CHARACTER}[31m\n       ^"),
        (6, 1, "p.yaml:6:1: wrong\n    \n    ^"),
        (99, 1, "p.yaml:99:1: wrong\n    \n    ^"),
    ],
)
def test_a_mistake_is_its_place_the_line_and_a_caret(line: int, column: int, expected: str) -> None:
    assert str(Mistake(Position(SOURCE, line, column), "wrong")) == expected


@table("column", [1, 4, 51, 500, 1_004])
def test_a_long_line_is_cut_around_the_caret(column: int) -> None:
    _, shown, caret = str(Mistake(Position(SOURCE, 4, column), "wrong")).split("\n")

    assert len(shown) <= 104
    assert len(caret) <= 104
    assert caret.endswith("^")


def test_a_message_stays_on_its_line_whatever_is_quoted() -> None:
    text = str(Mistake(Position(SOURCE, 1, 1), "unknown key `a\nb\x1b]0;x\x07`"))

    assert text.count("\n") == 2
    assert text.replace("\n", "").isprintable()


def test_a_long_text_is_quoted_cut() -> None:
    assert quoted("max_calls") == "`max_calls`"
    assert quoted("x" * 61) == f"`{'x' * 60}...`"


def test_a_tree_gives_plain_data() -> None:
    here = Position(SOURCE, 1, 1)
    leaf = Node(here, 3)

    assert plain(Node(here, {"a": Entry(here, Node(here, [leaf, leaf]))})) == {"a": [3, 3]}


def test_a_wrong_block_is_pointed_to_at_its_key() -> None:
    key, value = Position(SOURCE, 1, 1), Position(SOURCE, 2, 3)

    assert Entry(key, Node(value, {}, block=True)).place == key
    assert Entry(key, Node(value, {})).place == value
