"""
Open transcripts: plain or gzip'd files and standard input, read whole, in one of the library's own formats, or of those that other packages add by
the entry point group `guardrails.readers`.

Formats of other packages are asked after the library's, so that none can take another's file. They are looked for only
if a file is in none of the library's formats.
"""

import gzip
import sys
import zlib

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from guardrails.core.record import newer_records, newer_version
from guardrails.core.values.errors import GuardrailsError
from guardrails.offline.figures import plural
from guardrails.sinks.rotate import parsed, rotated

from .call_lines import CALL_LINES
from .calls import Format, RecordedCall, Report, joined
from .chat import CHAT
from .claude_code import CLAUDE_CODE
from .codex import CODEX, CODEX_EXEC
from .fields import mapping
from .gemini_cli import GEMINI_CLI
from .langsmith import LANGSMITH
from .opencode import OPENCODE
from .own_records import OWN_RECORDS, is_record
from .spans import SPANS


AGENTS: Final = (CLAUDE_CODE, CODEX, CODEX_EXEC, GEMINI_CLI, OPENCODE)
FORMATS: Final = (OWN_RECORDS, CALL_LINES, *AGENTS, LANGSMITH, SPANS, CHAT)
"""The more particular forms first."""
GROUP: Final = "guardrails.readers"
STDIN: Final = "-"
SAMPLE: Final = 200
"""Values of a file without calls of which a person is told the keys."""
_ENDINGS: Final = frozenset(("gz", "jsonl", "ndjson", "json"))
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_HEAD: Final = 512
_SHOWN: Final = 60
"""Characters of a line that could not be read that a notice shows."""


class ReaderError(GuardrailsError):
    """
    A format, of this library or of another package, is broken.
    """


def open_calls(
    path: str | Path, report: Report, *, source: str | None = None, parts: Sequence[Path] = ()
) -> list[RecordedCall]:
    """
    Returns the calls of one file; `-` is standard input. Remarks on the way go into *report*.

    The content tells the format, and so it does for gzip. A file in no known format, or without calls, is noted
    in the report and gives none. The name *source* replaces the file's name as the calls' source (or the name in a data
    set). The *parts* of a file of records that was rotated are looked for if they are not given. Raises OSError
    if the file cannot be read, and ReaderError if a format is broken.
    """
    calls = calls_in(content_of(parts or history(str(path))), str(path), report)
    for call in calls:
        call.source = source or call.source
    return calls


def calls_in(data: bytes, file: str, report: Report) -> list[RecordedCall]:
    """
    Returns the calls in the content of a *file*. The rest is as `open_calls` has it.
    """
    # Archives, pictures and UTF-16 have zeros at their beginning.
    values, unread = values_of(b"" if b"\0" in data[:_HEAD] else data)
    claimed = format_of([value for _, value in values])
    if claimed is None:
        looks = report.without[file] = _looks(data, values)
        report.note(file, f"skipped: {looks if looks == 'empty' else f'it holds no calls that can be read ({looks})'}")
        return []
    form, fits = claimed
    unread += [number for (number, _), fit in zip(values, fits, strict=True) if fit is False]
    fitting = (one for one, fit in zip(values, fits, strict=True) if fit is not False)
    try:
        calls = joined(form.events(fitting, file), _name(file))
    except Exception as error:
        raise failing(f"of {form.name}", error) from error
    if unread:
        line = data.split(b"\n")[min(unread) - 1][:_SHOWN].decode("utf-8", "replace")
        report.note(file, f"{plural(len(unread), 'line')} could not be read, the first is line {min(unread)}: {line}")
        report.broken += [(file, number) for number in sorted(unread)]
    # One that was refused never ran.
    if without := sum(not call.has_result and call.decision != "deny" for call in calls):
        report.note(file, f"{without:,} of {plural(len(calls), 'call')} {'has' if without == 1 else 'have'} no result")
    if calls:
        report.read_as[file] = form.name
    else:
        report.note(file, f"no tool calls in this {form.name}")
        report.without[file] = f"{form.name} without tool calls"
    return calls


