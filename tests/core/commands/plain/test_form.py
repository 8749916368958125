"""
Text that an allow list can be held against: what is in the plain form, and what is not.
"""

import re
import shlex

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import NotPlainError, UnreadableError, plainly
from guardrails.core.commands.plain.form import steps
from guardrails.core.commands.plain.run import _NAMES
from tests.tables import table


LISTED = yaml.safe_load((Path(__file__).parents[1] / "plain.yaml").read_text())
REFUSED = [
    pytest.param(each["text"], each["kind"], id=f"{group}-{number}")
    for group, listed in LISTED["refused"].items()
    for number, each in enumerate(listed)
]
ACCEPTED = [pytest.param(each["text"], each["commands"], id=each["text"]) for each in LISTED["accepted"]]


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_text_with_anything_else_in_it_is_refused_by_what_it_is(text: str, kind: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        plainly(text)
    if kind == "evaluated":
        assert "would work out what stands behind" in str(raised.value)
    else:
        assert isinstance(raised.value, NotPlainError)
        assert raised.value.kind == kind
        assert raised.value.advice


@pytest.mark.parametrize(("text", "commands"), ACCEPTED)
def test_plain_text_is_read_as_its_commands(text: str, commands: list[list[str]]) -> None:
    assert [list(command.words) for command in plainly(text).commands] == commands


def test_a_refusal_names_the_first_character_that_is_not_plain() -> None:
    with pytest.raises(NotPlainError, match="character 13 of it is an expansion") as raised:
        steps('ls "a b" "c $x"; id > y')
    assert raised.value.place == 12


def test_size_is_checked_before_anything_is_read() -> None:
    with pytest.raises(UnreadableError, match=r"16,385 characters \(limit 16,384\)"):
        steps("'" * 16_385)


@table("text", ["a;" * 2_500, "eval " * 40 + "a", "env " * 40 + "a", "a" + "|a" * 2_500])
def test_what_runs_too_much_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError, match="more than"):
        plainly(text)


