"""
From records to a model file: counts the calls, learns, and replaces the present model if the new one is better.
"""

import os

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from guardrails.core.retries.decision import Stakes
from guardrails.core.retries.model import RetryModel
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import ModelError, NothingFoundError, TrainingError
from guardrails.offline.learning.rows.cells import HALF_LIFE_DAYS, UNDATED
from guardrails.offline.learning.rows.counting import Progress
from guardrails.offline.learning.rows.split import shown
from guardrails.offline.transcripts.inputs import SHOWN, what_is_read
from guardrails.policy.models import read_model, shipped_spec

from .extract import extract
from .learn import Learned, learn


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
            "model": learned.new.model.name,
            "present": learned.present,
            "files": self.files,
            "failures": round(learned.failures, 3),
            "retries": round(learned.labelled, 3),
            "days": learned.days,
            "held_out_day": None if learned.day == UNDATED else shown(learned.day),
            "held_out_from": None if learned.first_day == UNDATED else shown(learned.first_day),
            "coefficients": learned.new.fitted.coefficients,
            "bytes": len(learned.new.text),
            "chosen_terms": learned.chosen,
            "verdict": None if learned.verdict is None else learned.verdict.to_dict(),
            "corrections": None if learned.corrected is None else learned.corrected.to_dict(),
            "skew": {"logged": learned.logged, "differing": learned.skewed, "share": learned.skew},
            "drifts": [drift._asdict() for drift in learned.drifts],
            "notes": self.notes,
        }


def train(
    records: Iterable[str | PathLike[str]],
    output: Path,
    *,
    spec: FeatureSpec | None = None,
    stakes: Stakes | None = None,
    half_life_days: float = HALF_LIFE_DAYS,
    whole_by: str | None = None,
    master: str | None = None,
    dry_run: bool = False,
    force: bool = False,
    progress: Progress = lambda done, total, what: None,
) -> Trained:
    """
    Learn from *records* and write the model to *output* if it is better than the one there. With *force* it is always
    written, with *dry_run* never.

    With *master*, Spark counts. The file is replaced at once: a reader finds the old model or the new one.

    Raises NothingFoundError, a TrainingError, if there are no failed calls. Raises TrainingError if they teach nothing,
    OSError if a file cannot be read or written.
    """
    spec = spec or shipped_spec()
    found = extract(records, spec=spec, whole_by=whole_by, master=master, progress=progress)
    present, notes = _present(output)
    try:
        learned = learn(spec, found.cells, present, stakes=stakes, half_life_days=half_life_days, force=force)
    except TrainingError as error:
        # Why there is nothing may be that nothing could be read.
        said = [str(error), *found.notices[:SHOWN]]
        if len(found.notices) > SHOWN:
            said.append(f"and {len(found.notices) - SHOWN:,} more notices")
        if not found.files:
            said.append(what_is_read(records if not found.without else ()))
        raise (TrainingError if found.cells else NothingFoundError)("; ".join(said)) from None
    written = (learned.better or force) and not dry_run
    if written:
        write(output, learned.new.text)
    return Trained(
        output=output,
        learned=learned,
        written=written,
        files=found.files,
        notes=[*found.notices, *notes, *learned.notes],
    )


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
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    # The file is there; that its name is, too, after a power cut, not every system can promise.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _present(output: Path) -> tuple[RetryModel | None, list[str]]:
    try:
        return read_model(output), []
    except FileNotFoundError:
        return None, []
    except ModelError as error:
        return None, [f"the present model `{output}` cannot be used: {error}"]
