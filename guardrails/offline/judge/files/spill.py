"""
Open sessions of which only so many are in memory; the others wait, packed, in a temporary database.
"""

import json
import sqlite3
import tempfile

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Self

from guardrails.core.values.errors import GuardrailsError
from guardrails.offline.judge.track import LensOf, Track, track_of
from guardrails.offline.judge.tracks import Key, busiest


OPEN: Final = 100_000
"""Sessions that are kept in memory."""
BATCH: Final = 100
"""One part in so many is put out at a time."""
CACHE: Final = "cache_size = -65536"
"""64 MiB of the database in memory."""
SCHEMA: Final = "CREATE TABLE IF NOT EXISTS tracks (key BLOB PRIMARY KEY, stops INTEGER, track BLOB) WITHOUT ROWID"


class SpillError(GuardrailsError):
    """
    There is no room for the sessions that are put out of memory.
    """


class SpillingTracks:
    """
    At most *limit* sessions in memory, among them those that were called last. A context manager: leaving it removes the
    database.
    """

    def __init__(self, limit: int = OPEN) -> None:
        self._limit = limit
        self._open: dict[Key, Track] = {}
        """In the order in which they were called last."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._database: sqlite3.Connection | None = None
        self._taken_over = 0

    @property
    def spilled(self) -> int:
        if self._database is None:
            return 0
        return -self._taken_over + int(self._database.execute("SELECT count(*) FROM tracks").fetchone()[0])

    def get(self, key: Key, lens_of: LensOf) -> Track | None:
        track = self._open.pop(key, None)
        if track is None and self._database is not None:
            found = self._database.execute("SELECT track FROM tracks WHERE key = ?", (key_bytes(key),)).fetchone()
            track = None if found is None else track_of(found[0], lens_of)
        if track is not None:
            self.put(key, track)
        return track

    def in_memory(self) -> Iterable[Key]:
        """
        Returns the keys of those in memory.
        """
        return self._open.keys()

    def put(self, key: Key, track: Track) -> None:
        self._open[key] = track
        if len(self._open) > self._limit:
            self._put_out(max(1, self._limit // BATCH))

    def add_packed(self, rows: Iterator[tuple[bytes, int, bytes]]) -> None:
        """
        Take over (`key_bytes`, stops, track) as a database holds them.
        """
        before = self.spilled
        self._write(rows)
        self._taken_over += self.spilled - before

    def busiest(self, most: int, lens_of: LensOf) -> list[tuple[Key, Track]]:
        found = dict(busiest(self._open.items(), most))
        rows = (
            ()
            if self._database is None
            else self._database.execute(
                "SELECT key, track FROM tracks WHERE stops > 0 ORDER BY stops DESC, key LIMIT ?", (most + len(found),)
            )
        )
        for packed_key, packed in rows:
            key = key_of(packed_key)
            if key not in self._open:
                found[key] = track_of(packed, lens_of)
        return busiest(found.items(), most)

    def packed(self) -> Iterator[tuple[Key, int, bytes]]:
        if self._database is not None:
            for packed_key, stops, packed in self._database.execute("SELECT key, stops, track FROM tracks"):
                key = key_of(packed_key)
                if key not in self._open:
                    yield key, stops, packed
        for key, track in self._open.items():
            yield key, track.stop_count, track.to_bytes()

    def close(self) -> None:
        """
        Forget all sessions.
        """
        self._open.clear()
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put_out(self, count: int) -> None:
        # The oldest are those that a round over all sessions comes to next; what was called last may still go on.
        begin = (len(self._open) - count) // 2
        chosen = list(islice(self._open.items(), begin, begin + count))
        self._write((key_bytes(key), track.stop_count, track.to_bytes()) for key, track in chosen)
        for key, _ in chosen:
            del self._open[key]

    def _write(self, rows: Iterator[tuple[bytes, int, bytes]]) -> None:
        if self._database is None:
            self._folder = tempfile.TemporaryDirectory(prefix="guardrails-")
            # Nothing of it outlives the process or is seen by another: no journal, no waiting for the disk, no locks.
            self._database = sqlite3.connect(Path(self._folder.name) / "sessions.db", isolation_level=None)
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", CACHE):
                self._database.execute(f"PRAGMA {pragma}")
            self._database.execute(SCHEMA)
        database = self._database
        try:
            database.execute("BEGIN")
            database.executemany("INSERT OR REPLACE INTO tracks VALUES (?, ?, ?)", rows)
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise SpillError(
                f"open sessions cannot be put into a temporary database: {error}; `TMPDIR` names a folder with more room"
            ) from None


def key_bytes(key: Key) -> bytes:
    """
    Returns a key as a database holds it, for any name that a transcript gives its sessions.
    """
    return json.dumps(key).encode()


def key_of(packed: bytes) -> Key:
    """
    Returns the key that `key_bytes` made this of.
    """
    source, session_id, run = json.loads(packed)
    return source, session_id, run
