"""
Open transcripts: plain, gzip'd or zstd-compressed files and standard input, read whole.

The only module of this room that touches files.
"""

import gzip
import importlib
import io
import sys

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from guardrails.core.values.errors import install
from guardrails.core.values.names import MAX_CHARS, bounded_name
from guardrails.offline.figures import plural
from guardrails.sinks.rotate import opened_with_rotated, rotated

from .calls import RecordedCall, Report
from .events import Format, joined
from .formats import FORMATS, ReaderError, added_formats
from .json_text import parse, values_of
from .own_records import OwnRecords


STDIN: Final = "-"
MAX_BYTES: Final = 4 << 30
"""Of a file, unpacked: what is packed in few bytes may be without end."""
SAMPLE: Final = 200
"""Values at the beginning of a file that tell its format."""
_PIECE: Final = 1 << 16
"""Bytes that are unpacked at a time."""
_HEAD: Final = 512
"""Bytes that tell whether a file is text: archives, pictures and UTF-16 have zeros there."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BOM: Final = b"\xef\xbb\xbf"
_SUFFIXES: Final = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json")
NAMED: Final = 20
"""Broken lines that a notice names."""
_SHOWN: Final = 60
"""Characters of a line of another form that a notice shows."""


def open_calls(
    path: str | Path, report: Report, *, source: str | None = None, rotated: bool = False
) -> list[RecordedCall]:
    """
    Returns the calls of one file; `-` is standard input. Remarks on the way go into *report*.

    The content tells the format, and so it does for gzip or zstd. A file in no known format, or without calls, is noted
    in the report and gives none. The name *source* replaces the file's name as the calls' source (or the name in a data
    set). The files that a *rotated* one was before are read first, as one with it. Raises OSError if the file cannot be
    read, and ReaderError for zstd without a package for it, or a format of another package that is broken.
    """
    file = str(path)
    calls = calls_in(_content(file, report, rotated=rotated), file, report)
    for call in calls:
        call.source = source or call.source
    return calls


def calls_in(data: bytes, file: str, report: Report) -> list[RecordedCall]:
    """
    Returns the calls in the content of a *file*. The rest is as `open_calls` has it.
    """
    values, before = values_of(b"" if _is_binary(data) else data, report, file), len(report.broken)
    sample = list(islice(values, SAMPLE))
    form = format_of([value for _, value in sample])
    if form is None:
        looks = report.without.setdefault(file, _looks(data, [value for _, value in sample]))
        what = looks if looks == "empty" else f"it holds no calls that can be read ({looks})"
        report.note(file, f"skipped: {what}")
        return []
    others: list[tuple[int, Any]] = []
    calls = joined(form.events(_fitting(form, chain(sample, values), others), file, report), _name(file))
    broken = [line for _, line in report.broken[before:]]
    if others:
        line, value = others[0]
        shown = orjson.dumps(value, default=str).decode("utf-8", "replace")[:_SHOWN]
        report.note(file, f"{plural(len(others), 'line')} of another form left out, the first line {line}: {shown}")
    # One that was refused never ran.
    without = sum(not call.has_result and call.decision != "deny" for call in calls)
    if without:
        report.note(file, f"{without:,} of {plural(len(calls), 'call')} {'has' if without == 1 else 'have'} no result")
    if calls:
        report.read_as[file] = form.name
        report.without.pop(file, None)
    else:
        report.note(
            file, f"no {'calls that can be read' if file in report.without else 'tool calls'} in this {form.name}"
        )
        behind = f", broken lines: {len(broken):,}" if broken else ""
        report.without.setdefault(file, f"{form.name} without tool calls{behind}")
    if broken:
        more = f" and {len(broken) - NAMED:,} more" if len(broken) > NAMED else ""
        lines = f"broken line{'s' if len(broken) > 1 else ''} {', '.join(map(str, broken[:NAMED]))}{more}"
        report.note(file, lines)
    for call in calls:
        call.tool = bounded_name(call.tool) if len(call.tool) > MAX_CHARS else call.tool
    report.calls += len(calls)
    return calls


def open_lines(path: str | Path, report: Report, *, rotated: bool = False) -> Iterator[bytes]:
    """
    Returns the lines of one file, unpacked if it is packed. The path `-` is standard input. The rest is as `open_calls`
    has it.
    """
    return iter(_content(str(path), report, rotated=rotated).splitlines())


def format_of(values: list[Any]) -> Format | None:
    """
    Returns the format of a file that begins with *values*: the first that fits most of them, and of which one has a sure sign.

    Formats of other packages are asked last. Raises ReaderError for one that is broken.
    """
    return _claiming(FORMATS, values) or _claiming(added_formats(), values)


def _claiming(formats: tuple[Format, ...], values: list[Any]) -> Format | None:
    for form in formats:
        fits = [form.fits(value) for value in values]
        if True in fits and 2 * fits.count(False) <= len(fits):
            return form
    return None


def was_rotated(path: Path) -> bool:
    """
    Returns whether *path* holds records, and other files hold those before them.
    """
    earlier = rotated(path)
    return bool(earlier) and all(map(_holds_records, [*earlier[:1], *([path] if path.exists() else ())]))


def is_record(line: bytes) -> bool:
    """
    Returns whether a *line* is a record of this library.
    """
    try:
        return OwnRecords().fits(parse(line))
    except ValueError:
        return False


def _holds_records(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_record(file.readline(_PIECE))
    except OSError:
        return False


def _fitting(
    form: Format, values: Iterable[tuple[int, Any]], others: list[tuple[int, Any]]
) -> Iterator[tuple[int, Any]]:
    for number, value in values:
        if form.fits(value) is False:
            others.append((number, value))
        else:
            yield number, value


def _name(file: str) -> str:
    """
    The file's name without its folder and the endings that say how it is kept.
    """
    path = Path("stdin" if file == STDIN else file)
    while path.suffix in _SUFFIXES:
        path = path.with_suffix("")
    return path.name


def _looks(data: bytes, values: list[Any]) -> str:
    """
    What a file without calls looks like, for a person.
    """
    if not data.strip():
        return "empty"
    if _is_binary(data):
        return f"no UTF-8 text, {plural(len(data), 'byte')}"
    found = [each for value in values for each in (value[:SAMPLE] if type(value) is list else [value])]
    keys = list(dict.fromkeys(key for value in found if type(value) is dict for key in value))[:5]
    kind = "no JSON objects" if values or data.lstrip()[:1] not in (b"{", b"[") else "JSON that is broken or cut off"
    kind = f"JSON of another form, keys {', '.join(f'`{key[:24]}`' for key in keys)}" if keys else kind
    return f"{kind}, {plural(len(data.splitlines()), 'line')}, {plural(len(data), 'byte')}"


def _is_binary(data: bytes) -> bool:
    """
    Whether *data* is no text in UTF-8. A line of zeros further down is what a crash leaves in a log.
    """
    return b"\0" in data[:_HEAD] or 20 * data[:_HEAD].decode("utf-8", "replace").count("\ufffd") > len(data[:_HEAD])


def _content(file: str, report: Report, *, rotated: bool) -> bytes:
    """
    Returns the content of *file*, unpacked; before it that of the files that a *rotated* one was.
    """
    if file == STDIN:
        return _unpacked(sys.stdin.buffer.read(), file, report)
    if not rotated:
        return _unpacked(Path(file).read_bytes(), file, report)
    parts = [_unpacked(opened.read(), file, report) for opened in opened_with_rotated(Path(file))]
    return b"\n".join(part.removesuffix(b"\n") for part in parts)


def _unpacked(data: bytes, file: str, report: Report) -> bytes:
    """
    Returns what *data* holds, up to a damage of which *report* tells.
    """
    if data.startswith((_GZIP, _ZSTD)):
        packed = gzip.GzipFile(fileobj=io.BytesIO(data)) if data.startswith(_GZIP) else _zstd(io.BytesIO(data))
        parts, size = [], 0
        try:
            while size < MAX_BYTES and (part := packed.read1(_PIECE)):
                parts.append(part)
                size += len(part)
        except Exception as error:  # noqa: BLE001  each way of packing has errors of its own
            report.note(file, f"the packed data is cut off or damaged ({error}); what stands before is read")
            report.without[file] = "the packed data is cut off or damaged"
        if size >= MAX_BYTES:
            report.note(file, f"more than {MAX_BYTES >> 30} GB are not read: split the file")
        data = b"".join(parts)
    return data.removeprefix(_BOM)


def _zstd(packed: BinaryIO) -> Any:
    """
    Returns *packed* as a file that is unpacked as it is read: by Python's own module from 3.14 on, or by the package `zstandard`.
    """
    with suppress(ImportError):
        return importlib.import_module("compression.zstd").ZstdFile(packed)
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise ReaderError(f"a file packed with zstd needs a package that reads it: {install('zstd')}") from None
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
