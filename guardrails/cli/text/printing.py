"""
Prints for all commands: JSON, text at the terminal's width, errors.
"""

import json
import os
import shutil
import sys
import textwrap

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
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
    from guardrails.core.values.errors import GuardrailsError, NothingFoundError, os_message

    try:
        yield
    except NothingFoundError as error:
        tell_of_nothing(str(error))
    except GuardrailsError as error:
        fail(str(error))
    except OSError as error:
        fail(os_message(error))


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


def table(rows: Sequence[Sequence[str]], *, figures: bool = False, wide: bool = False) -> str:
    """
    *rows* in columns, the first row their headings; long cells are wrapped.

    *figures*: all columns but the first are numbers, to the right; the first is short and stays whole. *wide*: no cell is wrapped where no person reads it.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    told = [[Text(printable(cell)) for cell in row] for row in rows]
    natural = sum(max(cell.cell_len for cell in column) + 2 for column in zip(*told, strict=True))
    person = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(file=StringIO(), width=natural if wide and not person else width(), color_system=None)
    gap = 2 if natural - 2 <= console.width else 1
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="")
    for n, name in enumerate(told[0]):
        right = figures and n > 0
        shown.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=figures and n == 0)
    for row in told[1:]:
        shown.add_row(*row)
    with console.capture() as captured:
        console.print(shown)
    first, *others = [line.rstrip() for line in captured.get().splitlines()]
    return "\n".join([heading(first), *others])