def values_of(data: bytes) -> tuple[list[tuple[int, Any]], list[int]]:
    """
    Returns the JSON values of a file, one a line or one in all, with the number of the line that each begins on; and the numbers of the lines
    that are none.
    """
    lines = data.split(b"\n")
    whole = None if type(parsed(next(filter(bytes.strip, lines), b""))) in (dict, list) else parsed(data)
    if whole is not None:
        return [(1, whole)], []
    values = [(number, parsed(line)) for number, line in enumerate(lines, 1) if line and not line.isspace()]
    read = [(number, value) for number, value in values if value is not None]
    return read, [number for number, value in values if value is None]


def _name(file: str) -> str:
    """
    The file's name without its folder and the endings that say how it is kept.
    """
    name = Path("stdin" if file == STDIN else file).name
    while (parts := name.rpartition("."))[0] and parts[2] in _ENDINGS:
        name = parts[0]
    return name


def _looks(data: bytes, values: list[tuple[int, Any]]) -> str:
    """
    What a file without calls looks like, for a person.
    """
    found = (each for _, value in values[:SAMPLE] for each in (value[:SAMPLE] if type(value) is list else [value]))
    keys = list(dict.fromkeys(f"`{key[:24]}`" for value in found for key in mapping(value)))[:5]
    kind = f"JSON of another form, keys {', '.join(keys)}" if keys else "no JSON objects"
    newer = [version for _, value in values if (version := newer_version(mapping(value))) is not None]
    kind = f"records of {newer_records(max(newer))}" if newer else kind
    size = f"{plural(len(data.splitlines()), 'line')}, {plural(len(data), 'byte')}"
    return f"{kind}, {size}" if data.strip() else "empty"


def history(path: str) -> tuple[Path, ...]:
    """
    Returns the files of *path*: itself, and before it those that it was before it was rotated, if it is one of records.
    """
    own = Path(path)
    earlier = rotated(own) if path not in ("", STDIN) else []
    with suppress(OSError, IndexError), earlier[0].open("rb") as oldest:
        if is_record(parsed(oldest.readline())):
            return (*earlier, *((own,) if own.exists() else ()))
    return (own,)


def content_of(parts: Iterable[Path]) -> bytes:
    """
    Returns the content of the *parts* of a file, unpacked if it is packed; `-` is standard input.
    """
    read = (sys.stdin.buffer.read() if part == Path(STDIN) else part.read_bytes() for part in parts)
    return b"\n".join(map(_unpacked, read))


def _unpacked(data: bytes) -> bytes:
    try:
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error) as error:
        raise OSError(f"the packed data is cut off or damaged: {error}") from None
    return data.removeprefix(_BOM)


def failing(reader: str, error: Exception) -> ReaderError:
    """
    Returns the error for a person whose *reader* raised another one.
    """
    said = f"{type(error).__name__}: {error}"
    return ReaderError(f"the reader {reader} failed: {said}; correct it or uninstall its package")


@cache
def added_formats() -> tuple[Format, ...]:
    """
    Returns the formats of other packages, in the order of their entry points' names.

    Raises ReaderError for one that cannot be loaded or is no `Format`.
    """
    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            form = point.load()
            found.append(Format(str(form.name), form.fits, form.events))
        except Exception as error:
            raise failing(f"`{point.name}` (`{point.value}`)", error) from error
    return tuple(found)


Claimed = tuple[Format, list[bool | None]]
"""A format, and which values of a file fit it."""


def format_of(values: list[Any]) -> Claimed | None:
    """
    Returns the format of a file of these *values*: the first that most of them fit, and of which one has a sure sign.

    Formats of other packages are asked last. Raises ReaderError for one that is broken.
    """
    for form in _formats():
        try:
            fits = [form.fits(value) for value in values]
        except Exception as error:
            raise failing(f"of {form.name}", error) from error
        if True in fits and 2 * fits.count(False) <= len(fits):
            return form, fits
    return None


def _formats() -> Iterator[Format]:
    yield from FORMATS
    yield from added_formats()
