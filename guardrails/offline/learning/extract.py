"""
From records to cells: what is new in the files is counted, and kept by day with what was counted before.
"""

import time

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final

from guardrails.core.records.record import SCHEMA_VERSION
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.rows.cell_folder import MOST_PARTS, CellFolder, Ledger
from guardrails.offline.learning.rows.cells import DAY_MS, KEYS, UNDATED, Cell, apart_from
from guardrails.offline.learning.rows.counting import CARRY_MS, Group, Progress, Run, count
from guardrails.offline.learning.rows.duck import MEMORY_MB, Duck, cells_of, merged_text, rows_text
from guardrails.offline.learning.rows.sources import Source, sources
from guardrails.offline.learning.rows.transcripts import convert
from guardrails.offline.readers import Copies, Report
from guardrails.offline.readers.files import open_lines
from guardrails.policy.feature_file import shipped_spec


COPY_BYTES: Final = 1 << 20


@dataclass(slots=True)
class Extracted:
    """
    All cells of a folder, and what was met on the way.
    """

    cells: list[Cell]
    """Of every day, the newest ones kept apart by groups of sessions; see `cells.decayed`."""
    newest_day: int
    """UTC days since 1970 of the newest call; `UNDATED` where none has a time."""
    files: int = 0
    """Files of which something was new."""
    notices: list[str] = field(default_factory=list)
    """Sentences for a person."""
    without: dict[str, str] = field(default_factory=dict)
    """What each file looks like that gave no calls."""
    nothing: bool = False
    """No file gave any."""


def extract(
    paths: Iterable[str | PathLike[str]],
    folder: Path,
    *,
    spec: FeatureSpec | None = None,
    whole_by: str | None = None,
    master: str | None = None,
    memory_mb: int = MEMORY_MB,
    progress: Progress = lambda done, total, what: None,
) -> Extracted:
    """
    Returns the cells ever counted into *folder*, after counting the new calls in *paths* (files and folders).

    It reads this library's records, as JSON lines or Parquet, and every format of `readers`. Calls that were counted
    are not read again. A file that has grown is read on from its earlier end, and a renamed one is known. A run that
    was killed goes on at its last point. The column *whole_by* partitions Parquet folders (`bucket=0/`, ...) by whole
    sessions, which spares a sort. With *master*, Spark counts Parquet records there.

    Raises TrainingError if another process counts into the same folder, a path is not there, or the folder was counted
    by another specification. Raises OSError if a file cannot be read or written.
    """
    spec = spec or shipped_spec()
    kept = CellFolder(folder)
    with kept.locked():
        ledger = kept.ledger(spec.digest)
        report = Report()
        found = sources(paths, folder, report)
        made = Extracted([], UNDATED, notices=report.notices, without=report.without)
        copies = kept.copies(ledger)
        todo = _new(found, ledger, made)
        while todo:
            chosen = _planned(kept, ledger, todo) or todo
            kept.begin({"run": ledger.runs, "spec": spec.digest, "sources": [list(source) for source in chosen]})
            with Duck(kept.work / "spill", memory_mb) as duck:
                try:
                    spread = whole_by, master, progress
                    _run(duck, kept, ledger, spec, chosen, met=(made, copies), spread=spread)
                except duck.failed as error:
                    raise TrainingError(f"the records cannot be counted: {error}") from error
            made.files += len(chosen)
            todo = [source for source in _new(found, ledger, made) if source.path not in made.without]
        made.notices += copies.notices()
        made.nothing = not ledger.parts or all(source.path in made.without for source in found)
        made.cells, made.newest_day = load(kept, ledger)
        return made


def load(kept: CellFolder, ledger: Ledger) -> tuple[list[Cell], int]:
    """
    Returns all cells of a folder in the order of their keys, and their newest day.
    """
    newest = ledger.newest_ms // DAY_MS if ledger.newest_ms else UNDATED
    if not ledger.parts:
        return [], newest
    with Duck(kept.path / "spill") as duck:
        duck.view("parts", [kept.path / part for part in ledger.parts])
        text = f"{merged_text('parts', apart_from(newest))} ORDER BY {', '.join(KEYS)}"
        return cells_of(duck.sql(text)), newest


def _new(found: Iterable[Source], ledger: Ledger, made: Extracted) -> list[Source]:
    """
    Returns the part of *found* that was not read yet.
    """
    paths = {path for path, _ in ledger.read.values()}
    todo = []
    for source in found:
        read = ledger.read.get(source.identity)
        if read is None and source.kind != "records" and source.path in paths:
            notice = f"`{source.path}` has changed since it was counted: skipped, or what it held would count twice"
            if notice not in made.notices:
                made.notices.append(notice)
        elif read is None and source.end > source.start:
            todo.append(source)
        elif read is not None and source.kind == "packed records":
            # A log that was packed after it was read may hold more than was read of it.
            whole = read[1] if read[0] == source.path else _unpacked_size(source.path)
            read[0] = source.path
            if read[1] < whole:
                todo.append(source._replace(start=read[1], end=whole))
        elif read is not None and read[1] < source.end:
            todo.append(source._replace(start=read[1]))
    return todo


