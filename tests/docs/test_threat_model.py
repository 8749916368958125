"""
The threat model: each threat says what stops it, what is left, and a test that shows it.
"""

import re

from pathlib import Path

from tests.tables import table


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/threat-model.md"
HEAD = "| threat | what stops it | what is left | shown by |"


def rows() -> list[list[str]]:
    """
    The cells of each threat.
    """
    table = PAGE.read_text().split(HEAD)[1].split("\n\n")[0].strip().splitlines()[1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in table]


@table("row", rows())
def test_each_threat_says_what_stops_it_and_what_is_left(row: list[str]) -> None:
    assert len(row) == 4
    assert all(row)


@table("row", rows())
def test_each_is_shown_by_tests_that_are_there(row: list[str]) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[3])
    assert named
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"{file} has no {test}"


def test_who_finds_a_hole_is_told_how_to_report_it() -> None:
    said = (ROOT / "SECURITY.md").read_text()
    assert "docs/threat-model.md" in said
    assert "SECURITY.md" in PAGE.read_text()