@table(
    ("text", "reason"),
    [
        ("env -S 'id' ls", "option `-S`"),
        ("env -P ls id", "option `-P`"),
        ("strace --output ls id", "option `--output`"),
        ("xargs --max-lines id ls", "option `--max-lines`"),
        ("xargs --replace id ls", "option `--replace`"),
        ("xargs -i id ls", "option `-i`"),
        ("exec -lx ls id", "option `-lx`"),
        ("xargs -I x -n 1 ls", "`-I` and a number"),
        ("sudo -s ls", "option `-s`"),
        ("timeout --sig=KILL 5 ls", "option `--sig=KILL`"),
        ("parallel --wd ls id", "option `--wd`"),
        ("ls | xargs -I x bash -c 'ls x'", "put together only when it runs"),
        ("find . -exec bash -c 'ls {}' ';'", "put together only when it runs"),
    ],
)
def test_what_a_program_starts_is_never_guessed(text: str, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        plainly(text)


@table(
    ("words", "commands"),
    [
        (["grep", "-n", "a$b", "f"], [["grep", "-n", "a$b", "f"]]),
        (["git", "commit", "-m", "one\n\ntwo `x` $(y) > z\t"], [["git", "commit", "-m", "one\n\ntwo `x` $(y) > z\t"]]),
        (["time", "make"], [["time", "make"], ["make"]]),
        (["[", "-f", "x", "]"], [["[", "-f", "x", "]"]]),
        (["test", "-v", "x[$(id)]"], [["test", "-v", "x[$(id)]"]]),
        (["env", "A=$x", "ls", "*"], [["env", "A=$x", "ls", "*"], ["ls", "*"]]),
        (["bash", "-lc", "ls | cat"], [["bash", "-lc", "ls | cat"], ["ls"], ["cat"]]),
        (["env", "rm", "-S", "ls"], [["env", "rm", "-S", "ls"], ["rm", "-S", "ls"]]),
        (["xargs", "-d", "-I", "-n", "1", "ls"], [["xargs", "-d", "-I", "-n", "1", "ls"], ["ls", "\0"]]),
        (["bash", "build.sh"], [["bash", "build.sh"]]),
        ([], []),
    ],
)
def test_a_list_of_words_is_read_as_words(words: list[str], commands: list[list[str]]) -> None:
    assert [list(command.words) for command in plainly(words).commands] == commands


@table(
    "words",
    [
        ["bash", "-c", "ls $(id)"],
        ["bash", "-eo", "pipefail", "-c", "ls > x"],
        ["bash", "-s", "-c", "ls > x"],
        ["bash", "-O", "extglob", "-c", "ls > x"],
        ["sh", "-c", "ls\nid"],
        ["env", "A=b", "bash", "-c", "A=b ls"],
        ["timeout", "5", "sh", "-c", "for x in a; do ls; done"],
        ["find", ".", "-exec", "sh", "-c", "ls `id`", ";"],
        ["su", "-lc", "ls $x"],
        ["/opt/bin/bash-5.2", "-c", "ls $x"],
        ["busybox", "sh", "-c", "ls $x"],
        ["alias", "ls=ls $x"],
        ["watch", "ls $x"],
        ["ssh", "host", "ls $x"],
    ],
)
def test_what_a_list_of_words_gives_a_shell_is_text(words: list[str]) -> None:
    with pytest.raises(NotPlainError):
        plainly(words)


@table("text", ["cat x | sh", "echo ls | bash -s", "ls | xargs -I x x", "cat x | sh -c 'bash'"])
def test_what_is_known_only_at_run_time_is_a_doubt(text: str) -> None:
    assert plainly(text).doubts


PLAIN = st.text("abcXYZ019_./:,+@%=-", min_size=1, max_size=6)
QUOTED = st.text("ab $`\\|;&<>(){}[]*?~#!^%= éß", max_size=6).map("'{}'".format)
DOUBLE = st.text("ab'|;&<>(){}[]*?~#!^%= éß", max_size=6).map('"{}"'.format)
WORDS = st.lists(st.lists(PLAIN | QUOTED | DOUBLE, min_size=1, max_size=3).map("".join), max_size=5)


@given(WORDS)
def test_plain_words_are_those_of_posix(words: list[str]) -> None:
    text = " ".join(["ls", *words])
    assert steps(text) == [(";", [shlex.split(text, posix=True)])]


PIECES = st.sampled_from(
    ["ls ", "a", "b ", "'x y'", '"p q" ', " && ", "| ", "; ", "|| ", "HEAD~1 ", "b=c ", "''", "./a-b:c,d "]
)
NASTY = st.sampled_from(
    [
        *"'\"|&;<>(){}[]$`\\*?~#!^=%\n\t\r\0é\xa0",
        "; if",
        "| for",
        "; [[",
        "; a=b",
        "${x:=",
        "\u202e",
        "%1",
        "<<",
        "2>",
        "&& coproc",
    ]
)
QUOTES = st.sampled_from(["{}", "{}", "'b{}'", '"b{}"'])
MOSTLY_PLAIN = st.tuples(
    st.lists(PIECES, max_size=6).map("".join),
    st.builds(str.format, QUOTES, NASTY),
    st.lists(PIECES, max_size=4).map("".join),
).map("ls {0[0]}a {0[1]} b {0[2]}".format)


@settings(max_examples=15 * settings().max_examples, deadline=None)
@given(MOSTLY_PLAIN)
def test_what_is_accepted_can_mean_nothing_else(text: str) -> None:
    with suppress(UnreadableError):
        found = steps(text)
        # Written in another way than the scanner: take quotes out by hand, then look at what is left.
        bare, quote = "", ""
        for char in text:
            if quote:
                assert char.isprintable()
                assert not (quote == '"' and char in "$`\\")
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
                bare += "q"
            else:
                bare += char
        assert quote == ""
        assert not set(bare) & set("$`\\<>(){}[]*?#!\n\r\t\0")
        assert bare.isascii()
        assert not re.search(r"(?<!&)&(?!&)|&&&|\|\|\||;\s*;|\|&|(?:^|[^A-Za-z0-9@~^])[~^]", bare)
        commands = [command.strip() for command in re.split(r"&&|\|\||[|;]", bare)]
        kept = [command.split() for command in commands if command]
        assert len(kept) == sum(len(pipeline) for _, pipeline in found)
        assert all(commands[:-1])
        for words, command in zip(kept, [words for _, pipeline in found for words in pipeline], strict=True):
            assert len(words) == len(command)
            assert "=" not in words[0]
            assert command[0] not in ("", "if", "for", "coproc", "!", "{", "[[", "[")


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["env ", "xargs ", "find . -exec ", "bash -c ", "'ls' ", "-x ", "'{}' ", "';' ", "-I ", "| ", "eval "]
        )
    )
)
def test_any_text_is_followed_or_refused(parts: list[str]) -> None:
    with suppress(UnreadableError):
        plainly("".join(parts))


def test_every_builtin_that_evaluates_is_refused_as_text_only() -> None:
    for name in sorted(_NAMES):
        words: list[Any] = [name, "x[$(id)]"]
        assert plainly(words).commands[0].words == tuple(words)
        with pytest.raises(UnreadableError):
            plainly(f"{name} 'x[$(id)]'")
