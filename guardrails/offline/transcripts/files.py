"""
Which files there are to read, and their calls: plain or gzip'd files and standard input, read whole, in one of the library's own formats, or of
those that other packages add by the entry point group `guardrails.readers`.

Formats of other packages are asked after the library's, so that none can take another's file. They are looked for only
if a file is in none of the library's formats.
"""

import gzip
import os
import re
import sys
import zlib

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError
from guardrails.offline.figures import plural
from guardrails.sinks.rotate import name_before, parsed, rotated

from .calls import Format, RecordedCall, Report, joined
from .chat import CHAT
from .coding_clis import CLAUDE_CODE, CODEX, CODEX_EXEC, GEMINI_CLI, OPENCODE
from .fields import mapping
from .own_records import CALL_LINES, OWN_RECORDS, newer_records, newer_version
from .spans import LANGSMITH, SPANS


FORMATS: Final = (OWN_RECORDS, CALL_LINES, CLAUDE_CODE, CODEX, CODEX_EXEC, GEMINI_CLI, OPENCODE, LANGSMITH, SPANS, CHAT)
"""The more particular forms first."""
STDIN: Final = "-"
SHOWN: Final = 3
"""Files without calls that are told of."""
MANY: Final = 15
"""Files of one folder from which on they are one source: a table with a row for each session file says nothing."""
_CLOCKS_MS: Final = 946_684_800_000
"""The year 2000: an earlier time is none of a clock."""
_ENDINGS: Final = re.compile(r"(?<=.)(?:\.(?:gz|jsonl|ndjson|json)){1,3}\Z")
"""Of a file's name, that say how it is kept."""
_GZIP: Final = b"\x1f\x8b"


class ReaderError(GuardrailsError):
    """
    A format, of this library or of another package, is broken.
    """


# Which files there are


@dataclass(slots=True, eq=False)
class Input:
    """
    One file.
    """

    path: str
    from_folder: bool
    """In a folder; else it was given by name."""
    folder: str | None = None
    """What a table calls it in place of its own name: the folder that it was found in among many."""
    parts: dict[str, Path] = field(default_factory=dict)
    """By their real place the files that it was before it was rotated, oldest first, and itself."""


def inputs(paths: Iterable[str | os.PathLike[str]]) -> list[Input]:
    """
    Returns the files of *paths*, each once. Files of a folder come in the order of their names, without hidden ones. A
    file that was rotated, as those of records are, is one with those that it was before.

    Raises FileNotFoundError for the first that is not there.
    """
    files: dict[str, Input] = {}
    for path in map(str, paths):
        below = _files_below(path) if path and Path(path).is_dir() else [Input(path, from_folder=False)]
        for file in below:
            every = [*([] if file.from_folder or path == STDIN else rotated(Path(path))), Path(file.path)]
            parts = {os.path.realpath(part): part for part in every if path == STDIN or (path and part.exists())}
            if not parts:
                raise FileNotFoundError(f"no file or folder `{path}`")
            log = STDIN if path == STDIN else os.path.realpath(name_before(file.path) or file.path)
            files.setdefault(log, file).parts.update(parts)
    return [*files.values()]


def _files_below(path: str) -> Iterator[Input]:
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        shown = [str(Path(folder, name)) for name in sorted(names) if not name.startswith(".")]
        source = Path(folder).resolve().name if len(shown) > MANY else None
        yield from (Input(name, True, source) for name in shown if Path(name).is_file())


