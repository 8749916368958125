"""
The memory tools: notes in a file, whatever befalls it.
"""

import sqlite3

from pathlib import Path
from typing import Any

import pytest

from guardrails import Envelope
from guardrails.agent import builtin as module
from guardrails.agent.builtin import Memory, builtin_tools
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
    assert write(file, "color", "blue") == {"key": "color", "created": True}
    assert file.stat().st_mode & 0o777 == 0o600
    assert write(file, "color", "grün", at=2.0)["created"] is False
    assert read(file).value == [{"key": "color", "text": "grün", "changed_ms": 2_000}]
    assert write(file, "color", "") == {"key": "color", "deleted": True}
    assert read(file).value == []


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
    few = read(file, limit=2)
    assert (few.is_complete, few.total_matches, len(read(file).value)) == (False, 5, 1)
    assert read(file, "k0").is_complete


def test_keys_texts_and_their_number_are_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NOTES", 1)
    assert write(file, "one", "x")["created"]
    assert write(file, "two", "x").error_type == "too_large"
    assert write(file, "one", "y")["created"] is False
    tools = builtin_tools(file.parent, memory=file, shell=False, web=False)
    for key, text in (("", "x"), ("k" * 257, "x"), ("k", "x" * 65_537)):
        assert tools.execute("memory_write", {"key": key, "text": text}).status == "validation_error"


def test_a_file_that_cannot_be_used_is_an_error_and_nothing_is_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    write(file, "k", "x")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert write(file, "k", "y").error_type == "unavailable"
    other.execute("ROLLBACK")
    other.close()
    assert read(file).value[0]["text"] == "x"
    assert read(file.with_name("none") / "x").error_type == "not_found"
    file.write_bytes(b"no database at all" * 100)
    assert read(file).error_type == "other"
