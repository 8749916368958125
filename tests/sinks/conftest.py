"""
What the tests of sinks share: a file, and the numbers in it.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails.sinks import ReadReport, json_lines, read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@pytest.fixture
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Records are written when a test says so, however slow the machine is.
    """
    monkeypatch.setattr(json_lines, "INTERVAL_S", 3_600)


def numbers(path: Path, key: str = "n") -> list[Any]:
    report = ReadReport()
    found = [record[key] for record in read(path, report)]
    assert report.broken == []
    return found
