"""
What a command may run, found without running it, and rules about it.
"""

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
    assert min(cost() for _ in range(3)) < 10


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
    assert time.process_time() - start < 1
