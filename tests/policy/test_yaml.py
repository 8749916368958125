"""
YAML read strictly, by the 1.2 core schema, within bounds.
"""

import json

from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.policy.file import Mistake, Position, Source, parse, plain, resolve
from tests.tables import table


# YAML has no escapes in pairs of surrogates, the one thing JSON has beside it.
TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(1 << 63) + 1, (1 << 63) - 1) | TEXT
JSON = st.recursive(
    LEAVES | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def value_of(text: str | bytes) -> Any:
    _, root, mistakes = parse(text, "t")
    assert root is not None
    assert mistakes == []
    return plain(root)


def mistakes_of(text: str | bytes) -> list[str]:
    return [f"{m.position.line}:{m.position.column}: {m.message}" for m in parse(text, "t")[2]]


MISTAKES = yaml.safe_load((Path(__file__).parent / "files" / "mistakes.yaml").read_text(encoding="utf-8"))


@table(
    ("written", "value"),
    [*MISTAKES["values"].items(), *((word, word) for word in [*MISTAKES["texts"].split(), "9" * 5_000])],
)
def test_a_plain_scalar_is_what_yaml_1_2_says_and_a_number_that_readers_disagree_on_is_text(
    written: str, value: object
) -> None:
    read = resolve(written)
    assert (read, type(read)) == (value, type(value))
    assert value_of(f"[{written or '~'}]") == [value]


@table(("text", "expected"), MISTAKES["yaml"])
def test_what_a_policy_has_no_use_for_is_a_mistake(text: str, expected: str) -> None:
    assert mistakes_of(text) == expected.splitlines()


@table(("text", "expected"), [
    *MISTAKES["unreadable"], (b"# only a comment\n", "1:1: the file is empty"),
    (b"a: \xe9", "1:4: not UTF-8: byte 0xe9, save the file as UTF-8"),
    ("\u00e9: x\nb: \ud7ff".encode() + b"\xc3", "2:5: not UTF-8: byte 0xc3, save the file as UTF-8"),
    ("a: 1".encode("utf-16"), "1:1: not UTF-8: byte 0xff, save the file as UTF-8"),
    ("a: \ud800", "1:4: the character U+D800 is not allowed"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_clear_mistake(text: str | bytes, expected: str) -> None:
    assert (parse(text, "t")[1], mistakes_of(text)) == (None, [expected])


@table(("text", "message"), [
    ("[" * 500_000, "not YAML: while increasing flow level, exceeded maximum nesting depth"),
    *((bomb, "nested deeper than 32") for bomb in ("- " * 20 + "[\n" * 900, "{a: " * 900, "- " * 500_000, "? " * 500_000)),
])  # fmt: skip
def test_a_bomb_is_refused_before_it_goes_off(text: str, message: str) -> None:
    assert [mistake.message for mistake in parse(text, "t")[2]] == [message]


@table(("line", "column", "expected"), [
    (2, 10, "p.yaml:2:10: wrong\n    budget: {max_call: 3}\n             ^"), (3, 2, "p.yaml:3:2: wrong\n     x: 1\n     ^"),
    (4, 501, f"p.yaml:4:501: wrong\n    {'z' * 100}\n    {' ' * 50}^"), (99, 1, "p.yaml:99:1: wrong\n    \n    ^"),
    (5, 4, "p.yaml:5:4: wrong\n    \u00e9: \N{REPLACEMENT CHARACTER}[31m\n       ^"),
])  # fmt: skip
def test_a_mistake_is_its_place_the_line_and_a_caret(line: int, column: int, expected: str) -> None:
    source = Source("p.yaml", ("version: 1", "budget: {max_call: 3}", "\tx: 1", "y: " + "z" * 1_000, "é: \x1b[31m"))
    assert str(Mistake(Position(source, line, column), "wrong")) == expected


@given(st.text() | st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,? \n\t010.~<"))
def test_reading_never_raises_and_points_into_the_text(text: str) -> None:
    source, root, mistakes = parse(text, "t")
    assert root is not None or mistakes
    for mistake in mistakes:
        assert 1 <= mistake.position.line <= len(source.lines)
        assert 1 <= mistake.position.column <= len(source.lines[mistake.position.line - 1]) + 1
        assert str(mistake).count("\n") == 2


TABS = "a:\t1\r\nb: [1,\t2]\t# x\r\nc: 'x\ty'\r\n"


@given(st.dictionaries(TEXT, JSON, max_size=5), st.sampled_from([None, 2]))
def test_json_is_read_as_json_by_the_pure_python_parser_too(data: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(data, indent=indent)
    assert value_of(text) == data
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        assert value_of(text) == data
        assert mistakes_of("a:\n\tb: 1") == ["2:1: a tab in the indentation: use spaces"]
        assert mistakes_of("[" * 900)[0].endswith(": nested deeper than 32")
    assert value_of(TABS) == {"a": 1, "b": [1, 2], "c": "x\ty"}
