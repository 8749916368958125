"""
Sessions of the OpenAI Agents SDK.
"""

import json
import sqlite3

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guardrails.offline.readers import RecordedCall, Report, open_calls


TABLE = """CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
    message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"""


def calls_of(path: Path) -> tuple[list[RecordedCall], Report]:
    report = Report()
    return list(open_calls(path, report)), report


@pytest.fixture
def database(tmp_path: Path, files: Path) -> Iterator[sqlite3.Connection]:
    """
    The rows that the SDK has stored, in a table as it makes it.
    """
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY)")
        made.execute(TABLE)
        for row in json.loads((files / "agents_session.json").read_text()):
            made.execute("INSERT INTO agent_messages VALUES (:id, :session_id, :message_data, :created_at)", row)
        made.commit()
        yield made


def test_rows_of_a_session_give_calls_with_turns_and_the_words_of_the_sdk_for_a_failure(read: Any) -> None:
    calls, report = read("agents_session.json")
    assert [(c.session_id, c.call_index, c.tool, c.turn, c.is_error) for c in calls] == [
        ("trip-42", 0, "weather", 1, False),
        ("trip-42", 1, "weather", 1, True),
        ("trip-42", 2, "weather", 2, False),
        ("trip-42", 3, "weather", 2, True),
        ("trip-42", 4, "rates", 3, False),
        ("trip-42", 5, "rates", 4, True),
    ]
    assert calls[0].arguments == {"city": "Kyoto"}
    assert calls[0].result == "Kyoto: rain"
    assert {(c.model, c.ts_ms) for c in calls} == {("gpt-5-mini", 1_795_434_217_000)}
    assert report.notices == []


def test_a_database_gives_what_its_rows_give(database: sqlite3.Connection, read: Any, tmp_path: Path) -> None:
    expected = [(c.id, c.tool, c.result, c.is_error, c.turn, c.ts_ms) for c in read("agents_session.json")[0]]
    path = tmp_path / "sessions.db"
    assert [(c.id, c.tool, c.result, c.is_error, c.turn, c.ts_ms) for c in calls_of(path)[0]] == expected, "still open"
    database.close()
    before = sorted(tmp_path.iterdir())
    calls, report = calls_of(path)
    assert [(c.id, c.tool, c.result, c.is_error, c.turn, c.ts_ms) for c in calls] == expected
    assert {c.source for c in calls} == {"sessions.db"}
    assert sorted(tmp_path.iterdir()) == before == [path], "nothing is left beside it"
    assert report.notices == []


@pytest.mark.parametrize(
    "instead",
    [
        "ALTER TABLE agent_messages RENAME COLUMN message_data TO other",
        "DROP TABLE agent_messages; CREATE VIEW agent_messages AS SELECT 1 session_id, '{}' message_data, 2 created_at",
        """DROP TABLE agent_messages; CREATE TABLE agent_messages (session_id TEXT, created_at TEXT,
        message_data TEXT AS (hex(zeroblob(100000000))))""",
    ],
)
def test_a_database_of_another_program_or_one_that_computes_is_left_out(
    database: sqlite3.Connection, tmp_path: Path, instead: str
) -> None:
    database.executescript(instead)
    database.close()
    calls, report = calls_of(tmp_path / "sessions.db")
    assert calls == []
    assert "skipped: it holds no calls in a form that can be read (an SQLite database" in report.notices[0]


def test_tables_of_other_names_are_read_too(database: sqlite3.Connection, tmp_path: Path) -> None:
    database.execute('ALTER TABLE agent_messages RENAME TO "my ""own"" items"')
    database.close()
    assert len(calls_of(tmp_path / "sessions.db")[0]) == 6


def test_a_damaged_database_is_told_and_stops_nothing(database: sqlite3.Connection, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    database.close()
    data = path.read_bytes()
    for size in (16, 100, 4096, 8192):
        path.write_bytes(data[:size])
        _, report = calls_of(path)
        assert report.notices
    for at in range(0, len(data), 700):
        path.write_bytes(data[:at] + b"\xff" * 600 + data[at + 600 :])
        assert len(calls_of(path)[0]) <= 6


def test_what_is_no_item_in_a_row_is_counted_or_passed_over(read: Any) -> None:
    row = {"id": 1, "session_id": "s", "message_data": "{", "created_at": "2026-11-23 11:43:37"}
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    rows = [row, {**row, "message_data": "7"}, {**row, "session_id": 7, "message_data": json.dumps(item)}]
    calls, report = read(json.dumps(rows))
    assert [(c.session_id, c.tool, c.has_result) for c in calls] == [("7", "look", False)]
    assert report.broken_count == 1
