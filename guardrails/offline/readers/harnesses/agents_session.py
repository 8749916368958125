"""
Sessions of the OpenAI Agents SDK: the SQLite database of `SQLiteSession`, or its rows as JSON (`sqlite3 -json`).

A row holds an item of the Responses API as text, the session's id, and when it was stored, in seconds. A call's model and response stand with
it if the SDK called chat completions. The format has no flag for a failure: the SDK's own words for one are known to the
judgement of texts. The database is opened to be read only, and no more of it than a row is held in memory.
"""

import sqlite3

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import orjson

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import mapping, objects, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import MAX_LINE, parse_exactly, parsed_values
from guardrails.offline.readers.transcripts.openai_responses import Items


MAGIC: Final = b"SQLite format 3\0"
_COLUMNS: Final = ("session_id", "message_data", "created_at")
_WAL: Final = 2
_JOURNAL_AT: Final = 18
"""The byte of a database's header that says how it is written."""


class AgentsSession:
    """
    The data that `SQLiteSession` keeps.
    """

    name = "openai agents session"
    whole = True

    def recognises(self, head: str) -> bool:
        values = leading_values(head)
        first = values[0] if values else None
        return any(map(_is_row, (first if type(first) is list else values)[:3]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        items = Items(source)
        for number, value in parsed_values(lines, report, file):
            if type(value) not in (dict, list):
                report.broke(file, number)
            for row in objects(value if type(value) is list else [value]):
                try:
                    item = mapping(
                        parse_exactly((text(row.get("message_data")) or "").encode("utf-8", "surrogatepass"))
                    )
                except ValueError:
                    report.broke(file, number)
                    continue
                session_id = row.get("session_id")
                named = str(session_id) if type(session_id) in (str, int) and session_id != "" else file
                yield from items.add(item, named, time_ms(row.get("created_at")))
        yield from items.rest()


def _is_row(value: Any) -> bool:
    row = mapping(value)
    return type(row.get("message_data")) is str and "session_id" in row


def session_rows(path: Path, report: Report, file: str) -> Iterator[bytes] | None:
    """
    Returns the rows of the database at *path*, each as a line of JSON. Returns None if it holds no such sessions or
    cannot be opened.
    """
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?{_how(path)}", uri=True)
    except sqlite3.Error:
        return None

    try:
        # What a database says of itself may not run.
        database.executescript("PRAGMA trusted_schema=OFF; PRAGMA query_only=ON; PRAGMA cell_size_check=ON")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE)
        database.text_factory = bytes
        tables = [name for name in _tables(database) if _holds_items(database, name)]
    except sqlite3.Error:
        tables = []
    if not tables:
        database.close()
        return None
    return _rows(database, tables, report, file)


def _how(path: Path) -> str:
    """
    A database that no program has open is read without a file beside it.
    """
    with path.open("rb") as file:
        header = file.read(_JOURNAL_AT + 1)
    log = path.with_name(f"{path.name}-wal")
    is_still = header[_JOURNAL_AT:] == bytes([_WAL]) and not (log.is_file() and log.stat().st_size)
    return "mode=ro&immutable=1" if is_still else "mode=ro"


def _tables(database: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    return [name.decode("utf-8", "replace") for (name,) in database.execute(query)]


def _holds_items(database: sqlite3.Connection, table: str) -> bool:
    """
    Whether *table* has the columns, none of which is computed.
    """
    known = database.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    plain = {bytes(name).decode("utf-8", "replace") for _, name, _, _, _, _, hidden in known if not hidden}
    return plain.issuperset(_COLUMNS)


def _rows(database: sqlite3.Connection, tables: list[str], report: Report, file: str) -> Iterator[bytes]:
    with closing(database):
        for table in tables:
            try:
                query = f"SELECT session_id, message_data, created_at FROM {_quoted(table)} ORDER BY rowid"  # noqa: S608  quoted
                for values in database.execute(query):
                    yield orjson.dumps(dict(zip(_COLUMNS, map(_value, values), strict=True)))
            except sqlite3.Error as error:
                report.note(file, f"the database cannot be read further ({error}); what stands before is read")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _value(value: Any) -> Any:
    if type(value) is bytes:
        return value.decode("utf-8", "replace")
    return value if type(value) in (int, float) else None
