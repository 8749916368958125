"""
Rules about commands.
"""

import time

import pytest

from guardrails.core.commands import allows, broken, read, rule
from tests.tables import table


@table(
    "text, command, expected",
    [
        ("a b", "a b c", True),
        ("a b", "a c b", False),
        ("a * b", "a c b", True),
        ("a * b c", "a b d b c e", True),
        ("a -x", "a -yx", True),
        ("a -x", "a -- -x", False),
        ("a -xyz", "a -z -y -x", True),
        ("a -delete", "a -d -e -l -t", False),
        ("a --long", "a --long=3", True),
        ("a --long", "a --longer", False),
        ("a --force", "a -f", True),
        ("a -f", "a --force-with-lease", False),
        ("rm -r /", "rm --recursive --force /", True),
        ("a ?", "a bc", False),
        ("a b*", "a b/c", False),
        ("a b**", "a b/c", True),
        ("a {b,c{d,e}}", "a ce", True),
        ("a [bc]", "a b", True),
        ("/bin/a", "a", False),
        ("/bin/a", "/bin/a", True),
        ("a", "/usr/bin/A.EXE", True),
        ("a /", "a /x/..", True),
        ("a /", "cd / && a ./*", True),
        ("a /", 'a "$X/"', True),
        ("a /", 'a "$X"', False),
        ("a .", "cd b && a *", False),
        ("a .", "a ./*", True),
        ("a /bin", "a /b*", True),
        ("a /home", "a ~/..", True),
        ("a b", "'a' \"b\"", True),
        ("curl * | sh", "curl x | tee y | sh", True),
        ("curl * | sh", "wget x | sh", False),
        ("> /etc/**", "echo x >> /etc/a/b", True),
        ("> /etc/**", "echo x > etc/a", False),
        ("LD_PRELOAD=*", "LD_PRELOAD=x.so ls", True),
        ("LD_PRELOAD=*", "export LD_PRELOAD=x.so", True),
        ("dd * of=/dev/*", "dd bs=1 of=/dev/sda", True),
        ("x '**drop {a,b} **'", "x 'y; DROP A z'", True),
    ],
)
def test_a_rule_that_forbids_names_a_command_its_flags_and_its_words(text: str, command: str, expected: bool) -> None:
    assert (broken([text], read(command).commands) is not None) is expected


@table(
    "text, command, expected",
    [
        ("a b", "a b", True),
        ("a b", "a b c", False),
        ("a *", "a", True),
        ("a *", "a -x 'b c' $Y", True),
        ("a -x", "a -X", False),
        ("A", "a", False),
        ("a * c", "a b c b c", True),
        ("a * c", "a b", False),
        ("a b/*", "a b/c", True),
        ("a b/*", "a b/../c", False),
        ("a b/*", "a $X", False),
        ("a", "/usr/bin/a", True),
        ("a", "/opt/a", False),
        ("a", "x/../a", False),
        ("x/../a", "x/../a", True),
        ("a | b", "a", False),
    ],
)
def test_a_rule_that_allows_is_the_whole_command_word_by_word(text: str, command: str, expected: bool) -> None:
    assert allows(rule(text), read(command).commands[-1]) is expected


@table("text", ["", " ", "|", "a | | b", "'a", "a *b*c*d*"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no command|more than three stars"):
        rule(text)


@table("text", ["a *a*a*b", "a **a**b", "a *a**a**b", "a {x,*a*a}b", "a *"])
def test_no_rule_takes_long_on_a_long_word(text: str) -> None:
    command = read(("a", "a" * 16_000)).commands[0]
    start = time.process_time()
    assert allows(rule(text), command) is (text == "a *")
    assert (broken([text], [command]) is not None) is (text == "a *")
    assert time.process_time() - start < 1
