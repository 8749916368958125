"""
Text for a terminal: wrapped, in columns, and never able to steer it; files that are written whole.
"""

import os
import sys

from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.cli import console
from tests.tables import table


CELL = st.text("abc 1%", max_size=9)


@given(st.text())
def test_what_is_printed_holds_no_control_characters(text: str) -> None:
    assert all(c.isprintable() or c in "\n\t" for c in console.printable(text))


@table("columns, widest", [("30", 30), ("400", 100)])
def test_a_sentence_is_wrapped_to_the_right(columns: str, widest: int, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    console.say("word " * 50, indent=2)
    first, *others = capsys.readouterr().out.splitlines()
    assert max(map(len, [first, *others])) <= widest
    assert [line.index("word") for line in (first, *others)] == [2, *[4] * len(others)]


ROWS = st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1))


@given(st.integers(40, 120), ROWS)
def test_whatever_is_in_the_cells_a_table_fits_and_nothing_is_lost(columns: int, rows: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shown = StringIO()
        patch.setattr(sys, "stdout", shown)
        patch.setenv("COLUMNS", str(columns))
        console.table(rows)
    assert max(map(len, shown.getvalue().splitlines()), default=0) <= columns
    joined = "".join(shown.getvalue().split())
    assert all(cell.strip()[:1] in joined for row in rows[1:] for cell in row)


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with console.progress(quiet=False) as tell:
        assert tell is None
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with console.progress(quiet=False) as tell:
        assert tell is not None
        tell("5 calls [read]\x1b[2J")
    assert "5 calls [read]\\x1b[2J" in shown.getvalue()


def test_a_file_keeps_its_mode_and_what_leads_to_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept.html"
    kept.write_text("old")
    kept.chmod(0o640)
    (tmp_path / "link.html").symlink_to(kept)
    console.write_text(tmp_path / "link.html", "new")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("new", 0o640)
    with pytest.raises(UnicodeEncodeError):
        console.write_text(kept, "half a pair: \ud800")
    assert kept.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.html", "link.html"]
    console.write_text(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()
