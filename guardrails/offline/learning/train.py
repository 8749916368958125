"""
From records to a model file: counts the calls, learns, and replaces the present model if the new one is better.

`python -m guardrails.offline.learning.train` writes the model that is shipped, after a change of the beliefs or features.
"""

import os

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from guardrails.core.values.errors import ModelError, NothingFoundError, TrainingError
from guardrails.offline.transcripts.inputs import SHOWN, what_is_read
from guardrails.policy.models import COLD, cold_model, read_model

from .learn import HALF_LIFE_DAYS, Learned, learn, shipped_text
from .rows import Progress, read


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """
    The outcome of a training.
    """

    output: Path
    learned: Learned
    written: bool
    """The model file is the new one."""
    files: int
    """Files that gave calls."""
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the same for another program.
        """
        learned = self.learned
        return {
            "output": str(self.output),
            "written": self.written,
            "better": learned.better,
            "unchanged": learned.unchanged,
            "model": learned.model.name,
            "present": learned.present,
            "files": self.files,
            "failures": learned.facts.failures,
            "retries": learned.model.body["training"]["retries"],
            "days": learned.facts.days,
            "bytes": len(learned.text),
            "verdict": learned.retries and learned.retries.to_dict(),
            "corrections": learned.corrections and learned.corrections.to_dict(),
            "notes": self.notes,
        }


def train(
    records: Iterable[str | PathLike[str]],
    output: Path,
    *,
    half_life_days: float = HALF_LIFE_DAYS,
    master: str | None = None,
    dry_run: bool = False,
    force: bool = False,
    progress: Progress = lambda done, what: None,
) -> Trained:
    """
    Learn from *records* and write the model to *output* if it is better than the one there. With *force* it is always
    written, with *dry_run* never.

    With *master*, Spark reads and counts. The file is replaced at once: a reader finds the old model or the new one.

    Raises NothingFoundError, a TrainingError, if there are no failed calls. Raises TrainingError if they teach nothing,
    OSError if a file cannot be read or written.
    """
    records = list(records)
    if master is None:
        found = read(records, progress)
    else:
        from .spark import read_on_spark

        found = read_on_spark(master, map(str, records))
    present, notes = None, list(found.notices)
    try:
        present = read_model(output)
    except FileNotFoundError:
        pass
    except ModelError as error:
        notes.append(f"the present model `{output}` cannot be used: {error}")
    try:
        learned = learn(found.facts, cold_model(), present, half_life_days=half_life_days, force=force)
    except TrainingError as error:
        # Why there is nothing may be that nothing could be read.
        said = [
            str(error),
            *found.notices[:SHOWN],
            *([] if found.files else [what_is_read(() if found.notices else records)]),
        ]
        raise (TrainingError if found.facts.counts else NothingFoundError)("; ".join(said)) from None
    written = (learned.better or force) and not dry_run
    if written:
        write(output, learned.text)
    return Trained(output=output, learned=learned, written=written, files=found.files, notes=[*notes, *learned.notes])


def write(path: Path, text: bytes) -> None:
    """
    Replace the file *path* at once: a reader finds all of the old or all of the new. Raises OSError; then the old one
    stays.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


if __name__ == "__main__":
    write(COLD, shipped_text())
