"""
A judgement that was interrupted, as a file from which it goes on.
"""

import json
import os
import sqlite3

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError
from guardrails.offline.judge.tracks import Tracks
from guardrails.offline.readers import Copies
from guardrails.stores.folders import make_private

from .spill import key_bytes


VERSION: Final = 5
TABLE: Final = "CREATE TABLE tracks (side INTEGER, key BLOB, stops INTEGER, track BLOB)"


class CheckpointError(GuardrailsError):
    """
    A checkpoint cannot be read, or is not one of this work.
    """


@dataclass(slots=True, kw_only=True)
class Position:
    """
    The place that the work has reached.
    """

    policies: list[str]
    """Of each policy all that decides, as text."""
    files: list[tuple[str, int]]
    """(path, bytes) in their order."""
    done: int = 0
    """Files that are finished."""
    calls: int = 0
    """Calls of the next file that were read."""
    seconds: float = 0.0
    decisions: bool = False
    """They are written to a file too."""
    written: int = 0
    """Bytes of that file."""
    broken: int = 0
    notices: list[str] = field(default_factory=list)
    read_as: dict[str, str] = field(default_factory=dict)
    """The format that each file was read as that gave calls."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""


def save(
    path: Path, position: Position, judges: Sequence[dict[str, Any]], tracks: Sequence[Tracks], copies: Copies
) -> None:
    """
    Write it all to *path*, or leave what is there as it is.

    Raises CheckpointError if it cannot be written.
    """
    made = path.with_name(f"{path.name}.new")
    try:
        made.unlink(missing_ok=True)
        make_private(made)
        database = sqlite3.connect(made, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("BEGIN")
            database.execute("CREATE TABLE work (version INTEGER, position TEXT, judges TEXT)")
            database.execute("CREATE TABLE copies (said TEXT, older BLOB, newer BLOB)")
            database.execute(TABLE)
            row = (VERSION, json.dumps(asdict(position)), json.dumps(list(judges)))
            database.execute("INSERT INTO work VALUES (?, ?, ?)", row)
            database.execute(
                "INSERT INTO copies VALUES (?, ?, ?)", (json.dumps(copies.to_dict()), *copies.packed_keys())
            )
            for side, kept in enumerate(tracks):
                rows = ((side, key_bytes(key), stops, packed) for key, stops, packed in kept.packed())
                database.executemany("INSERT INTO tracks VALUES (?, ?, ?, ?)", rows)
            database.execute("COMMIT")
        finally:
            database.close()
        os.replace(made, path)  # noqa: PTH105  one step, whatever is there
    except (OSError, sqlite3.Error) as error:
        raise CheckpointError(f"cannot write the checkpoint `{path}`: {error}") from None


def load(path: Path) -> tuple[Position, list[dict[str, Any]]]:
    """
    Returns the position and the figures in *path*.

    Raises CheckpointError if it is no checkpoint of this version.
    """
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            version, position, judges = database.execute("SELECT version, position, judges FROM work").fetchone()
        finally:
            database.close()
        if version != VERSION:
            raise CheckpointError(
                f"`{path}` is a checkpoint of version {version}, this library reads {VERSION}: delete it to begin anew"
            )
        data = json.loads(position)
        data["files"] = [(name, size) for name, size in data["files"]]
        return Position(**data), json.loads(judges)
    except (sqlite3.Error, TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"`{path}` is no checkpoint: {error}") from None


def take_over_copies(path: Path, copies: Copies) -> None:
    """
    Have *copies* go on from the data that `save` wrote.
    """
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        said, older, newer = database.execute("SELECT said, older, newer FROM copies").fetchone()
    finally:
        database.close()
    copies.take_over(json.loads(said), (older, newer))


def packed_tracks(path: Path, side: int) -> Iterator[tuple[bytes, int, bytes]]:
    """
    Returns the open sessions of the policy number *side*, as `SpillingTracks.add_packed` takes them.
    """
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        yield from database.execute("SELECT key, stops, track FROM tracks WHERE side = ?", (side,))
    finally:
        database.close()


def check_same(path: Path, saved: Position, policies: list[str], files: Iterable[tuple[str, int]]) -> None:
    """
    Raises CheckpointError if the checkpoint *path* is of other policies or files. The files that are left may have
    grown.
    """
    if saved.policies != policies:
        raise CheckpointError(f"the checkpoint `{path}` is of another policy; remove it to begin anew")
    given = list(files)
    if [name for name, _ in saved.files] != [name for name, _ in given]:
        raise CheckpointError(f"the checkpoint `{path}` is of other files; remove it to begin anew")
    for number, ((name, before), (_, now)) in enumerate(zip(saved.files, given, strict=True)):
        if now < before or (number < saved.done and now != before):
            raise CheckpointError(f"`{name}` has changed since the checkpoint `{path}`; remove it to begin anew")


def check_decisions(path: Path, saved: Position, decisions: Path | None) -> None:
    """
    Raises CheckpointError if the file *decisions* does not hold the lines that the checkpoint *path* was saved with. It
    would then list only a part of the calls.
    """
    if saved.decisions != (decisions is not None):
        was = "with" if saved.decisions else "without"
        raise CheckpointError(f"the checkpoint `{path}` was saved {was} a file of decisions; remove it to begin anew")
    if decisions is not None and saved.written > (decisions.stat().st_size if decisions.exists() else 0):
        raise CheckpointError(
            f"`{decisions}` is shorter than the checkpoint `{path}` says; remove the checkpoint to begin anew"
        )
