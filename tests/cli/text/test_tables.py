"""
Tables fit the terminal: its words are wrapped; plain if it is asked for.
"""

import os
import subprocess
import sys

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.cli.text import printing


ROWS = [["tool", "calls", "failed", "retry ok", "repeat"], ["search", "117", "42.7 %", "1 of 3", "0 %"]]
CELL = st.text("abc 1%", max_size=9)


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_no_line_of_a_table_is_wider_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    shown = printing.table(ROWS)
    assert max(map(len, shown.splitlines())) <= columns
    assert {word for row in ROWS for cell in row for word in cell.split()} <= set(shown.split())


@given(
    st.integers(40, 120),
    st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1)),
)
def test_whatever_is_in_the_cells_it_fits_and_nothing_is_lost(columns: int, rows: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        shown = printing.table(rows)
        assert max(map(len, shown.splitlines()), default=0) <= columns
        joined = "".join(shown.split())
        assert all(cell.strip()[:1] in joined for row in rows[1:] for cell in row)


@pytest.mark.system
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    "words", [("explain", "budget.max_calls"), ("policy", "show", "default"), ("--help",)], ids=" ".join
)
@pytest.mark.parametrize(("color", "styled"), [("1", False), ("", True)])
def test_on_a_terminal_no_color_means_no_escape_sequence(words: tuple[str, ...], color: str, styled: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": color, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-m", "guardrails", *words], stdout=theirs, stderr=theirs, env=environment
    ) as started:
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:
            pass  # the other end is closed
        assert started.wait(60) == 0
    os.close(ours)
    assert said
    if not styled:
        assert b"\x1b" not in said
    elif words[0] == "explain":
        assert b"\x1b[1m" in said
