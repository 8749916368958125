"""
A command split into the words of each simple command in it.
"""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.repetition.commands.looks import script_waits
from guardrails.core.repetition.commands.words import Pipeline, pipelines
from tests.tables import table


CASES: list[tuple[str, list[Pipeline]]] = [
    ("", []),
    ("ls -l", [[["ls", "-l"]]]),
    ("a 'b c' \"d e\" f\\ g h'i'\"j\"", [[["a", "b c", "d e", "f g", "hij"]]]),
    ("a | b |& c", [[["a"], ["b"], ["c"]]]),
    ("a && b || c; d & e\nf", [[["a"]], [["b"]], [["c"]], [["d"]], [["e"]], [["f"]]]),
    ("A=1 B='x y' a C=2", [[["a", "C=2"]]]),
    ("a 2>&1 >x >> 'y z' <in &>all b", [[["a", "b"]]]),
    ("a <<< 'x y' b", [[["a", "b"]]]),
    ("a # b; c\nd#e", [[["a"]], [["d#e"]]]),
    ("a \\\n  -b", [[["a", "-b"]]]),
    ("if a; then b; else c; fi", [[["a"]], [["b"]], [["c"]]]),
    ("while ! a | b; do c; done", [[["a"], ["b"]], [["c"]]]),
    ("(a; b) | c", [[["a"]], [["b"]], [["c"]]]),
    ("x=$(a b) c", [[["a", "b"]], [["c"]]]),
    ("a -n $(b 'c d') e", [[["b", "c d"]], [["a", "-n", "$", "e"]]]),
    ('a "$(b "c d" | e) f" g', [[["b", "c d"], ["e"]], [["a", "$ f", "g"]]]),
    ("a `b c` d", [[["b", "c"]], [["a", "$", "d"]]]),
    ("a <(b) >(c)", [[["b"]], [["c"]], [["a", "$", "$"]]]),
    ("a ${b:-c d} $((1 < 2)) $e", [[["a", "${b:-c d}", "$((1 < 2))", "$e"]]]),
    ("a $'b c'", [[["a", "b c"]]]),
    ("cat > f <<EOF\nb | c 'd\nEOF\ne", [[["cat"]], [["e"]]]),
    ("cat <<-'A B' <<C\nb\n\tA B\nc\nC\nd", [[["cat"]], [["d"]]]),
    ('a "$(cat <<\'E\'\nit\'s "b"\nE\n)" c', [[["cat"]], [["a", "$", "c"]]]),
    ("f() { a; }; g () ( b )", [[["a"]], [["b"]]]),
    ("x=(a $(b c) d) e", [[["b", "c"]], [["e"]]]),
    ("a > $(b c) d", [[["b", "c"]], [["a", "$", "d"]]]),
    ("case $x in b) c;; esac", [[["case", "$x", "in", "b"]], [["c"]]]),
    ("a 'b c", [[["a", "b c"]]]),
    ('a "b $(c d', [[["c", "d"]], [["a", "b $"]]]),
    ("a ) b", [[["a"]], [["b"]]]),
    ("a \\", [[["a", "\\"]]]),
]


@table(("text", "expected"), CASES)
def test_a_command_is_split_as_a_shell_would(text: str, expected: list[Pipeline]) -> None:
    assert pipelines(text) == expected


@given(st.lists(st.text(), min_size=1))
def test_what_is_quoted_comes_back(words: list[str]) -> None:
    assert pipelines(shlex.join(["echo", *words])) == [[["echo", *words]]]


@given(st.text(alphabet="ab \t\n'\"\\`$(){}|&;<>#!=E-", max_size=60))
def test_any_text_is_split_and_no_word_is_made_up(text: str) -> None:
    for words in (words for stages in pipelines(text) for words in stages):
        assert words
        assert sum(map(len, words)) <= len(text)


@table("program", ["bash", "sudo bash -s", "/bin/sh", "python3 -", "node"])
def test_a_program_that_runs_what_it_reads_is_given_the_text(program: str) -> None:
    found = pipelines(f"{program} <<'E'\nx 'y\nE\nz")
    assert [stages[-1][-1] for stages in found] == [program.rsplit(maxsplit=1)[-1], "x 'y\n", "z"]


def test_here_documents_in_each_other_are_read_only_so_far() -> None:
    assert not script_waits("bash <<E\n" * 2_000 + "sleep 5")
