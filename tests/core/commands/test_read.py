"""
What a command may run, found without running it, and rules about it.
"""

import re
import shlex
import time

from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import Fault, allows, broken, plain_steps, read, rule
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("reading.yaml").read_text())


def words(script: str | tuple[str, ...]) -> list[str]:
    return [" ".join(command.words) for command in read(script).commands]


@table("case", CASES["words"])
def test_every_command_is_found_with_its_words_expanded(case: dict[str, Any]) -> None:
    script = case["script"]
    assert words(tuple(script) if isinstance(script, list) else script) == case["commands"]


@table(("mark", "met", "missed"), [("undecidable", "undecidable", "known"), ("fork_bomb", "bombs", "no_bombs")])
def test_a_program_known_only_at_run_time_and_a_fork_bomb_are_marked(mark: str, met: str, missed: str) -> None:
    assert [script for script in CASES[met] if not getattr(read(script), mark)] == []
    assert [script for script in CASES[missed] if getattr(read(script), mark)] == []


def test_a_command_runs_where_the_folder_was_changed_to() -> None:
    assert {script: read(script).commands[-1].folder for script in CASES["folders"]} == CASES["folders"]


@table(("parts", "reason"), CASES["unreadable"])
def test_what_cannot_be_read_says_why(parts: list[Any], reason: str) -> None:
    fault = read("".join(text * times for text, times in parts)).unreadable
    assert reason in (fault.reason if fault else "")
    assert (fault is None) is (reason == "")


def test_what_is_too_long_or_no_text_cannot_be_read() -> None:
    faults = [read(odd).unreadable for odd in (("echo", "x" * 2_000_000), "ls \ud800")]
    assert [word in fault.reason for word, fault in zip(("too long", "Unicode"), faults, strict=True) if fault] == [
        True
    ] * 2


@table("line", ["text with 'quotes (and {brackets", "`a` b", "const a = `${b}`;", "a=$(b)", "| a | b |", "it's << 3"])
def test_a_long_file_is_written_by_a_here_document_whatever_signs_it_has(line: str) -> None:
    assert read("sh <<'EOF'\n" + "# x\n" * 8_000 + "a\nEOF").undecidable
    assert words(f"cat > a <<'EOF'\n{(line + chr(10)) * 4_000}EOF\nls") == ["> a", "cat", "ls"]


@settings(max_examples=4 * settings().max_examples)
@given(
    st.lists(
        st.sampled_from([*"ab $`'\"(){}|&;<>\n\\#=!*", "$(", "<<E\n", "E\n", "${", "if ", "eval ", "f()", "xargs "])
    )
)
def test_any_text_is_read_or_said_to_be_unreadable(parts: list[str]) -> None:
    read("".join(parts))


@table("parts", CASES["hostile"])
def test_a_hostile_text_is_read_in_bounded_time(parts: list[Any]) -> None:
    def cost() -> float:
        read.cache_clear()
        start = time.process_time()
        read("".join(text * times for text, times in parts))
        return time.process_time() - start

    # Half a second is what the slowest takes on a quiet machine; what grows with the square takes minutes.
    assert any(cost() < 10 for _ in range(3))


# Rules


@table(("way", "text", "cases"), [(way, *each) for way in ("forbids", "allows") for each in CASES[way].items()])
def test_a_rule_names_a_command_its_flags_and_words_or_one_that_allows_the_whole(
    way: str, text: str, cases: Any
) -> None:
    for command in (command for each in cases.values() for command in each):
        made = read(command).commands
        speaks = allows(rule(text), made[-1]) if way == "allows" else broken([text], made) is not None
        assert speaks is (command in cases.get("meets", ())), command


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
def test_plain_text_is_read_as_its_commands_and_given_as_steps(text: str, commands: list[list[str]]) -> None:
    found = read(text)
    assert found.not_plain is found.unreadable is None
    assert [list(command.words) for command in found.commands] == commands
    steps = plain_steps("a 'b c' | d && e; f || g")
    assert steps == [(";", [["a", "b c"], ["d"]]), ("&&", [["e"]]), (";", [["f"]]), ("||", [["g"]])]


@table(("text", "shown", "advice"), CASES["advice"])
def test_what_is_not_plain_is_shown_with_what_to_write_instead(text: str, shown: str, advice: str) -> None:
    fault = read(tuple(text) if isinstance(text, list) else text).not_plain
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
    assert plain_steps(text) == [(";", [shlex.split(text, posix=True)])]


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
    steps = plain_steps(text)
    if read(text).unreadable or isinstance(steps, Fault):
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
    assert [len(words) for words in kept] == [len(words) for _, pipeline in steps for words in pipeline]
