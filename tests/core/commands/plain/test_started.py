"""
Programs in the plain form that start others: what they start is seen, or nobody guesses.
"""

from pathlib import Path

import pytest
import yaml

from guardrails.core.commands import UnreadableError, plainly
from tests.tables import table


LISTED = yaml.safe_load((Path(__file__).parents[1] / "started.yaml").read_text())
UNCLEAR = [pytest.param(text, id=text) for texts in LISTED["refused"].values() for text in texts]


@pytest.mark.parametrize("text", UNCLEAR)
def test_what_a_program_may_start_is_not_guessed(text: str) -> None:
    doubts: list[str | None] = []
    try:
        doubts += plainly(text).doubts
    except UnreadableError as error:
        doubts.append(error.advice)
    assert doubts
    assert all(doubts)


@table("text", LISTED["seen"])
def test_what_a_program_starts_is_seen(text: str) -> None:
    assert "id" in {command.words[0] for command in plainly(text).commands}


@table("text", LISTED["honest"])
def test_honest_use_of_such_programs_is_clear(text: str) -> None:
    found = plainly(text)
    assert found.doubts == []
    assert "id" not in {command.words[0] for command in found.commands}


def test_an_expansion_in_inner_text_is_named_by_that_text() -> None:
    with pytest.raises(UnreadableError, match=r"character 4 of `ls \$x` is an expansion"):
        plainly("timeout 5 bash -c 'ls $x'")


@table("piece", ["eval ", "timeout 5 ", "find . -exec ", "xargs ", "nice ", "ssh h ", "parallel "])
def test_no_repetition_of_programs_takes_long(piece: str) -> None:
    with pytest.raises(UnreadableError):
        plainly(piece * (16_000 // len(piece)) + "ls")


def test_many_values_of_long_commands_are_not_read_one_by_one() -> None:
    with pytest.raises(UnreadableError, match="starts too much"):
        plainly("parallel " + "ls " * 2_600 + "::: " + "a " * 4_000)
