"""
Prints for all commands: sentences and tables at the terminal's width, JSON, progress, errors.
"""

import json
import os
import shutil
import sys
import textwrap

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final, NoReturn

import typer


FOUND: Final = 1
"""Exit code: done, and something was found."""
USAGE: Final = 2
"""Exit code: it cannot be done as it was asked for."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""
MAX_WIDTH: Final = 100
WIDEST: Final = 10_000
"""Characters to a line of a table that no person reads."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def print_json(data: Any) -> None:
    """
    *data* for another program, in ASCII, so that any output can take it.
    """
    typer.echo(json.dumps(data, indent=2, default=str))


def fail(message: str, code: int = USAGE) -> NoReturn:
    """
    Say on stderr why there is no result, and end.
    """
    typer.echo(printable(message), err=True)
    raise typer.Exit(code)


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


def say(text: str, indent: int = 0) -> None:
    """
    Sentences, or one point of a list, wrapped at the terminal's width; its further lines stand two columns to the right.
    """
    whole_words: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    lines = textwrap.wrap(printable(text), width() - indent, subsequent_indent="  ", **whole_words)
    typer.echo(textwrap.indent("\n".join(lines), " " * indent))


def points(heading: str, lines: Sequence[str], most: int = 6) -> None:
    """
    A list under its *heading*, the first *most* of it; nothing if it is empty.
    """
    if lines:
        typer.echo(f"\n{printable(heading)}")
    for line in lines[:most]:
        say(line, 2)
    if len(lines) > most:
        say(f"and {len(lines) - most:,} more", 2)


def observed(calls: int, worked: int) -> None:
    """
    How many calls guards in observe mode objected to when they were recorded; nothing if none.
    """
    if calls:
        refused = f"they would have refused {calls:,}, of which {worked:,} had worked"
        say(f"When these calls were recorded, guards observed them: {refused}.")


def table(rows: Iterable[Sequence[str]], *, figures: bool = False) -> None:
    """
    *rows* in columns, the first row their headings. Cells are wrapped at the terminal's width; without a terminal a row is
    one line. *figures*: all columns but the first are numbers, which end in one column and are never wrapped.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headings, *others = [[Text(printable(cell)) for cell in row] for row in rows]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for n, name in enumerate(headings):
        whole = max((len(row[n]) for row in others), default=0) if figures and n else None
        grid.add_column(name, justify="right" if figures and n else "left", overflow="fold", min_width=whole)
    for row in others:
        grid.add_row(*row)
    person = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=width() if person else WIDEST, color_system=None)
    with console.capture() as captured:
        console.print(grid)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show(parts: Mapping[str, Any], *, as_json: bool = False) -> None:
    """
    A document: as JSON, or its fields a row each; of a list a row each, and empty ones left out.
    """
    if as_json:
        print_json(parts)
        return
    rows = [("field", "value")]
    for name, value in parts.items():
        many = value if isinstance(value, list | tuple) else [value]
        rows += [("" if n else name, _text(each)) for n, each in enumerate(many) if each not in (None, "", {}, [])]
    table(rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(each)}" for name, each in value.items() if each not in (None, "", {}, []))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], object] | None]:
    """
    Returns a function that shows a line of progress on a terminal; None if nobody looks.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("reading", spinner="line") as status:
        yield lambda line: status.update(escape(printable(line)))
