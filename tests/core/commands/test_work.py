"""
Hostile commands: however they are put together, judging one takes work in proportion to its length.
"""

import time

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from guardrails.core.commands import UnreadableError, reading, rules, walk
from guardrails.core.commands.grammar.work import Work
from guardrails.core.commands.reading import _walked
from tests.tables import table


Make = Callable[[int], str | tuple[str, ...]]
ROOT = Path(__file__).parents[3]
RULES = rules(tuple(yaml.safe_load((ROOT / "policies/shell.yaml").read_text())["shell"]["deny"]))
SMALL, DOUBLED = 1_000, 4
"""Characters of the smallest command, and how often it is doubled."""
LINEAR, SQUARE = 2**DOUBLED, 4**DOUBLED

SCRIPTS: dict[str, Make] = {
    "a variable doubled": lambda n: "a=x;" + "a=$a$a;" * (n // 8) + "echo $a",
    "a variable that grows": lambda n: "a+=b;" * (n // 5),
    "variables and subshells": lambda n: "".join(f"a{i}=1;" for i in range(n // 14)) + "(x);" * (n // 8),
    "variables and pipes": lambda n: "".join(f"a{i}=1;" for i in range(n // 14)) + "x|y;" * (n // 16),
    "a long value, often": lambda n: "a=" + "x" * (n // 2) + ";echo " + "$a " * (n // 6),
    "an array, often": lambda n: "a=(" + "b " * (n // 4) + "); echo " + "${a[@]} " * (n // 40),
    "arguments of a function, often": lambda n: "f() { a $@ $@; }; " + ("f " + "b " * 40 + ";") * (n // 83),
    "a long word": lambda n: "echo " + "command" * (n // 7) + " | base64 -d > f",
    "a long format": lambda n: "printf '" + "%s " * (n // 3) + "' a b",
    "a long program": lambda n: "1" * n + "x a",
    "a long path": lambda n: "rm -rf " + "/*" * (n // 2),
    "a path that goes up": lambda n: "rm -rf " + "../" * (n // 3),
    "many directories": lambda n: "cd a;" * (n // 5) + "rm x",
    "a long directory": lambda n: "cd " + "a/" * (n // 4) + "; rm -rf " + "x " * (n // 4),
    "braces": lambda n: "rm " + "{a,b}" * (n // 5),
    "open braces": lambda n: "rm " + "{a," * (n // 3),
    "sequences": lambda n: "rm -rf " + "{1..99} " * (n // 8),
    "patterns": lambda n: "rm -rf /" + "*a" * (n // 2),
    "open brackets": lambda n: "rm -rf /" + "[a" * (n // 2),
    "words": lambda n: "rm -r " + "b " * (n // 2),
    "options": lambda n: "rm " + "-x " * (n // 3),
    "redirections": lambda n: "a " + ">b " * (n // 3),
    "a pipeline": lambda n: "sh|" * (n // 16) + "sh" + " " * (n - n // 16 * 3),
    "a list": lambda n: "a;" * (n // 2),
    "here-documents": lambda n: "cat <<E\nx\nE\n" * (n // 12),
    "openers of here-documents": lambda n: "cat " + "<<E " * (n // 4),
    "openers on lines of their own": lambda n: "cat <<E\n" * (n // 8),
    "substitutions": lambda n: "a " + "$(b) " * (n // 64) + "c" * (n - n // 64 * 5),
    "nested substitutions": lambda n: "$(" * 90 + "a " * (n // 2) + ")" * 90,
    "nested defaults": lambda n: "a " + "${b:-" * (n // 8) + "}" * (n // 8),
    "text for a shell": lambda n: "sh <<< '" + "a;" * (n // 2) + "'",
    "shells in shells": lambda n: "trap \"trap 'a' EXIT\" EXIT;" * (n // 28),
    "functions that double": lambda n: "".join(f"f{i}(){{ f{i - 1};f{i - 1};}};" for i in range(1, n // 20)) + "f9",
    "a function, often": lambda n: "f() { " + "[[ a ]];" * (n // 16) + "}; " + "f;" * (n // 4),
    "functions in functions": lambda n: "a() { b() { c() { d() { " + "x;" * (n // 2) + "}; d; }; c; }; b; }; a",
    "functions beside each other": lambda n: "".join(f"f{i}() {{ f{i + 1}|b; }};" for i in range(n // 20)),
    "jobs": lambda n: "f() { " + "a & " * (n // 4) + "}",
    "loops": lambda n: "".join(f"for i{k} in a b c d e; do " for k in range(24)) + "x $i1;" * (n // 6) + "done;" * 24,
    "endless loops": lambda n: "while true; do " * 20 + "a;" * (n // 2) + "done;" * 20,
    "cases": lambda n: "case x in " + "a) b;; " * (n // 7) + "esac",
    "searches and programs": lambda n: "find " + "a " * (n // 4) + "-exec x {} ';' " * (n // 32),
    "lines for a program": lambda n: "xargs -I% a " + "%" * (n // 2) + " <<E\n" + "b\n" * (n // 4) + "E\n",
    "values in parallel": lambda n: "parallel 'a " + "{}" * (n // 4) + "' ::: " + "b " * (n // 4),
    "wrappers": lambda n: "env " * (n // 4) + "a",
    "unknown words": lambda n: "$A " * (n // 3),
    "aliases": lambda n: "alias " + "a='b c' " * (n // 8),
    "quotes that are escaped": lambda n: "python3 <<'E'\nos.system(" + '"\\' * (n // 2) + "\nE\n",
    "quotes that nothing closes": lambda n: "perl -e 'system " + "qx{" * (n // 3) + "'",
    "strings that are commands": lambda n: 'python -c "system(' + "'x) x) ' " * (n // 9) + '"',
    "what is wrong: brackets": lambda n: ")" * n,
    "what is wrong: arrays": lambda n: "a=(" * (n // 3),
    "what is wrong: signs": lambda n: "|])" * (n // 3),
    "what is wrong: redirections": lambda n: "`>!" * (n // 3),
    "what is wrong: pipes": lambda n: "a|" * (n // 2),
    "what is wrong: cases": lambda n: "x) " * (n // 3),
    "what is wrong: substitutions": lambda n: ")case x in " + ">)$(*" * (n // 5),
}
WORDS: dict[str, Make] = {
    "a long word": lambda n: ("echo", "a" * n),
    "a long path": lambda n: ("rm", "-rf", "/*" * (n // 2)),
    "many words": lambda n: ("rm", "-rf", *["x"] * (n // 2)),
    "places for a long value": lambda n: ("parallel", "{}" * (n // 4), ":::", "x" * (n // 2)),
    "places for a long line": lambda n: ("find", "a" * (n // 2), "-exec", "{}" * (n // 4)),
    "blanks": lambda n: ("x", "=!" + " \n" * (n // 2)),
    "a long program": lambda n: ("-" * n + "1", "a"),
}


def cost(command: str | tuple[str, ...]) -> float:
    """
    Seconds of CPU that judging *command* takes; the units that it was allowed are not exceeded.
    """
    size = sum(map(len, command))
    start = time.process_time()
    found, units = _walked(command)
    assert units <= size + Work(size).left
    if not isinstance(found, UnreadableError):
        RULES.broken(found.commands)
    return time.process_time() - start


@table("make", [make for kind, made in (("text", SCRIPTS), ("words", WORDS)) for name, make in made.items()])
def test_work_grows_with_the_length_of_a_command_and_not_with_its_square(make: Make) -> None:
    # What takes a millisecond is not measured; the best of three, since others use the machine too.
    most = (LINEAR * SQUARE) ** 0.5
    large = make(SMALL << DOUBLED)
    assert any(cost(large) < most * max(cost(make(SMALL)), 0.003) for _ in range(3))


@table("body", ["x 'y\n", "<<E\n", "cat <<'E'\n", "\t\n"])
def test_long_here_documents_cost_no_more_than_their_length(body: str) -> None:
    small, large = ("cat > f <<'END'\n" + body * (size // len(body)) + "END\n" for size in (50_000, 800_000))
    assert any(cost(large) < 64 * max(cost(small), 0.003) for _ in range(3))


def test_an_honest_text_of_twelve_kilobytes_is_read() -> None:
    text = "echo " + "aB3d" * 3_000 + " | base64 -d > f.bin"
    assert [command.base for command in walk(text).commands] == [">", "echo", "base64"]


def test_a_variable_that_is_doubled_a_few_times_is_known_and_then_refused() -> None:
    doubled = "a=x;" + "a=$a$a;" * 4 + "echo $a"
    assert walk(doubled).commands[-1].words == ("echo", "x" * 16)
    with pytest.raises(UnreadableError, match="many times as long"):
        walk("a=x;" + "a=$a$a;" * 30 + "echo $a")


def test_what_was_read_is_kept_by_its_size() -> None:
    for number in range(20):
        walk(("echo", f"{number}" * 150_000))
    assert sum(units for _, units in reading._kept.values()) <= reading._MAX_UNITS
    walk(("echo", "x" * 8_000_000))
    assert sum(map(len, (word for words in reading._kept for word in words))) < 8_000_000
