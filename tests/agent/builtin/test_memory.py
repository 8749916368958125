"""
The memory tools: notes in a file, whatever befalls it.
"""

import os
import sqlite3

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope
from guardrails.agent.builtin import Memory
from guardrails.agent.builtin import memory as module
from tests.tables import table


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def write(file: Path, key: str, text: str, at: float = 1.0) -> Any:
    return Memory(file, clock=lambda: at).tools["memory_write"](key, text)


def read(file: Path, query: str = "", limit: int = 20) -> Envelope:
    said = Memory(file).tools["memory_read"](query, limit)
    assert isinstance(said, Envelope)
    return said


def test_d10_memory_read_gives_what_another_session_wrote_by_memory_write(file: Path) -> None:
    assert write(file, "color", "blue") == {"key": "color", "bytes": 4, "created": True}
    assert write(file, "color", "grün", at=2.0)["created"] is False
    assert read(file).value == [{"key": "color", "text": "grün", "changed_ms": 2_000}]
    assert write(file, "color", "") == {"key": "color", "deleted": True}
    assert read(file).value == []


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_the_notes_are_their_owners_alone(file: Path) -> None:
    write(file, "color", "blue")
    assert file.stat().st_mode & 0o777 == 0o600


@table(
    ("query", "keys"),
    [("", ["c_d", "b%", "a"]), ("%", ["b%"]), ("_", ["c_d"]), ("ONE", ["a"]), ("' OR 1=1 --", []), ("\\", [])],
)
def test_notes_are_found_by_what_they_hold(file: Path, query: str, keys: list[str]) -> None:
    for at, (key, text) in enumerate([("a", "one"), ("b%", "two"), ("c_d", "three")]):
        write(file, key, text, at)
    assert [note["key"] for note in read(file, query).value] == keys


def test_what_is_not_shown_is_said(file: Path) -> None:
    for number in range(5):
        write(file, f"k{number}", "x" * 30_000, number)
    assert read(file, limit=2).is_complete is False
    assert read(file, limit=2).total_matches == 5
    assert len(read(file).value) == 1
    assert read(file, "k0").is_complete


def test_keys_texts_and_their_number_are_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write(file, " ", "x").error_type == "validation"
    assert write(file, "k" * 257, "x").error_type == "validation"
    assert write(file, "k", "x" * 65_537).error_type == "too_large"
    monkeypatch.setattr(module, "MAX_NOTES", 1)
    write(file, "one", "x")
    assert write(file, "two", "x").error_type == "too_large"
    assert write(file, "one", "y")["created"] is False


def test_a_locked_file_is_unavailable_and_nothing_is_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUSY_S", 0.05)
    write(file, "k", "x")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert write(file, "k", "y").error_type == "unavailable"
    other.execute("ROLLBACK")
    other.close()
    assert read(file).value[0]["text"] == "x"


def test_a_damaged_file_and_a_missing_folder_are_errors(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"no database at all" * 100)
    assert read(tmp_path / "bad").error_type == "other"
    assert read(tmp_path / "none/x").error_type == "unavailable"
