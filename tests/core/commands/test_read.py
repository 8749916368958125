"""
What a command may run, found without running it, and rules about it.
"""

import re
import shlex
import time

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import allows, broken, read, rule
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("reading.yaml").read_text())


def words(script: str | tuple[str, ...]) -> list[str]:
    return [" ".join(command.words) for command in read(script).commands]


@table("case", CASES["words"])
def test_every_command_is_found_with_its_words_expanded(case: dict[str, Any]) -> None:
    script = case["script"]
    assert words(tuple(script) if isinstance(script, list) else script) == case["commands"]


def test_a_program_that_is_known_only_at_run_time_is_undecidable() -> None:
    assert [script for script in CASES["known"] if read(script).undecidable] == []
    assert [script for script in CASES["undecidable"] if not read(script).undecidable] == []


def test_a_function_that_starts_itself_twice_at_once_is_a_fork_bomb() -> None:
    assert [script for script in CASES["bombs"] if not read(script).fork_bomb] == []
    assert [script for script in CASES["no_bombs"] if read(script).fork_bomb] == []


def test_a_command_runs_where_the_folder_was_changed_to() -> None:
    assert {script: read(script).commands[-1].folder for script in CASES["folders"]} == CASES["folders"]


@table(("script", "reason"), [
    ("if then", "no valid command near"), ("echo 'unclosed", "no valid command near"), ("ls \0", "NUL"), ("ls \ud800", "Unicode"),
    ("a " * 10_000, "limit 16,384"), ("eval " * 300 + "a", "more than 100 levels"), ("a;" * 8_000, ""),
    ("$(" * 200 + "ls" + ")" * 200, "more than 100 levels"), (("echo", "x" * 2_000_000), "too long"),
    ("for a in 1 2 3 4 5 6 7 8; do " * 12 + "ls" + "; done" * 12, "far more than is written"),
    ("echo '<<EOF'\n" + "x\n" * 9_000 + "EOF\nls", "is none"),
])  # fmt: skip
def test_what_cannot_be_read_says_why(script: str | tuple[str, ...], reason: str) -> None:
    fault = read(script).unreadable
    assert reason in (fault.reason if fault else "")
    assert (fault is None) is (reason == "")


@table("line", ["text with 'quotes (and {brackets", "`a` b", "const a = `${b}`;", "a=$(b)", "| a | b |", "it's << 3"])
def test_a_long_file_is_written_by_a_here_document_whatever_signs_it_has(line: str) -> None:
    assert words(f"cat > a <<'EOF'\n{(line + chr(10)) * 4_000}EOF\nls") == ["> a", "cat", "ls"]


def test_a_long_here_document_that_a_shell_reads_is_not_taken_for_data() -> None:
    assert read("sh <<'EOF'\n" + "# x\n" * 8_000 + "a\nEOF").undecidable


@settings(max_examples=4 * settings().max_examples)
@given(
    st.lists(
        st.sampled_from([*"ab $`'\"(){}|&;<>\n\\#=!*", "$(", "<<E\n", "E\n", "${", "if ", "eval ", "f()", "xargs "])
    )
)
def test_any_text_is_read_or_said_to_be_unreadable(parts: list[str]) -> None:
    read("".join(parts))


SIZE: Final = 16_000
HOSTILE: dict[str, Callable[[int], str]] = {
    "a variable doubled": lambda n: "a=xxxx;" + "a=$a$a;" * (n // 8) + "echo $a",
    "a long value, often": lambda n: "a=" + "x" * (n // 2) + ";echo " + "$a " * (n // 6),
    "loops in loops": lambda n: "for i in a b c d e f g h; do " * 24 + "x;" * (n // 6) + "done;" * 24,
    "braces": lambda n: "rm " + "{a,b}" * (n // 5),
    "wrappers": lambda n: "env " * (n // 4) + "a",
    "texts in texts": lambda n: "eval " * (n // 5) + "a",
    "commands of find": lambda n: "find a " + "-exec x {} ';' " * (n // 15),
    "functions": lambda n: "f() { f|f; };" * (n // 13),
    "substitutions": lambda n: "a " + "$(b) " * (n // 64) + "c" * (n - n // 64 * 5),
    "here-documents": lambda n: "cat <<E\nx\nE\n" * (n // 12),
    "openers": lambda n: "cat " + "<<E " * (n // 4),
    "pipes": lambda n: "sh|" * (n // 16) + "sh" + " " * (n - n // 16 * 3),
    "words": lambda n: "rm -r " + "b " * (n // 2),
    "what is wrong: brackets": lambda n: ")" * n,
    "what is wrong: arrays": lambda n: "a=(" * (n // 3),
    "what is wrong: cases": lambda n: "x) " * (n // 3),
}


@table("make", HOSTILE.values())
def test_a_hostile_text_is_read_in_bounded_time(make: Callable[[int], str]) -> None:
    def cost() -> float:
        read.cache_clear()
        start = time.process_time()
        read(make(SIZE))
        return time.process_time() - start

    # Half a second is what the slowest takes on a quiet machine; what grows with the square takes minutes.
    assert any(cost() < 10 for _ in range(3))


def test_a_text_is_read_once_for_the_same_call() -> None:
    assert read("echo once") is read("echo once")


# Rules


@table(("text", "cases"), CASES["forbids"].items())
def test_a_rule_that_forbids_names_a_command_its_flags_and_its_words(text: str, cases: dict[str, list[str]]) -> None:
    for way in ("meets", "misses"):
        for command in cases.get(way, ()):
            assert (broken([text], read(command).commands) is not None) is (way == "meets"), command


@table(("text", "cases"), CASES["allows"].items())
def test_a_rule_that_allows_is_the_whole_command_word_by_word(text: str, cases: dict[str, list[str]]) -> None:
    for way in ("meets", "misses"):
        for command in cases.get(way, ()):
            assert allows(rule(text), read(command).commands[-1]) is (way == "meets"), command


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
    assert time.process_time() - start < 10


# Text that an allow list can be held against, and how it runs without a shell


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
