"""
Text for a terminal: wrapped, in columns, and never able to steer it.
"""

import pytest
import typer

from hypothesis import given
from hypothesis import strategies as st

from guardrails.cli.text import printing


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@given(st.text())
def test_what_is_printed_holds_no_control_characters(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" for c in printing.printable(text))


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    assert printing.printable("a\x1b[2Jb\x00\x9b") == "a\\x1b[2Jb\\x00\\x9b"


def test_text_is_wrapped_at_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    wrapped = printing.paragraph("word " * 20, indent="  ", hanging="    ").splitlines()
    assert max(map(len, wrapped)) <= 30
    assert wrapped[0].startswith("  word")
    assert wrapped[1].startswith("    word")


def test_lines_do_not_grow_with_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert printing.width() == 100


def test_a_table_has_columns_that_fit_and_wraps_long_cells() -> None:
    lines = printing.table([("", "without", "with"), ("calls", "50", "2"), ("end", "x " * 40, "answered")]).splitlines()
    assert max(len(line) for line in lines[1:]) <= 80
    assert lines[1].split() == ["calls", "50", "2"]
    assert len({line.index("2" if "50" in line else "answered") for line in lines[1:3]}) == 1
    assert len(lines) > 3


def test_a_failure_is_said_on_stderr_and_ends_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        printing.fail("no such thing", 1)
    assert ended.value.exit_code == 1
    assert capsys.readouterr() == ("", "no such thing\n")