def _planned(kept: CellFolder, ledger: Ledger, todo: Sequence[Source]) -> list[Source] | None:
    """
    The sources of an interrupted run, if all of them are still there.
    """
    plan = kept.planned()
    if plan is None or plan.get("run") != ledger.runs or plan.get("spec") != ledger.spec:
        return None
    there = {source.identity: source for source in todo}
    chosen = [Source(*said) for said in plan["sources"]]
    if all(source.identity in there and there[source.identity].end >= source.end for source in chosen):
        return [source._replace(path=there[source.identity].path) for source in chosen]
    return None


def _run(
    duck: Duck,
    kept: CellFolder,
    ledger: Ledger,
    spec: FeatureSpec,
    chosen: Sequence[Source],
    *,
    met: tuple[Extracted, Copies],
    spread: tuple[str | None, str | None, Progress],
) -> None:
    """
    Count *chosen*; what is *met* on the way is noted. *spread*: features, computer and listener of the count.
    """
    (made, copies), (whole_by, master, progress) = met, spread
    staged = [
        path for index, source in enumerate(chosen) if (path := _staged(duck, kept.work, index, source, made, copies))
    ]
    parquet = [source.path for source in chosen if source.kind == "parquet"]
    groups = [Group(tuple(map(str, staged)), staged=True)] if staged else []
    groups += [Group(tuple(files), staged=False) for files in _whole(parquet, whole_by)]
    carry = None if ledger.carry is None else kept.path / ledger.carry
    latest_ms = int(time.time() * 1000) + DAY_MS
    run = Run(spec, groups, kept.work, carry, ledger.newest_ms, latest_ms=latest_ms, progress=progress)
    if master is not None:
        from guardrails.offline.learning.rows.spark import count_on_spark

        counted = count_on_spark(master, duck, run)
    else:
        counted = count(duck, run)
    part, carried = ledger.name("part"), ledger.name("carry")
    _keep(duck, kept, ledger, counted.cells, part)
    _carry(duck, kept, counted.carry, carry, carried, counted.newest_ms)
    ledger.parts = [*ledger.parts, part] if len(ledger.parts) < MOST_PARTS else [part]
    ledger.carry, ledger.newest_ms, ledger.runs = carried, counted.newest_ms, ledger.runs + 1
    for source in chosen:
        if source.path in made.without:
            # Told of each time.
            continue
        packed = source.kind == "packed records"
        ledger.read[source.identity] = [source.path, _unpacked_size(source.path) if packed else source.end]
    if any(source.kind == "transcript" for source in chosen):
        kept.keep(copies, ledger)
    kept.commit(ledger)


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
        # Read again after a kill: its calls tell which ones of later files are copies.
        report = Report()
        new = to.with_name("rows.new")
        convert(source.path, new, report, copies)
        made.notices += report.notices
        made.without |= report.without
        duck.view("input", [new])
        duck.write("SELECT *, 0 AS bad FROM input", to)
        new.unlink()
        return to
    if to.exists():
        return to
    copy = work / "lines.jsonl"
    lines = _lines(source, copy)
    duck.write(rows_text(duck.view_lines(str(lines))), to)
    if lines != copy and lines.stat().st_size != source.end:
        # It was appended to meanwhile: what is new would be read again.
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
        at = 0
        with to.open("wb") as out:
            for line in open_lines(path, Report()):
                if at >= source.start:
                    out.write(line + b"\n")
                at += len(line) + 1
        return to
    if source.start == 0 and path.stat().st_size == source.end:
        return path
    return _copied(source, to)


def _unpacked_size(path: str) -> int:
    """
    Bytes of the lines of a packed file, each with its end.
    """
    return sum(len(line) + 1 for line in open_lines(path, Report()))


def _copied(source: Source, to: Path) -> Path:
    with Path(source.path).open("rb") as file, to.open("wb") as out:
        file.seek(source.start)
        left = source.end - source.start
        while left > 0 and (chunk := file.read(min(left, COPY_BYTES))):
            out.write(chunk)
            left -= len(chunk)
    return to


def _keep(duck: Duck, kept: CellFolder, ledger: Ledger, cells: Sequence[Path], part: str) -> None:
    """
    Write one file of a run's cells, or of those of all runs if they have become many.
    """
    older = [kept.path / name for name in ledger.parts] if len(ledger.parts) >= MOST_PARTS else []
    duck.view("found", [*cells, *older])
    duck.write(merged_text("found"), kept.path / part)


def _carry(duck: Duck, kept: CellFolder, fresh: Sequence[Path], old: Path | None, to: str, newest_ms: int) -> None:
    """
    The calls that the next run needs: of this run's sessions, and of earlier ones that had no call in it.
    """
    duck.view("fresh_carry", fresh)
    text = "SELECT * FROM fresh_carry"
    if old is not None:
        duck.view("old_carry", [old])
        text += (
            " UNION ALL SELECT * FROM old_carry WHERE session NOT IN (SELECT session FROM fresh_carry)"  # noqa: S608
            f" AND session IN (SELECT session FROM old_carry WHERE ended_ms >= {newest_ms - CARRY_MS})"
        )
    duck.write(text, kept.path / to)
