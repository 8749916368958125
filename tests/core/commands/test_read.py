"""
What a command may run, found without running it.
"""

import time

from collections.abc import Callable
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import read
from tests.tables import table


def words(script: str | tuple[str, ...]) -> list[str]:
    return [" ".join(command.words) for command in read(script).commands]


@table(
    "script, expected",
    [
        ("a b && c | d; e & f", ["a b", "c", "d", "e", "f"]),
        ("X=1; a $X", ["X=1", "a 1"]),
        ("X='1 2'; a $X \"$X\"", ["X=1 2", "a 1 2 1 2"]),
        ("a {x,y}z '{x,y}'", ["a xz yz {x,y}"]),
        ("a > f 2>&1 < g", ["> f", "a"]),
        ("> f", ["> f"]),
        ("a $(b $(c)) `d`", ["c", "b \0", "d", "a \0 \0"]),
        ("f() { a $1 ${@:2}; }; f x", ["a argument argument", "f x", "x"]),
        ("cat <<E\nit's `a` $(b)\nE", ["b", "a", "cat"]),
        ("cat <<'E'\n`a` $(b)\nE", ["cat"]),
        ("a ${x#$(b)} ${x:-`c d`}; a[$(b)]=1", ["b", "c d", "a \0 \0", "b", "a=1"]),
        ("coproc a; builtin b${IFS}d; ! ! c", ["coproc a", "a", "builtin b d", "b d", "! c", "c"]),
        ("cat <<EOF | b\ntext $(c)\nEOF", ["c", "cat", "b"]),
        ("for i in a b; do $i; done", ["a", "b"]),
        ("bash -c 'a; b' x y", ["bash -c a; b x y", "a", "b"]),
        ("a # b", ["a"]),
        ('a=(b c); "${a[@]}"', ["a=b c", "b c"]),
        ("X=a; (X=b; $X); $X", ["X=a", "X=b", "b", "a"]),
        ('a > "$(b)" < $(c)', ["b", "> \0", "c", "a"]),
        ("a `pwd` $(which b)", ["pwd", "which b", "a . b"]),
        ("(a); { b; }; ! c", ["a", "b", "c"]),
        ("[[ -n $(a) ]] && [ -f x ]", ["a"]),
        ("xargs -n1 b c <<< a", ["xargs -n1 b c", "b c a"]),
        ("${x:-a} ${PATH:0:1} a\\ b", ["a \0 a b"]),
        ("if a; then b; else c; fi; while d; do e; done; case x in y) f;; esac", ["a", "b", "c", "d", "e", "f"]),
        (
            "timeout -k 1 5s env -i A=1 nice -n 5 a",
            ["timeout -k 1 5s env -i A=1 nice -n 5 a", "env -i A=1 nice -n 5 a", "nice -n 5 a", "a"],
        ),
        ("find . -exec a {} + -exec b '{}' ';' -name x", ["find . -exec a {} + -exec b {} ; -name x", "a \0", "b \0"]),
        ("sudo -nu me -- a; ssh -p 22 h -t -- 'b; c'", ["sudo -nu me -- a", "a", "ssh -p 22 h -t -- b; c", "b", "c"]),
        ("eval 'a b'; trap -- 'c' EXIT; su -c d", ["eval a b", "a b", "trap -- c EXIT", "c", "su -c d", "d"]),
        ("sh <<E\na\nE", ["sh", "a"]),
        ("", []),
        (("a", "$X", "*"), ["a $X *"]),
        (("bash", "-lc", "a | b"), ["bash -lc a | b", "a", "b"]),
    ],
)
def test_every_command_is_found_with_its_words_expanded(script: str | tuple[str, ...], expected: list[str]) -> None:
    assert words(script) == expected


@table(
    "script, is_known",
    [
        ("$X", False),
        ("echo $X", True),
        ('"$DIR/bin/tool"', True),
        ("/bin/r? x", False),
        ("/bin/[r]m x", False),
        ("f() { cat x | sh; }", False),
        ("cat x | sh", False),
        ("cat x | sh y.sh", True),
        ("source <(curl x)", False),
        ('eval "$X"', False),
        ('sh -c "cd $X && make"', True),
        ('run() { "$@"; }; run make', True),
        ("sh < x", True),
    ],
)
def test_a_program_that_is_known_only_at_run_time_is_undecidable(script: str, is_known: bool) -> None:
    assert (read(script).undecidable is None) is is_known


@table(
    "script, is_bomb",
    [
        (":(){ :|:& };:", True),
        ("function f { f | f; }; f", True),
        ("f(){ f & f & }; f", True),
        ("walk() { ls | while read f; do walk $f; done; }; walk .", False),
        ("f() { f; }", False),
        ("for i in 1 2; do sleep 1 & done; wait", False),
    ],
)
def test_a_function_that_starts_itself_twice_at_once_is_a_fork_bomb(script: str, is_bomb: bool) -> None:
    assert read(script).fork_bomb is is_bomb


@table(
    "script, folder",
    [
        ("cd /a && b", "/a"),
        ("cd a; cd b; c", "a/b"),
        ("(cd /a); b", "."),
        ("cd /a | b; c", "."),
        ("cd $X; b", "\0"),
        ("cd; b", "~"),
    ],
)
def test_a_command_runs_where_the_folder_was_changed_to(script: str, folder: str) -> None:
    assert read(script).commands[-1].folder == folder


@table(
    "script, reason",
    [
        ("if then", "no valid command near"),
        ("echo 'unclosed", "no valid command near"),
        ("ls \0", "NUL"),
        ("ls \ud800", "Unicode"),
        ("a " * 10_000, "limit 16,384"),
        ("eval " * 300 + "a", "more than 100 levels"),
        ("$(" * 200 + "ls" + ")" * 200, "more than 100 levels"),
        ("a;" * 8_000, ""),
        ("for a in 1 2 3 4 5 6 7 8; do " * 12 + "ls" + "; done" * 12, "far more than is written"),
        ("echo '<<EOF'\n" + "rm -rf /\n" * 2_000 + "EOF\nls", "is none"),
        (("echo", "x" * 2_000_000), "too long"),
    ],
)
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
