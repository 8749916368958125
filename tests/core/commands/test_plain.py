"""
Text that an allow list can be held against, and how it runs without a shell.
"""

import re
import shlex

from pathlib import Path

import yaml

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import read
from tests.tables import table


LISTED = yaml.safe_load(Path(__file__).with_name("plain.yaml").read_text())


@table("text", [each["text"] for listed in LISTED["refused"].values() for each in listed])
def test_text_with_anything_else_in_it_is_not_plain(text: str) -> None:
    found = read(text)
    assert found.not_plain or found.unreadable


@table("text, commands", [(each["text"], each["commands"]) for each in LISTED["accepted"]])
def test_plain_text_is_read_as_its_commands(text: str, commands: list[list[str]]) -> None:
    found = read(text)
    assert found.not_plain is found.unreadable is None
    assert [list(command.words) for command in found.commands] == commands


def test_plain_text_is_given_as_steps() -> None:
    steps = read("a 'b c' | d && e; f || g").steps
    assert steps == [(";", [["a", "b c"], ["d"]]), ("&&", [["e"]]), (";", [["f"]]), ("||", [["g"]])]


VALUE = "write the value itself"


@table(("text", "shown", "advice"), [
    ("ls $HOME; id", "`$HOME; id`", VALUE), ("ls `id`", "'`'", VALUE), ("ls 2>&1", "`2>&1`", "leave it out; read and write files"),
    ("ls &", "`&`", "`&&` joins two commands"), ("ls\nid", "`\nid`", "write all on one line"), (("bash", "-c", "ls $HOME"), "`$HOME`", VALUE),
    ("for x in a; do ls; done", "`for x in a", "write each command out"), ("ls | xargs -y id", "`-y`", "leave that word of `xargs` out"),
    ("ls | xargs timeout", "`…`", "leave that word of `timeout` out"),
])  # fmt: skip
def test_what_is_not_plain_is_shown_with_what_to_write_instead(text: str, shown: str, advice: str) -> None:
    fault = read(text).not_plain
    assert fault is not None
    assert shown.strip("'`") in fault.reason
    assert advice in fault.advice


PLAIN = st.text("abcXYZ019_./:,+@%=-", min_size=1, max_size=6)
QUOTED = st.text("ab $\\|;&<>(){}]*?~#!^%= éß", max_size=6).map("'{}'".format)
DOUBLE = st.text("ab'|;&<>(){}[]*?~#!^%= éß", max_size=6).map('"{}"'.format)
# The parser may take `=` at the beginning of a word for an operator: such a word is no plain one.
WORD = st.lists(PLAIN | QUOTED | DOUBLE, min_size=1, max_size=3).map("".join).filter(lambda word: word[0] != "=")
WORDS = st.lists(WORD, max_size=5)


@given(WORDS)
def test_plain_words_are_those_of_posix(words: list[str]) -> None:
    text = " ".join(["ls", *words])
    assert read(text).steps == [(";", [shlex.split(text, posix=True)])]


PIECES = st.sampled_from(
    ["ls ", "a", "b ", "'x y'", '"p q" ', " && ", "| ", "; ", "|| ", "HEAD~1 ", "b=c ", "./a-b:c,d "]
)
NASTY = st.sampled_from(
    [*"'\"|&;<>(){}[]$`\\*?~#!^=%\n\t\ré\xa0", "; if", "| for", "; [[", "; a=b", "${x:=", "%1", "<<", "2>"]
)
MIXED = st.tuples(st.lists(PIECES), NASTY, st.sampled_from(["{}", "'b{}'", '"b{}"']), st.lists(PIECES)).map(
    lambda each: f"ls {''.join(each[0])}a {each[2].format(each[1])} b {''.join(each[3])}"
)


@settings(max_examples=10 * settings().max_examples, deadline=None)
@given(MIXED)
def test_what_is_accepted_can_mean_nothing_else(text: str) -> None:
    found = read(text)
    if found.not_plain or found.unreadable:
        return
    # Written in another way than the reader: take quotes out by hand, then look at what is left.
    bare, quote = "", ""
    for char in text:
        if quote:
            assert char.isprintable()
            assert not (quote == '"' and char in "$`\\")
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote, bare = char, bare + "q"
        else:
            bare += char
    assert quote == ""
    assert not set(bare) & set("$`\\<>(){}[]*?#!\n\r\t\0")
    assert bare.isascii()
    assert not re.search(r"(?<!&)&(?!&)|&&&|\|\|\||;\s*;|\|&|(?:^|[^A-Za-z0-9@~^])[~^]", bare)
    kept = [command.split() for command in re.split(r"&&|\|\||[|;]", bare) if command.strip()]
    assert [len(words) for words in kept] == [len(words) for _, pipeline in found.steps for words in pipeline]
