"""
The folder of daily cells: what was counted already, so that no record is read twice.

    ledger.json       which files were read how far, and which of the files below count
    part-000001.*     cells of one run, by day
    copies-000001.*   what the calls of transcripts are known by, so that no copy of one is counted
    carry-000001.*    the latest calls of sessions that may go on
    work/             the run under way; what it has finished is not done again after a kill
    lock

The ledger is replaced at once and last: a run that was killed has changed nothing.
"""

import json
import os
import shutil

from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import TrainingError
from guardrails.offline.readers import Copies

from .locks import alone


FORMAT: Final = "guardrails.cells"
VERSION: Final = 1
MOST_PARTS: Final = 32
"""Parts from which on they are made one."""


@dataclass(slots=True)
class Ledger:
    """
    The content of a folder of cells.
    """

    spec: str
    """Digest of the feature specification that the codes are of."""
    read: dict[str, list[Any]] = field(default_factory=dict)
    """Path, and bytes that were read, of each file by its identity."""
    parts: list[str] = field(default_factory=list)
    carry: str | None = None
    newest_ms: int = 0
    """Latest end of a call."""
    runs: int = 0
    copies: str | None = None
    """The file of the keys of calls in transcripts, by which copies are known."""

    def name(self, what: str) -> str:
        """
        Returns the name of a file of the next run.
        """
        return f"{what}-{self.runs + 1:06d}.parquet"


class CellFolder:
    """
    The folder *path*, made if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "work"
        path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """
        Be the only one who counts into this folder. Raises TrainingError if another process counts.
        """
        with alone(self.path / "lock", self.path):
            yield

    def ledger(self, spec: str) -> Ledger:
        """
        Returns the cells that were counted by the specification of digest *spec*. Returns an empty ledger if there is
        no file.

        Raises TrainingError if it is not readable, or of another specification.
        """
        path = self.path / "ledger.json"
        try:
            said = json.loads(path.read_bytes())
        except FileNotFoundError:
            return Ledger(spec)
        except ValueError as error:
            raise TrainingError(
                f"`{path}` cannot be read ({error}): delete the folder to count all records anew"
            ) from None
        if not isinstance(said, dict) or said.get("format") != FORMAT or said.get("version") != VERSION:
            raise TrainingError(f"`{path}` is not of version {VERSION}: delete the folder to count all records anew")
        if said["spec"] != spec:
            raise TrainingError(
                f"`{self.path}` was counted by the features {said['spec']}, these are {spec}: name another folder, or"
                " delete this one to count all records anew"
            )
        return Ledger(
            spec,
            said["read"],
            said["parts"],
            said["carry"],
            said["newest_ms"],
            runs=said["runs"],
            copies=said.get("copies"),
        )

    def commit(self, ledger: Ledger) -> None:
        """
        Let *ledger* count from now on, and delete the files that it does not name. Raises OSError; then the old one
        counts.
        """
        said: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "spec": ledger.spec,
            "read": ledger.read,
            "parts": ledger.parts,
            "carry": ledger.carry,
            "newest_ms": ledger.newest_ms,
            "runs": ledger.runs,
            "copies": ledger.copies,
        }
        new = self.path / "ledger.json.new"
        with new.open("w", encoding="utf-8") as file:
            json.dump(said, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / "ledger.json")
        kept = {*ledger.parts, ledger.carry, ledger.copies}
        for path in (*self.path.glob("*.parquet"), *self.path.glob("copies-*.json")):
            if path.name not in kept:
                path.unlink(missing_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)

    def copies(self, ledger: Ledger) -> Copies:
        """
        Returns the calls in transcripts that *ledger* knows. Raises TrainingError if its file cannot be read.
        """
        copies = Copies()
        if ledger.copies is not None:
            path = self.path / ledger.copies
            try:
                said = json.loads(path.read_bytes())
                older, newer = (b64decode(keys) for keys in said.pop("keys"))
                copies.take_over(said, (older, newer))
            except (OSError, ValueError, KeyError) as error:
                raise TrainingError(
                    f"`{path}` cannot be read ({error}): delete the folder to count all records anew"
                ) from None
        copies.left_out = 0
        return copies

    def keep(self, copies: Copies, ledger: Ledger) -> None:
        """
        Write the calls that *copies* knows into a file that *ledger* names from now on. Raises OSError.
        """
        ledger.copies = f"copies-{ledger.runs:06d}.json"
        keys = [b64encode(keys).decode() for keys in copies.packed_keys()]
        (self.path / ledger.copies).write_text(json.dumps({**copies.to_dict(), "keys": keys}), encoding="utf-8")

    def begin(self, plan: dict[str, Any]) -> None:
        """
        Make room for the run *plan*. The work of an interrupted run of the same plan stays.
        """
        path = self.work / "plan.json"
        text = json.dumps(plan, sort_keys=True)
        with suppress(OSError):
            if path.read_text(encoding="utf-8") == text:
                return
        shutil.rmtree(self.work, ignore_errors=True)
        # It holds copies of records.
        self.work.mkdir(mode=0o700, parents=True)
        path.write_text(text, encoding="utf-8")

    def planned(self) -> dict[str, Any] | None:
        """
        Returns the plan of an interrupted run. Returns None if there is none.
        """
        try:
            said = json.loads((self.work / "plan.json").read_bytes())
        except (OSError, ValueError):
            return None
        return said if isinstance(said, dict) else None
