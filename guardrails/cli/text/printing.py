"""
Prints for all commands: JSON, text at the terminal's width, errors.
"""

import json
import shutil
import sys
import textwrap

from collections.abc import Iterator, Sequence
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
    from guardrails.core.values.errors import GuardrailsError, NothingFoundError

    try:
        yield
    except NothingFoundError as error:
        tell_of_nothing(str(error))
    except GuardrailsError as error:
        fail(str(error))
    except OSError as error:
        fail(said_of(error))


def said_of(error: OSError) -> str:
    """
    What to say of a file, a pipe or a disk that fails.
    """
    if error.filename:
        return f"cannot use `{error.filename}`: {error.strerror}"
    return f"cannot go on: {error.strerror}" if error.strerror else str(error)


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
    return min(MAX_WIDTH, shutil.get_terminal_size().columns)


def heading(text: str) -> str:
    """
    Returns *text*, in bold if it is printed to a terminal.
    """
    return typer.style(printable(text), bold=True)


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


def table(rows: Sequence[Sequence[str]]) -> str:
    """
    *rows* in columns, the first row their headings, the first column as wide as it needs; long cells are wrapped.
    """
    first = max(len(row[0]) for row in rows)
    others = len(rows[0]) - 1
    room = (width() - first) // others - 2
    widths = [first, *([max(room, 8)] * others)]
    lines = []
    for n, row in enumerate(rows):
        cells = [textwrap.wrap(printable(cell), w) or [""] for cell, w in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = [(cell[i] if i < len(cell) else "").ljust(w) for cell, w in zip(cells, widths, strict=True)]
            line = "  ".join(parts).rstrip()
            lines.append(heading(line) if n == 0 else line)
    return "\n".join(lines)