def calls_of(files: Iterable[Input], report: Report, tell: Callable[[str], object] | None = None) -> list[RecordedCall]:
    """
    Returns the calls of *files*, each once. Remarks on the way go into *report*, the progress to *tell*.

    A file that was found in a folder and cannot be read is a remark. Raises as `open_calls` does for one given by name.
    """
    known: dict[Hashable, RecordedCall] = {}
    names: dict[tuple[str, str], str] = {}
    read = 0
    for file in files:
        try:
            calls = calls_in(content_of(file.parts.values()), file.path, report)
        except (OSError, ReaderError) as error:
            if not file.from_folder:
                raise
            calls = []
            report.without[file.path] = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            report.note(file.path, report.without[file.path])
        for call in calls:
            call.source = file.folder or call.source
            # A name that another file has too is another session.
            if names.setdefault((call.source, call.session_id), file.path) != file.path:
                call.run = call.run or file.path
        read += len(calls)
        add_once(calls, known)
        if tell is not None:
            tell(f"{file.path}: {len(known):,} calls read")
    if read > len(known):
        left = f"{plural(read - len(known), 'copy of a call', 'copies of calls')} left out: a call counts once"
        report.notices.insert(0, left)
    return list(known.values())


def add_once(calls: Iterable[RecordedCall], known: dict[Hashable, RecordedCall]) -> None:
    """
    Add those *calls* of a file to the *known* ones that none of these is the same as: checkpoints, forks and copies of sessions repeat earlier calls.

    The first file that holds a call keeps it, and the calls of a session that goes on behind copies are of that file's
    session. A fork, which has another name, begins with its first own call. A call without a result gets that of a later file.
    """
    homes: dict[tuple[str, str], tuple[str, str]] = {}
    """The source and run of which a session of this file is the continuation."""
    seen = Counter[Hashable]()
    for call in calls:
        own, life = _key(call) or object(), (call.session_id, call.run)
        # Servers that count in seconds use an id again within one.
        seen[own] += 1
        first = known.setdefault(key := (own, seen[own]), call)
        if first is call:
            call.source, call.run = homes.get(life, (call.source, call.run))
            continue
        if first.session_id == call.session_id:
            homes.setdefault(life, (first.source, first.run))
        if call.has_result and not first.has_result and first.decision != "deny":
            place = {name: getattr(first, name) for name in ("session_id", "source", "run", "call_index")}
            known[key] = replace(call, **place)


def _key(call: RecordedCall) -> Hashable:
    """
    What a call is known by: its id or the number of its record, its time, its tool and its arguments. Returns None if that does not tell it
    from others: programs count `call_0`, `call_1`, ... anew in each session, and so do clocks that begin with it.
    """
    own = call.id if call.number is None else (call.session_id, call.run, call.number)
    return None if own is None or (call.ts_ms or 0) < _CLOCKS_MS else (own, call.ts_ms, call.tool, call.signature)


def no_calls(paths: Iterable[str | os.PathLike[str]], without: Mapping[str, str]) -> str:
    """
    Returns the message for a person if there are no calls in *paths*. The files there look like *without* says.
    """
    none = f"there are no files in {', '.join(f'`{path}`' for path in paths)}"
    looks = [f"`{path}`: {looks}" for path, looks in without.items()] or [none]
    more = [f"and {len(looks) - SHOWN:,} more files without calls"] if len(looks) > SHOWN else []
    return f"no calls found: {'; '.join([*looks[:SHOWN], *more, what_is_read()])}"


def what_is_read() -> str:
    """
    Returns the formats, for a person.
    """
    return f"what is read: {', '.join(form.name for form in (*FORMATS, *added_formats()))}; plain or gzip'd"


# What a file holds


def open_calls(path: str | Path, report: Report) -> list[RecordedCall]:
    """
    Returns the calls of one file; `-` is standard input. Remarks on the way go into *report*.

    The content tells the format, and so it does for gzip. A file in no known format, or without calls, is noted
    in the report and gives none. Raises OSError if the file cannot be read, and ReaderError if a format is broken.
    """
    return calls_in(content_of([Path(path)]), str(path), report)


