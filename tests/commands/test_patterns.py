"""
Rules about commands.
"""

import pytest

from guardrails.commands import allows, forbids, rule, walk


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("text", ["", " ", "|", "a | | b", "'a"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ValueError, match="is no command"):
        rule(text)
