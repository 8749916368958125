"""
Finds the files to read, also those in folders, and reads their calls.
"""

import os

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from guardrails.offline.figures import plural
from guardrails.sinks.rotate import name_before

from .calls import RecordedCall, Report, Session
from .files import FORMATS, STDIN, ReaderError, added_formats, history, open_calls


SHOWN: Final = 3
"""Files without calls that are told of."""
MANY: Final = 15
"""Files of one folder from which on they are one source: a table with a row for each session file says nothing."""


_CLOCKS_MS: Final = 946_684_800_000
"""The year 2000: an earlier time is none of a clock."""


class Input(NamedTuple):
    """
    One file.
    """

    path: str
    parts: tuple[Path, ...]
    """The files that it was before it was rotated, and itself."""
    found: bool = False
    """In a folder; else it was given by name."""
    folder: str | None = None
    """What a table calls it in place of its own name: the folder that it was found in among many."""


def inputs(paths: Iterable[str | os.PathLike[str]]) -> list[Input]:
    """
    Returns the files of *paths*, each once. Files of a folder come in the order of their names, without hidden ones. A
    file of records is one with those that it was before it was rotated.

    Raises FileNotFoundError for the first that is not there.
    """
    found: dict[str, Input] = {}
    for path in map(str, paths):
        parts = history(path)
        if path != STDIN and not (path and parts[0].exists()):
            raise FileNotFoundError(f"no file or folder `{path}`")
        for each in _files_below(path) if Path(path).is_dir() else [Input(path, parts)]:
            found.setdefault(each.path if each.path == STDIN else os.path.realpath(each.path), each)
    earlier = {os.path.realpath(part) for each in found.values() for part in each.parts if part != Path(each.path)}
    return [each for place, each in found.items() if place not in earlier]


def _files_below(path: str) -> Iterator[Input]:
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        shown = {str(Path(folder, name)) for name in names if not name.startswith(".") and Path(folder, name).is_file()}
        # What was rotated may have been put away without the file that goes on from it.
        logs = {name: history(name) for name in {*map(name_before, shown)} if name}
        logs = {name: parts for name, parts in logs.items() if parts != (Path(name),)}
        shown = {name for name in shown if name_before(name) not in logs} | logs.keys()
        source = Path(folder).resolve().name if len(shown) > MANY else None
        yield from (Input(name, logs.get(name, (Path(name),)), True, source) for name in sorted(shown))


def calls_of(
    files: Iterable[Input], report: Report | None = None, tell: Callable[[str], object] | None = None
) -> list[RecordedCall]:
    """
    Returns the calls of *files*, each once. Remarks on the way go into *report*, the progress to *tell*.

    A file that was found in a folder and cannot be read is a remark. Raises as `open_calls` does for one given by name.
    """
    report = Report() if report is None else report
    known: dict[Hashable, RecordedCall] = {}
    read = 0
    for file in files:
        try:
            calls = open_calls(file.path, report, source=file.folder, parts=file.parts)
        except (OSError, ReaderError) as error:
            if not file.found:
                raise
            calls, why = [], (error.strerror if isinstance(error, OSError) else None) or str(error)
            report.without[file.path] = f"cannot be read: {why}"
            report.note(file.path, report.without[file.path])
        read += len(calls)
        add_once(calls, known)
        if tell is not None:
            tell(f"{file.path}: {len(known):,} calls read")
    if read > len(known):
        told = f"{plural(read - len(known), 'copy of a call', 'copies of calls')} left out: a call counts once"
        report.notices.insert(0, told)
    return list(known.values())


def add_once(calls: Iterable[RecordedCall], known: dict[Hashable, RecordedCall]) -> None:
    """
    Add those *calls* of a file to the *known* ones that none of these is the same as: checkpoints, forks and copies of sessions repeat earlier calls.

    The first file that holds a call keeps it, and the calls of a session that goes on behind copies are of that file's
    session. A fork, which has another name, begins with its first own call. A call without a result gets that of a later file.
    """
    homes: dict[Session, str] = {}
    """The source of which a session of this file is the continuation."""
    seen = Counter[Hashable]()
    for call in calls:
        own = _key(call) or object()
        # Servers that count in seconds use an id again within one.
        seen[own] += 1
        first = known.setdefault(key := (own, seen[own]), call)
        if first is call:
            call.source = homes.get(call.session, call.source)
            continue
        if first.session == call.session:
            homes.setdefault(call.session, first.source)
        if call.has_result and not first.has_result and first.decision != "deny":
            place = {name: getattr(first, name) for name in ("session_id", "source", "call_index")}
            known[key] = replace(call, **place)


def _key(call: RecordedCall) -> Hashable:
    """
    What a call is known by: its id or the number of its record, its time, its tool and its arguments. Returns None if that does not tell it
    from others: programs count `call_0`, `call_1`, ... anew in each session, and so do clocks that begin with it.
    """
    own = call.id if call.number is None else (call.session, call.number)
    if own is None or (call.ts_ms or 0) < _CLOCKS_MS or call.signature is None:
        return None
    return own, call.ts_ms, call.signature


def nothing_found(paths: Iterable[str | os.PathLike[str]], without: Mapping[str, str]) -> str:
    """
    Returns the message for a person if there are no calls in *paths*. The files there look like *without* says.
    """
    looks = [f"`{path}`: {looks}" for path, looks in without.items()]
    more = [f"and {len(looks) - SHOWN:,} more files without calls"] if len(looks) > SHOWN else []
    return f"no calls found: {'; '.join([*looks[:SHOWN], *more, what_is_read(() if looks else paths)])}"


def what_is_read(paths: Iterable[str | os.PathLike[str]] = ()) -> str:
    """
    Returns the formats, for a person; before them that there are no files in *paths*, if some are named.
    """
    where = ", ".join(f"`{path}`" for path in paths)
    there = f"there are no files in {where}; " if where else ""
    return f"{there}what is read: {', '.join(form.name for form in (*FORMATS, *added_formats()))}; plain or gzip'd"
