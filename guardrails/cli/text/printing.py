"""
Prints for all commands: JSON, text at the terminal's width, errors.
"""

import json
import os
import shutil
import sys
import textwrap

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import typer


FOUND: Final = 1
"""Exit code: done, and something was found."""
USAGE: Final = 2
"""Exit code: it cannot be done as it was asked for."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""
MAX_WIDTH: Final = 100
LEAST_WIDTH: Final = 20


def print_json(data: Any) -> None:
    """
    *data* for another program. Characters that the output's encoding cannot say, such as half a surrogate pair, are
    escaped.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2, default=str)
    typer.echo(text)


def fail(message: str, code: int = USAGE) -> NoReturn:
    """
    Say on stderr why there is no result, and end.
    """
    typer.echo(printable(message), err=True)
    raise typer.Exit(code)


@contextmanager
def failures_told() -> Iterator[None]:
    """
    End the command, saying why, if this library or a file fails it.
    """
    from guardrails.core.values.errors import GuardrailsError, NothingFoundError, said_of

    try:
        yield
    except NothingFoundError as error:
        tell_of_nothing(str(error))
    except GuardrailsError as error:
        fail(str(error))
    except OSError as error:
        fail(said_of(error))


def tell_of_nothing(message: str) -> NoReturn:
    """
    Say on stderr, in one line, that nothing was found, and end.
    """
    fail(message.replace("\n", "\\n"), FOUND)


def printable(text: str) -> str:
    """
    *text* without control characters, line feeds and tabs kept: what tools and models wrote must not steer a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def width() -> int:
    """
    Characters to a line.
    """
    return max(LEAST_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns))


def is_plain() -> bool:
    """
    Whether only text may be printed, by the environment: no colours, nothing bold, no line that changes.
    """
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def heading(text: str) -> str:
    """
    Returns *text*, in bold if it is printed to a terminal.
    """
    told = printable(text)
    return told if is_plain() else typer.style(told, bold=True)


def paragraph(text: str, *, indent: str = "", hanging: str | None = None) -> str:
    """
    *text* wrapped at the terminal's width.
    """
    return textwrap.fill(
        printable(text),
        width(),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    )


def formats_text(read_as: Mapping[str, str], without: Mapping[str, str]) -> Iterator[str]:
    """
    Returns which format the files were read as, as a paragraph; nothing if no file gave calls.
    """
    from guardrails.offline.transcripts.inputs import formats_told

    if said := formats_told(read_as, without):
        yield paragraph(said, hanging="  ")


def table(rows: Sequence[Sequence[str]]) -> str:
    """
    *rows* in columns, the first row their headings; long cells are wrapped. On a terminal that is too narrow for the
    columns each row is a paragraph, with its cells by their headings.
    """
    told = [[printable(cell) for cell in row] for row in rows]
    for gap, wrapped in ((2, False), (1, False), (2, True), (1, True)):
        widths = _widths(told, gap, wrapped=wrapped)
        if widths is not None:
            return "\n".join(_lines(told, widths, " " * gap))
    return "\n".join(_stacked(told))


def _widths(rows: Sequence[Sequence[str]], gap: int, *, wrapped: bool) -> list[int] | None:
    """
    The widths of columns, none of which breaks a word. Returns None if the terminal is too narrow, or cells would be *wrapped* and must not be.
    """
    natural = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [
        max((len(word) for cell in column for word in cell.split()), default=0) for column in zip(*rows, strict=True)
    ]
    others = len(natural) - 1
    even = max((width() - natural[0]) // others - 2, 8) if others else 0
    if natural[0] + others * (even + 2) <= width() and max(words[1:], default=0) <= even:
        return [natural[0], *[even] * others]
    # As much as each needs, and of what is missing the widest give first.
    while sum(natural) + gap * others > width():
        widest = max(range(len(natural)), key=lambda at: natural[at] if natural[at] > words[at] else -1)
        if not wrapped or natural[widest] <= words[widest]:
            return None
        natural[widest] -= 1
    return natural


def _lines(rows: Sequence[Sequence[str]], widths: Sequence[int], gap: str) -> Iterator[str]:
    for n, row in enumerate(rows):
        cells = [textwrap.wrap(cell, max(w, 1)) or [""] for cell, w in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = [(cell[i] if i < len(cell) else "").ljust(w) for cell, w in zip(cells, widths, strict=True)]
            line = gap.join(parts).rstrip()
            yield heading(line) if n == 0 else line


def _stacked(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    names, *others = rows
    for n, row in enumerate(others):
        if n:
            yield ""
        yield heading(paragraph(f"{names[0]}: {row[0]}" if names[0] else row[0], hanging="  "))
        for name, cell in zip(names[1:], row[1:], strict=True):
            if cell:
                yield paragraph(f"{name}: {cell}", indent="  ", hanging="    ")
