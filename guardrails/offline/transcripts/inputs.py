"""
Finds the files to read, also those in folders, and reads their calls.
"""

import os

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from guardrails.offline.figures import plural
from guardrails.sinks.rotate import name_before, rotated

from .calls import RecordedCall, Report
from .copies import Copies
from .files import STDIN, open_calls, was_rotated
from .formats import ReaderError, format_names


MAX_NOTICES: Final = 1_000
"""Remarks that are kept of all files."""
SHOWN: Final = 3
"""Files without calls that are told of."""
MANY: Final = 15
"""Files of one folder from which on they are one source: a table with a row for each session file says nothing."""


class Input(NamedTuple):
    """
    One file.
    """

    path: str
    found: bool
    """In a folder; else it was given by name."""
    folder: str | None = None
    """What a table calls it in place of its own name: the folder that it was found in among many."""
    rotated: bool = False
    """Its records go on from those of files that it was before."""

    @property
    def paths(self) -> list[Path]:
        """
        The files that are read: those that it was before it was rotated, and itself.
        """
        return [*(rotated(Path(self.path)) if self.rotated else ()), Path(self.path)]


def inputs(paths: Iterable[str | os.PathLike[str]]) -> list[Input]:
    """
    Returns the files of *paths*, each once. Files of a folder come in the order of their names, without hidden ones. A
    file of records is one with those that it was before it was rotated.

    Raises FileNotFoundError for the first that is not there.
    """
    found: dict[str, Input] = {}
    for path in paths:
        for each in _files(str(path)):
            found.setdefault(each.path if each.path == STDIN else os.path.realpath(each.path), each)
    parts = {os.path.realpath(part) for each in found.values() if each.rotated for part in each.paths[:-1]}
    return [each for place, each in found.items() if place not in parts]


def calls_of(
    files: Iterable[Input], report: Report | None = None, tell: Callable[[str], object] | None = None
) -> list[RecordedCall]:
    """
    Returns the calls of *files*, each once. Remarks on the way go into *report*, the progress to *tell*.

    A file that was found in a folder and cannot be read is a remark. Raises as `open_calls` does for one given by name.
    """
    copies, report = Copies(), Report() if report is None else report
    found: list[RecordedCall] = []
    for file in files:
        try:
            found += copies.once(open_calls(file.path, report, source=file.folder, rotated=file.rotated))
        except (OSError, ReaderError) as error:
            if not file.found:
                raise
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            report.without[file.path] = f"cannot be read: {why}"
            report.note(file.path, report.without[file.path])
        if tell is not None:
            tell(f"{file.path}: {len(found):,} calls read")
    report.notices = [*copies.notices(), *report.notices[:MAX_NOTICES]]
    return found


def nothing_found(paths: Iterable[str | os.PathLike[str]], without: Mapping[str, str]) -> str:
    """
    Returns the message for a person if there are no calls in *paths*. The files there look like *without* says.
    """
    if not without:
        return f"no calls found: {what_is_read(paths)}"
    found = [f"`{path}` is {looks}" if looks == "empty" else f"`{path}`: {looks}" for path, looks in without.items()]
    if len(found) > SHOWN:
        found[SHOWN:] = [f"and {len(found) - SHOWN:,} more files without calls"]
    return f"no calls found: {'; '.join(found)}; {what_is_read()}"


def formats_told(read_as: Mapping[str, str], without: Mapping[str, str]) -> str:
    """
    Returns which format the files were read as, for a person: a single file by its name, more by their number. Returns
    an empty text if no file gave calls.
    """
    of: dict[str, list[str]] = {}
    for path, name in read_as.items():
        of.setdefault(name, []).append(path)
    said = [
        f"`{paths[0]}` as {name}" if len(paths) == 1 else f"{len(paths):,} files as {name}"
        for name, paths in sorted(of.items(), key=lambda one: (-len(one[1]), one[0]))
    ]
    none = f"; no calls in {plural(len(without), 'file')}" if without else ""
    return f"Read: {', '.join(said)}{none}." if said else ""


def what_is_read(paths: Iterable[str | os.PathLike[str]] = ()) -> str:
    """
    Returns the formats, for a person; before them that there are no files in *paths*, if some are named.
    """
    where = ", ".join(f"`{path}`" for path in paths)
    there = f"there are no files in {where}; " if where else ""
    return f"{there}what is read: {', '.join(format_names())}; plain, gzip'd or zstd-compressed"


def _files(path: str) -> Iterator[Input]:
    if not path:
        raise FileNotFoundError("no file or folder ``")
    if path != STDIN and not Path(path).is_dir() and was_rotated(Path(path)):
        yield Input(path, found=False, rotated=True)
        return
    if path == STDIN or Path(path).is_file():
        yield Input(path, found=False)
    elif Path(path).is_dir():
        for folder, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            shown = [name for name in names if not name.startswith(".") and Path(folder, name).is_file()]
            logs = {name for name in set(filter(None, map(name_before, shown))) if was_rotated(Path(folder, name))}
            # What was rotated may have been put away without the file that goes on from it.
            alone = {name for name in shown if name_before(name) not in logs} | logs
            source = Path(folder).resolve().name if len(alone) > MANY else None
            yield from (Input(str(Path(folder, name)), True, source, name in logs) for name in sorted(alone))
    elif Path(path).exists():
        # A pipe or a device: read as it comes.
        yield Input(path, found=False)
    else:
        raise FileNotFoundError(f"no file or folder `{path}`")