def calls_in(data: bytes, file: str, report: Report) -> list[RecordedCall]:
    """
    Returns the calls in the content of a *file*. The rest is as `open_calls` has it.
    """
    # Archives, pictures and UTF-16 have zeros at their beginning.
    values, unread = values_of(b"" if b"\0" in data[:512] else data)
    calls, looks = list[RecordedCall](), "no calls that can be read in"
    if claimed := format_of([value for _, value in values]):
        form, fits = claimed
        unread += [number for (number, _), fit in zip(values, fits, strict=True) if fit is False]
        report.broken += [(file, number) for number in sorted(unread)]
        fitting = (one for one, fit in zip(values, fits, strict=True) if fit is not False)
        with _sound(f"of {form.name}"):
            calls = joined(form.events(fitting, file), _ENDINGS.sub("", Path("stdin" if file == STDIN else file).name))
        report.read_as |= {file: form.name} if calls else {}
        looks = f"no tool calls in this {form.name} of"
    # One that was refused never ran.
    without = sum(not call.has_result and call.decision != "deny" for call in calls)
    if not calls:
        newer = [version for _, value in values if (version := newer_version(mapping(value))) is not None]
        looks = f"records of {newer_records(max(newer))};" if newer else looks
        lines = [number for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        report.without[file] = f"{looks} {_shown(data, lines)}" if lines else "empty"
        report.note(file, f"skipped: {report.without[file]}")
    elif unread:
        report.note(file, f"could not read {_shown(data, unread)}")
    if without:
        has = "has" if without == 1 else "have"
        report.note(file, f"{without:,} of {plural(len(calls), 'call')} {has} no result", unread=False)
    return calls


def _shown(data: bytes, lines: list[int]) -> str:
    """
    How many *lines* of a file there are, with the beginning of the first, for a person.
    """
    first = min(lines)
    line = data.split(b"\n")[first - 1][:60].decode("utf-8", "replace")
    return f"{plural(len(lines), 'line')}, the first is line {first}: {line}"


def values_of(data: bytes) -> tuple[list[tuple[int, Any]], list[int]]:
    """
    Returns the JSON values of a file, one a line or one in all, with the number of the line that each begins on; and the numbers of the
    lines that are none.
    """
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line and not line.isspace()]
    if lines and type(parsed(lines[0][1])) not in (dict, list) and (whole := parsed(data)) is not None:
        return [(lines[0][0], whole)], []
    values = [(number, parsed(line)) for number, line in lines]
    read = [(number, value) for number, value in values if value is not None]
    return read, [number for number, value in values if value is None]


def content_of(parts: Iterable[Path]) -> bytes:
    """
    Returns the content of the *parts* of a file, unpacked if it is packed; `-` is standard input.
    """
    return b"\n".join(map(_content, parts))


def _content(part: Path) -> bytes:
    data = sys.stdin.buffer.read() if part == Path(STDIN) else part.read_bytes()
    try:
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise OSError(0, "the packed data is cut off or damaged", str(part)) from None
    # Without the mark of UTF-8.
    return data.removeprefix(b"\xef\xbb\xbf")


@contextmanager
def _sound(reader: str) -> Iterator[None]:
    """
    Raise ReaderError, for a person, if the *reader* raises another error.
    """
    try:
        yield
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise ReaderError(f"the reader {reader} failed: {fault}; correct it or uninstall its package") from error


@cache
def added_formats() -> tuple[Format, ...]:
    """
    Returns the formats of other packages, in the order of their entry points' names.

    Raises ReaderError for one that cannot be loaded or is no `Format`.
    """
    formats = []
    for point in sorted(entry_points(group="guardrails.readers"), key=lambda point: (point.name, point.value)):
        with _sound(f"`{point.name}` (`{point.value}`)"):
            form = point.load()
            formats.append(Format(str(form.name), form.fits, form.events))
    return tuple(formats)


def format_of(values: list[Any]) -> tuple[Format, list[bool | None]] | None:
    """
    Returns the format of a file of these *values*, and which of them fit: the first that most of them fit, and of which one has a sure sign.

    Formats of other packages are asked last. Raises ReaderError for one that is broken.
    """
    for form in _formats():
        with _sound(f"of {form.name}"):
            fits = [form.fits(value) for value in values]
        if True in fits and 2 * fits.count(False) <= len(fits):
            return form, fits
    return None


def _formats() -> Iterator[Format]:
    yield from FORMATS
    yield from added_formats()
