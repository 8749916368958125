"""
Rules about commands.
"""

import re

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import allows, forbids, plainly, rule, walk
from tests.tables import table


@table(
    ("text", "command", "expected"),
    [
        ("a b", "a b c", True),
        ("a b", "a c b", False),
        ("a * b", "a c b", True),
        ("a -x", "a -yx", True),
        ("a -x", "a -- -x", False),
        ("a -xyz", "a -z -y -x", True),
        ("a -delete", "a -d -e -l -t", False),
        ("a --long", "a --lon=3", True),
        ("a --long", "a --longer", False),
        ("a ?", "a bc", False),
        ("a b*", "a b/c", False),
        ("a b**", "a b/c", True),
        ("a {b,c}", "a c", True),
        ("a [bc]", "a b", True),
        ("/bin/a", "a", False),
        ("/bin/a", "/bin/a", True),
        ("a", "A.EXE", True),
        ("a /", "a /x/..", True),
        ("a /", 'a "$X/"', True),
        ("a /", 'a "$X"', False),
        ("a /bin", "a /b*", True),
        ("a b", "'a' \"b\"", True),
    ],
)
def test_a_rule_that_forbids(text: str, command: str, expected: bool) -> None:
    assert forbids(rule(text), walk(command).commands[-1]) is expected


@table(
    ("text", "command", "expected"),
    [
        ("a b", "a b", True),
        ("a b", "a b c", False),
        ("a *", "a", True),
        ("a *", "a -x 'b c' $Y", True),
        ("a -x", "a -X", False),
        ("A", "a", False),
        ("a * c", "a b b c", True),
        ("a b/*", "a b/c", True),
        ("a b/*", "a b/../c", False),
        ("a b/*", "a $X", False),
        ("a", "/usr/bin/a", True),
        ("a", "/opt/a", False),
        ("a | b", "a | b", False),
    ],
)
def test_a_rule_that_allows(text: str, command: str, expected: bool) -> None:
    assert allows(rule(text), walk(command).commands[-1]) is expected


@table("text", ["", " ", "|", "a | | b", "'a"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ValueError, match="is no command"):
        rule(text)


@table("program", ["x/../a", "./x/../a", "a/../a", "../a", "./a", "/srv/../bin/a", "/opt/../srv/b"])
def test_a_rule_speaks_of_a_program_as_it_is_written(program: str) -> None:
    command = plainly([program]).commands[0]
    assert not any(allows(rule(text), command) for text in ("a", "a *", "/bin/a", "/srv/b", "/opt/**", "x/*"))
    assert allows(rule(program), command)


PIECES = st.lists(st.sampled_from(["*", "**", "?", "a", "b", "/", "[ab]"]), min_size=1, max_size=7)


@settings(max_examples=6 * settings().max_examples, deadline=None)
@given(PIECES, st.text("ab/", max_size=8))
def test_a_star_takes_whatever_it_may(pieces: list[str], word: str) -> None:
    text = re.sub(r"\*{3,}", "**", "".join(pieces))
    parts = re.findall(r"\*\*|.", text.replace("[ab]", "c"))
    known = {"**": ".*", "*": "[^/]*", "?": "[^/]", "c": "[ab]"}
    pattern = re.compile("".join(known.get(part, re.escape(part)) for part in parts))
    assert bool(rule(f"x{text}").stages[0][0].exact.fullmatch(f"x{word}")) is bool(pattern.fullmatch(word))


@table("text", ["*a*a*a*b", "**a**a**b", "*a*a**a**b", "{x,*a*a*a}b"])
def test_no_rule_takes_long_on_a_long_word(text: str) -> None:
    assert not rule(text).stages[0][0].exact.fullmatch("a" * 16_000)
