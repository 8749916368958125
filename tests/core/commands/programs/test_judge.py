"""
Commands that only read, and those that may do more, by the rules of their programs.
"""

import shlex

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.programs import NAMES, prepared, program_of, reads_only
from guardrails.core.commands.programs.files import program
from guardrails.core.commands.programs.rules import Rules


HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
GTFOBINS = yaml.safe_load((HERE / "gtfobins.yaml").read_text())


def listed(said: str) -> list[str]:
    return [text for of in CASES.values() for text in of[said]] + [
        text for texts in GTFOBINS[said].values() for text in texts
    ]


def options(rules: Rules) -> Iterator[str]:
    yield from rules.options
    for sub in rules.subcommands.values():
        yield from options(sub)


READS = [shlex.split(text) for text in listed("reads") if not text.startswith(("echo", "printf"))]
"""Without those whose words are all data."""
LISTED = {option for name in NAMES for option in options(program(name).rules)} | {"-exec"}
LETTERS = {name: {option[1] for option in options(program(name).rules)} for name in NAMES}


@pytest.mark.parametrize("text", listed("reads"))
def test_what_only_reads_is_known(text: str) -> None:
    assert reads_only(shlex.split(text)) is None


@pytest.mark.parametrize("text", listed("refused"))
def test_what_may_do_more_is_refused_with_a_reason(text: str) -> None:
    refused = reads_only(shlex.split(text))
    assert refused is not None
    assert refused.reason
    assert not refused.reason.endswith(".")


def places(words: list[str]) -> range:
    """
    Where an option may stand among *words*: behind what names the program, and before `--`.
    """
    start = 3 if words[:2] in (["python", "-m"], ["python3", "-m"]) else 1
    return range(start, (words.index("--") if "--" in words else len(words)) + 1)


def is_value(words: list[str], place: int) -> bool:
    """
    Whether the word at *place* of a find would be the value of a test, which may be any text.
    """
    rules = program("find").rules
    before = rules.options.get(words[place - 1])
    return "find" in words and before is not None and before.takes == "valued"


@given(st.data(), st.sampled_from(READS), st.from_regex(r"--?[a-zA-Z][a-zA-Z0-9-]{1,12}(=.{0,5})?", fullmatch=True))
def test_an_option_that_is_not_listed_never_passes(data: st.DataObject, words: list[str], option: str) -> None:
    place = data.draw(st.sampled_from(places(words)))
    letters = option[1:].partition("=")[0]
    bundled = not option.startswith("--") and any(letters[0] in found for found in LETTERS.values())
    if option.partition("=")[0] in LISTED or bundled or is_value(words, place):
        return
    assert reads_only([*words[:place], option, *words[place:]]) is not None


