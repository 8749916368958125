"""
What a script may run, found without running it.
"""

from contextlib import suppress

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import UnreadableError, walk
from tests.tables import table


def words(script: str) -> list[str]:
    return [" ".join(command.words) for command in walk(script).commands]


@table(
    ("script", "expected"),
    [
        ("a b && c | d; e & f", ["a b", "c", "d", "e", "f"]),
        ("X=1 a $X", ["X=1", "a \0"]),
        ("X=1; a $X", ["X=1", "a 1"]),
        ("X='1 2'; a $X \"$X\"", ["X=1 2", "a 1 2 1 2"]),
        ("a {1..3} {x,y}z", ["a 1 2 3 xz yz"]),
        ("a > f 2>&1 < g", ["> f", "a"]),
        ("a $(b $(c)) `d`", ["c", "b \0", "d", "a \0 \0"]),
        ("f() { a $1; }; f x", ["a \0", "f x", "a x"]),
        ("cat <<EOF | b\ntext $(c)\nEOF", ["c", "cat", "b"]),
        ("for i in a b; do $i; done", ["a", "b"]),
        ("bash -c 'a \"$1\"' x y", ['bash -c a "$1" x y', "a y"]),
        ("a # b", ["a"]),
        ('a=(b c); "${a[@]}"', ["a=b\1c", "b c"]),
        ("X=a; (X=b; $X); $X", ["X=a", "X=b", "b", "a"]),
        ("(X=b); $X c", ["X=b", "\0 c", "c"]),
        ('a > "$(b)" < $(c)', ["b", "> \0", "c", "a"]),
        ("cd /x; a `pwd` $(which b)", ["cd /x", "pwd", "which b", "a . b"]),
        (
            "find . -name x | xargs a; echo b | xargs a",
            ["find . -name x", "xargs a", "a ./*", "echo b", "xargs a", "a b"],
        ),
        ("(a); { b; }; ! c", ["a", "b", "c"]),
        ("[[ -n $(a) ]] && [ -f x ]", ["a"]),
        ("echo a | xargs -n1 b c", ["echo a", "xargs -n1 b c", "b c a"]),
        ('a=(b c); ${a[1]} "${a[@]}"', ["a=b\1c", "\0 b c", "b c"]),
        ("${x:-a} ${HOME:+b} ${PATH:0:1}", ["a \0", "a b /"]),
    ],
)
def test_every_command_is_found_with_its_words_expanded(script: str, expected: list[str]) -> None:
    assert words(script) == expected


def test_a_name_that_is_known_only_at_run_time_is_a_doubt() -> None:
    assert walk("$X").doubts
    assert walk("echo $X").doubts == []
    assert walk('"$DIR/bin/tool"').doubts == []


def test_a_directory_that_may_not_exist_leaves_the_old_one_possible() -> None:
    assert walk("cd /a && b").commands[-1].directories == ("/a",)
    assert set(walk("cd /a; b").commands[-1].directories) == {"/a", "."}
    assert walk("(cd /a); b").commands[-1].directories == (".",)


def test_substitutions_in_substitutions_are_walked_once_each() -> None:
    script = "a"
    for _ in range(20):
        script = f"a $({script})"
    assert len(walk(script).commands) == 21


@table("script", ["eval " * 40 + "a", "env " * 40 + "a", "a;" * 2_500, "sh -c '" + "x" * 20_000 + "'"])
def test_what_is_too_much_to_walk_is_unreadable(script: str) -> None:
    with pytest.raises(UnreadableError):
        walk(script)


def test_long_here_documents_are_data_and_do_not_make_a_command_unreadable() -> None:
    body = "text with 'quotes (and {brackets\n" * 5_000
    assert words(f"cat > f <<'EOF'\n{body}EOF\nls") == ["> f", "cat", "ls"]
    assert words(f"sh <<'EOF'\n{'# ' + 'x' * 90 + chr(10)}EOF\nls") == ["sh", "ls"]


def test_what_only_looks_like_a_here_document_hides_nothing() -> None:
    hidden = "rm -rf /\n" * 2_000
    with pytest.raises(UnreadableError):
        walk(f"echo '<<EOF'\n{hidden}EOF\nls")


@settings(max_examples=2 * settings().max_examples)
@given(
    st.lists(
        st.sampled_from([*"ab $`'\"(){}|&;<>\n\\#=!", "$(", "<<E\n", "E\n", "${", "if ", "eval ", "f()"]), max_size=40
    )
)
def test_any_text_is_walked_or_refused(parts: list[str]) -> None:
    with suppress(UnreadableError):
        walk("".join(parts))


def test_a_long_here_document_that_a_shell_reads_is_not_taken_for_data() -> None:
    hidden = f"{'# ' + 'x' * 90 + chr(10)}" * 200 + "a\n"
    with pytest.raises(UnreadableError):
        walk(f"sh <<'EOF'\n{hidden}EOF")
    assert words(f"xargs a <<'EOF'\n{'b' * 20_000}\nEOF")[1] == f"a {'b' * 20_000}"


@table("line", ["`a` b", "const a = `${b}`;", "a=$(b)", "| a | b |", "it's << 3"])
def test_a_long_file_is_written_by_a_here_document_whatever_signs_it_has(line: str) -> None:
    text = f"cat > a <<'EOF'\n{(line + chr(10)) * 4_000}EOF\nls"

    assert [command.words for command in walk(text).commands] == [(">", "a"), ("cat",), ("ls",)]
