"""
What is read of a text in the small language, and what is refused of other text.
"""

import time

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.commands import NotPlainError, UnreadableError
from guardrails.core.commands.language import Change, Command, Group, NotInLanguageError, Script, read, to_data
from guardrails.core.commands.language.reading import _KEYWORDS, MAX_CHARACTERS
from guardrails.core.commands.language.refused import ADVICE, BUILTINS
from guardrails.core.commands.plain.form import pipelines


LISTED = yaml.safe_load((Path(__file__).parents[1] / "language.yaml").read_text(encoding="utf-8"))


def commands(script: Script) -> Iterator[Command]:
    for step in script.steps:
        for stage in step.stages:
            if isinstance(stage, Group):
                yield from commands(stage.script)
            elif isinstance(stage, Command):
                yield stage


def words(text: str) -> list[list[Any]]:
    return [
        [parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts for parts in stage["words"]]
        for stage in map(_data, commands(read(text)))
    ]


def _data(command: Command) -> dict[str, Any]:
    from guardrails.core.commands.language import Step

    made: dict[str, Any] = to_data(Script((Step(sign=";", stages=(command,)),)))["steps"][0][1][0]
    return made


@pytest.mark.parametrize(("text", "expected"), [(each["text"], each["words"]) for each in LISTED["read"]])
def test_a_text_is_read_as_its_words(text: str, expected: list[list[Any]]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(("text", "expected"), [(each["text"], each["redirections"]) for each in LISTED["redirected"]])
def test_redirections_are_read_in_their_order(text: str, expected: list[list[Any]]) -> None:
    (command,) = commands(read(text))
    assert [[each.handle, each.kind, each.target] for each in command.redirections] == expected


@pytest.mark.parametrize(("text", "kind"), [(each["text"], each["kind"]) for each in LISTED["refused"]])
def test_anything_else_is_refused_by_what_it_is_with_what_to_write_instead(text: str, kind: str) -> None:
    with pytest.raises(NotInLanguageError) as raised:
        read(text)
    assert raised.value.kind == kind
    assert raised.value.advice


def test_every_kind_of_refusal_is_met_by_a_text() -> None:
    met = {each["kind"] for each in LISTED["refused"]}
    assert met - set(ADVICE) == {"a command that only a shell has"}
    assert set(ADVICE) - met == {"too many words", "nested too deep", "a comment inside of a word"}


def test_assignments_stand_before_the_program_and_hold_no_pattern() -> None:
    (command,) = commands(read("A=b C='d e' F=*.x env G=h"))
    assert command.assignments == (("A", "b"), ("C", "d e"), ("F", "*.x"))
    assert [word.text for word in command.words] == ["env", "G=h"]


def test_a_change_of_folder_is_no_program() -> None:
    first, second = read("cd -- 'a b' && ls").steps
    assert first.stages == (Change(folder="a b"),)
    assert second.sign == "&&"


def test_the_place_of_what_is_refused_is_told() -> None:
    with pytest.raises(NotInLanguageError, match="character 13 of it is an expansion") as raised:
        read('ls "a b" "c $x"; id > y')
    assert raised.value.place == 12


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_what_only_a_shell_has_is_no_program_however_it_is_quoted(name: str) -> None:
    for text in (name, f"'{name}' x", f"A=b {name} x"):
        with pytest.raises(NotInLanguageError):
            read(text)


plain_texts = st.lists(
    st.sampled_from(
        [
            "ls",
            "git",
            "a b",
            "'a b'",
            '"c d"',
            "'$x'",
            "x=y",
            "HEAD~1",
            "HEAD^",
            "-n",
            "src/a.py",
            "é",
            "[",
            "test",
            "|",
            "&&",
            "||",
            ";",
            " ",
            "  ",
            "'",
            '"',
            "$",
            "\\",
            "*",
            "#",
            "~",
            "(",
            "{",
            "\n",
            "&",
            "!",
            ">",
        ]
    ),
    max_size=12,
).map("".join)


@given(text=plain_texts)
@settings(max_examples=500, deadline=None)
def test_what_is_in_the_plain_form_is_read_to_the_same_words(text: str) -> None:
    try:
        plain = pipelines(text)
    except (NotPlainError, UnreadableError):
        return
    programs = [each[0] for pipeline in plain for each in pipeline]
    if {*BUILTINS, *_KEYWORDS, "cd"}.isdisjoint(programs) and not any(name.startswith("-") for name in programs):
        assert words(text) == [each for pipeline in plain for each in pipeline]


@given(text=st.text(alphabet="ab'\"\\$`*?[]{}()<>|&;#~!=- \n\t12,.é", max_size=40))
@settings(max_examples=1_000, deadline=None)
def test_any_text_is_read_or_refused_and_never_fails(text: str) -> None:
    with suppress(UnreadableError):
        assert isinstance(to_data(read(text)), dict)


def test_size_is_checked_before_anything_is_read() -> None:
    with pytest.raises(UnreadableError, match=r"65,537 characters \(limit 65,536\)"):
        read("'" * (MAX_CHARACTERS + 1))


@pytest.mark.parametrize(
    "text",
    ["{a,b}" * 40, "x" + "{a,b,c,d,e,f,g,h}" * 4 + "'y'" * 9_000, "(" * 9 + "a", "( " * 9 + "a", "a;" * 1_001],
    ids=range(5),
)
def test_what_would_become_too_much_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        read(text if text.startswith(("(", "a;")) else f"echo {text}")


@pytest.mark.parametrize(
    "piece",
    [
        "'a'",
        '"a"',
        "\\a",
        "a ",
        "*",
        "[a]",
        "a\\\n",
        " \\\n",
        "#\n",
        "<<E\n",
        "cat <<E\nx\nE\n",
        "{a,b}",
        "{}",
        '"$(cat <<E\n',
        "a|",
        "a>b ",
        "2>&1 ",
        "A=b ",
        "~",
        "a~",
        "$",
        "é",
        "(a)",
        "\n",
    ],
)
def test_the_work_grows_with_the_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = ("a " + piece * size)[:MAX_CHARACTERS]
        best = 9.0
        for _ in range(3):
            started = time.perf_counter()
            with suppress(UnreadableError):
                read(text)
            best = min(best, time.perf_counter() - started)
        return best

    assert seconds(MAX_CHARACTERS) < 5