@given(st.data(), st.sampled_from(READS), st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
def test_a_letter_that_is_not_listed_never_passes_in_a_bundle(
    data: st.DataObject, words: list[str], letter: str
) -> None:
    place = data.draw(st.sampled_from(places(words)))
    before = data.draw(st.sampled_from(sorted(LISTED)).filter(lambda each: len(each) == 2))
    names = {program_of(words[at:]) for at in range(len(words))} - {None}
    if any(letter in LETTERS[name] for name in names if name) or is_value(words, place):
        return
    for option in (f"-{letter}", f"-{letter}x"):
        assert reads_only([*words[:place], option, *words[place:]]) is not None
    # Behind a flag of the program; behind an option with a value it is the value.
    if f"{before}{letter}" not in LISTED and all(_flag(name, before) for name in names if name):
        assert reads_only([*words[:place], f"{before}{letter}", *words[place:]]) is not None


def _flag(name: str, option: str) -> bool:
    return any(_takes(rules, option) == "flags" for rules in _all(program(name).rules)) and not any(
        _takes(rules, option) not in ("flags", None) for rules in _all(program(name).rules)
    )


def _takes(rules: Rules, option: str) -> str | None:
    found = rules.options.get(option)
    return None if found is None else found.takes


def _all(rules: Rules) -> Iterator[Rules]:
    yield rules
    for sub in rules.subcommands.values():
        yield from _all(sub)


@given(st.data(), st.sampled_from([words for words in READS if "--" not in words]), st.sampled_from(["", "x", "-"]))
def test_a_word_that_is_known_only_at_run_time_is_no_option_of_a_program_that_has_dangerous_ones(
    data: st.DataObject, words: list[str], rest: str
) -> None:
    place = data.draw(st.sampled_from(places(words)))
    name = program_of(words)
    assert name is not None
    harmless = program(name).any_word or (program(name).style != "options")
    if not harmless:
        assert reads_only([*words[:place], UNKNOWN + rest, *words[place:]]) is not None


@given(st.lists(st.text(max_size=12), max_size=8), st.frozensets(st.integers(0, 8)))
def test_any_words_are_judged(words: list[str], globs: frozenset[int]) -> None:
    assert reads_only(words, globs) is not None or program_of(words) is not None


@given(st.sampled_from(NAMES), st.lists(st.sampled_from([*"-=/.:*{}[]()\\\"'#;!$\n@+", *sorted(LISTED), UNKNOWN])))
def test_any_words_behind_a_program_are_judged(name: str, words: list[str]) -> None:
    assert reads_only([name, *words]) in (None, reads_only([name, *words]))


@pytest.mark.parametrize(
    ("words", "globs", "passes"),
    [
        (["wc", "-l", UNKNOWN], {2}, True),
        (["sed", "-n", "p", UNKNOWN], {3}, True),
        (["sed", UNKNOWN, "a"], {1}, False),
        (["sed", "-e", UNKNOWN], {2}, False),
        (["sed", "-e", "p", f"{UNKNOWN}.txt"], {3}, True),
        (["sort", f"src/{UNKNOWN}"], {1}, True),
        (["uniq", UNKNOWN], {1}, False),
        (["uniq", "a", f"b{UNKNOWN}"], {2}, False),
        (["jq", ".", f"{UNKNOWN}.json"], {2}, True),
        (["jq", f".{UNKNOWN}", "a"], {1}, False),
        (["git", "log", "--", UNKNOWN], {3}, True),
        (["git", UNKNOWN], {1}, False),
        (["git", "config", f"a{UNKNOWN}"], {2}, False),
        (["git", "branch", UNKNOWN], {2}, False),
        (["find", f"src/{UNKNOWN}", "-name", "x"], {1}, True),
        (["find", ".", "-name", f"{UNKNOWN}.py"], {3}, False),
        (["pytest", f"tests/test_{UNKNOWN}.py"], {1}, True),
        (["pytest", UNKNOWN], {1}, False),
        (["pytest", f"tests/{UNKNOWN}"], {1}, False),
        (["tar", f"t{UNKNOWN}"], {1}, False),
        (["tar", "-tf", UNKNOWN], {2}, True),
        (["cat", f"/{UNKNOWN}/self/environ"], {1}, False),
        (["cat", f"/p{UNKNOWN}"], {1}, False),
        (["cat", f"/proc/{UNKNOWN}"], {1}, False),
        (["cat", f"/etc/{UNKNOWN}"], {1}, True),
        (["cat", f"/home{UNKNOWN}/a"], {1}, True),
        (["grep", "x", f"--include={UNKNOWN}"], set(), True),
        (["rg", "x", f"--glob={UNKNOWN}"], set(), True),
        (["rg", "x", f"--p{UNKNOWN}"], set(), False),
        (["rg", "x", f"-e{UNKNOWN}"], set(), False),
    ],
)
def test_a_pattern_is_any_number_of_files_and_no_option(words: list[str], globs: set[int], passes: bool) -> None:
    assert (reads_only(words, globs) is None) is passes


def test_a_program_that_is_not_among_the_given_ones_is_refused() -> None:
    assert reads_only(["cat", "a"], among=["ls"]) is not None
    assert reads_only(["find", ".", "-exec", "cat", "{}", ";"], among=["find"]) is not None
    assert reads_only(["find", ".", "-exec", "cat", "{}", ";"], among=["find", "cat"]) is None


@pytest.mark.parametrize(
    ("text", "reason", "advice"),
    [
        ("git log --outp=x", "`--outp` of `git log` writes a file", "leave `--outp` out"),
        ("rg --pre cat x", "`--pre` of `rg` starts a program for each file", "leave `--pre` out"),
        ("git -c a=b log", "`-c` of `git` sets what may start a program, such as a pager", "leave `-c` out"),
        (
            "sort --revers a",
            "`--revers` is not among the options of `sort` that only read",
            "write `--reverse` out",
        ),
        (
            "rg --colour x",
            "`--colour` is not among the options of `rg` that only read",
            "leave it out; the nearest that is listed is `--color`",
        ),
        (
            "sed -i s/a/b/ f",
            "`-i` of `sed` changes files",
            "print lines as `sed -n '1,20p' FILE`; change files with a tool for files",
        ),
        ("tar xf a", "`-x` of `tar` writes files", "list an archive as `tar -tf FILE`"),
        (
            "grep -e -x f",
            "the value of `-e` begins with `-`, or may",
            "write it in the same word as `-e`",
        ),
        (
            "xargs sort",
            "what stands behind `sort` is known only when it runs, and may be an option of it",
            "write `--` behind the options of `sort`",
        ),
    ],
)
def test_a_refusal_names_the_option_and_the_nearest_form(text: str, reason: str, advice: str) -> None:
    assert reads_only(shlex.split(text)) == (reason, advice)


@pytest.mark.parametrize(
    "words",
    [
        ["sed", "s/[" * 30_000],
        ["sed", "s/[[:" * 30_000 + "/x/"],
        ["sed", "p;" * 60_000],
        ["sed", "a x\n" * 30_000],
        ["sed", "{" * 120_000],
        ["jq", '"\\(' * 40_000],
        ["jq", "(" * 120_000],
        ["jq", "#\n" * 60_000],
        ["jq", '"' * 120_001],
        ["cat", "../" * 40_000],
        ["cat", "a/../" * 30_000],
        ["grep", "-" + "i" * 120_000, "x"],
        ["grep", "--" + "i" * 120_000],
        ["xargs", *["-r"] * 30_000, "cat"],
        ["find", *["-exec", "cat", ";"] * 20_000],
        ["find", *["-exec"] * 60_000],
        ["xargs"] * 60_000,
        ["timeout", "5"] * 30_000,
        ["git", *["-P"] * 60_000, "log"],
    ],
    ids=lambda words: f"{words[0]} {words[1][:8]!r}",
)
def test_long_words_and_many_words_are_judged_at_once(words: list[str]) -> None:
    # What grows with the square of their length would not end in this test.
    reads_only(words)


def test_our_own_executor_keeps_the_settings_of_a_repository_from_starting_anything() -> None:
    words, environment = prepared(["git", "-C", "web", "diff", "--stat"])
    assert words == ("git", "-C", "web", "diff", "--no-ext-diff", "--no-textconv", "--stat")
    count = int(environment["GIT_CONFIG_COUNT"])
    settings = {environment[f"GIT_CONFIG_KEY_{n}"]: environment[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}
    assert settings["core.fsmonitor"] == "false"
    assert settings["core.hooksPath"] == "/dev/null"
    assert environment["GIT_OPTIONAL_LOCKS"] == "0"


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (
            ["timeout", "5", "git", "stash", "list"],
            ("timeout", "5", "git", "stash", "list", "--no-ext-diff", "--no-textconv"),
        ),
        (
            ["find", ".", "-exec", "git", "blame", "{}", ";"],
            ("find", ".", "-exec", "git", "blame", "--no-textconv", "{}", ";"),
        ),
        (["git", "commit", "-m", "x"], ("git", "commit", "-m", "x")),
        (["git", "log", "--ext-diff"], ("git", "log", "--ext-diff")),
        (["make"], ("make",)),
    ],
)
def test_what_may_do_more_is_started_as_it_is(words: list[str], made: tuple[str, ...]) -> None:
    found = prepared(words)
    assert found.words == made
    assert bool(found.environment) is (found.words != tuple(words))
