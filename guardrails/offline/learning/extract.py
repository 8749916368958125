"""
From records to cells: the calls of all files are counted, by day.
"""

import tempfile
import time

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final

from guardrails.core.records.record import SCHEMA_VERSION
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.rows.cells import DAY_MS, KEYS, UNDATED, Cell, apart_from
from guardrails.offline.learning.rows.counting import Group, Progress, Run, count
from guardrails.offline.learning.rows.duck import MEMORY_MB, Duck, cells_of, merged_text, rows_text
from guardrails.offline.learning.rows.sources import Source, sources
from guardrails.offline.learning.rows.transcripts import convert
from guardrails.offline.transcripts import Copies, Report
from guardrails.offline.transcripts.files import open_lines
from guardrails.policy.models import shipped_spec


COPY_BYTES: Final = 1 << 20


@dataclass(slots=True)
class Extracted:
    """
    The cells of all files, and what was met on the way.
    """

    cells: list[Cell]
    """Of every day, the newest ones kept apart by groups of sessions; see `cells.decayed`."""
    newest_day: int
    """UTC days since 1970 of the newest call; `UNDATED` where none has a time."""
    files: int = 0
    """Files that gave calls."""
    notices: list[str] = field(default_factory=list)
    """Sentences for a person."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""


def extract(
    paths: Iterable[str | PathLike[str]],
    *,
    spec: FeatureSpec | None = None,
    whole_by: str | None = None,
    master: str | None = None,
    memory_mb: int = MEMORY_MB,
    progress: Progress = lambda done, total, what: None,
) -> Extracted:
    """
    Returns the cells of the calls in *paths* (files and folders).

    It reads this library's records, as JSON lines or Parquet, and every format of `transcripts`. The column *whole_by*
    partitions Parquet folders (`bucket=0/`, ...) by whole sessions, which spares a sort. With *master*, Spark counts
    Parquet records there.

    Raises TrainingError if a path is not there. Raises OSError if a file cannot be read.
    """
    spec = spec or shipped_spec()
    report = Report()
    found = sources(paths, report)
    made = Extracted([], UNDATED, notices=report.notices, without=report.without)
    if found:
        with tempfile.TemporaryDirectory(prefix="guardrails-") as folder:
            work = Path(folder)
            with Duck(work / "spill", memory_mb) as duck:
                try:
                    _count(duck, work, spec, found, made, spread=(whole_by, master, progress))
                except duck.failed as error:
                    raise TrainingError(f"the records cannot be counted: {error}") from error
    made.files = sum(source.path not in made.without for source in found)
    return made


def _count(
    duck: Duck,
    work: Path,
    spec: FeatureSpec,
    found: Sequence[Source],
    made: Extracted,
    *,
    spread: tuple[str | None, str | None, Progress],
) -> None:
    """
    Count the calls of *found* into the cells of *made*. *spread*: features, computer and listener of the count.
    """
    whole_by, master, progress = spread
    copies = Copies()
    staged = [path for index, source in enumerate(found) if (path := _staged(duck, work, index, source, made, copies))]
    made.notices += copies.notices()
    parquet = [source.path for source in found if source.kind == "parquet"]
    groups = [Group(tuple(map(str, staged)), staged=True)] if staged else []
    groups += [Group(tuple(files), staged=False) for files in _whole(parquet, whole_by)]
    run = Run(spec, groups, work, latest_ms=int(time.time() * 1000) + DAY_MS, progress=progress)
    if master is not None:
        from guardrails.offline.learning.rows.spark import count_on_spark

        counted = count_on_spark(master, run)
    else:
        counted = count(duck, run)
    made.newest_day = counted.newest_ms // DAY_MS if counted.newest_ms else UNDATED
    duck.view("parts", counted.cells)
    made.cells = cells_of(duck.sql(f"{merged_text('parts', apart_from(made.newest_day))} ORDER BY {', '.join(KEYS)}"))


def _whole(parquet: Sequence[str], whole_by: str | None) -> list[list[str]]:
    """
    *parquet* in groups that hold whole sessions.
    """
    groups: dict[str, list[str]] = {}
    for path in parquet:
        folder = next((part for part in Path(path).parts if whole_by and part.startswith(f"{whole_by}=")), "")
        groups.setdefault(folder, []).append(path)
    return list(groups.values())


def _staged(duck: Duck, work: Path, index: int, source: Source, made: Extracted, copies: Copies) -> Path | None:
    """
    The Parquet file of the rows of a source that is none itself.
    """
    if source.kind == "parquet":
        return None
    to = work / f"rows-{index}.parquet"
    if source.kind == "transcript":
        report = Report()
        new = to.with_name("rows.new")
        convert(source.path, new, report, copies)
        made.notices += report.notices
        made.without |= report.without
        duck.view("input", [new])
        duck.write("SELECT *, 0 AS bad FROM input", to)
        new.unlink()
        return to
    copy = work / "lines.jsonl"
    lines = _lines(source, copy)
    duck.write(rows_text(duck.view_lines(str(lines))), to)
    if lines != copy and lines.stat().st_size != source.end:
        # It was appended to meanwhile: the last line may be a half.
        lines = _copied(source, copy)
        duck.write(rows_text(duck.view_lines(str(lines))), to)
    duck.view("staged", [to])
    for bad, told in ((1, "that are no records"), (2, "of a schema version that is not known")):
        (number,) = duck.one(f"SELECT count(*) FROM staged WHERE bad = {bad}")  # noqa: S608
        if number:
            reads = (
                f" (this library reads schema version {SCHEMA_VERSION}; upgrade it for newer ones)" if bad > 1 else ""
            )
            made.notices.append(f"`{source.path}`{reads}: {number} lines {told} are skipped")
    copy.unlink(missing_ok=True)
    return to


def _lines(source: Source, to: Path) -> Path:
    """
    Returns a file of exactly the lines of *source*: itself, if they are all of it.
    """
    path = Path(source.path)
    if source.kind == "packed records":
        with to.open("wb") as out:
            out.writelines(line + b"\n" for line in open_lines(path, Report()))
        return to
    return path if path.stat().st_size == source.end else _copied(source, to)


def _copied(source: Source, to: Path) -> Path:
    with Path(source.path).open("rb") as file, to.open("wb") as out:
        left = source.end
        while left > 0 and (chunk := file.read(min(left, COPY_BYTES))):
            out.write(chunk)
            left -= len(chunk)
    return to
