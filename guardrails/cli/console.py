"""
What commands share: their options, the files that they read and write, and texts, tables, JSON, progress and errors.
"""

import json
import os
import re
import shutil
import sys
import textwrap

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from guardrails.offline.figures import one_line


if TYPE_CHECKING:
    from guardrails.offline.transcripts.files import Input

FINDINGS: Final = 1
"""Exit code: done, and something was found."""
USAGE: Final = 2
"""Exit code: it cannot be done as it was asked for."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""
WIDEST: Final = 10_000
"""Characters to a line of a table that no person reads."""
PAGE: Final = Path(__file__).with_name("page.html")
EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [])
"""Values that a table leaves out."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Records, transcripts, folders; - is stdin.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write there a page to look at.")]


def print_json(data: Any) -> None:
    """
    *data* for another program, in ASCII, so that any output can take it.
    """
    typer.echo(json.dumps(data, indent=2, default=str))


def fail(message: str, code: int = USAGE) -> NoReturn:
    """
    Say on stderr why there is no result, and end.
    """
    echo(message, err=True)
    raise typer.Exit(code)


def printable(text: str) -> str:
    """
    *text* without control characters, line feeds and tabs kept: what tools and models wrote must not steer a terminal.
    """
    return re.sub(r"[^\n\t]+", lambda part: one_line(part[0]), text)


def echo(text: str, *, err: bool = False) -> None:
    """
    Print *text*, as far as it is printable.
    """
    typer.echo(printable(text), err=err)


def width() -> int:
    """
    Characters to a line: those of the terminal, at most 100.
    """
    return min(100, shutil.get_terminal_size().columns)


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
    one line. *figures*: all columns but the first are numbers, which end in one column and are never wrapped; an empty line
    stands before and behind.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headings, *others = [[Text(printable(cell)) for cell in row] for row in rows]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for n, name in enumerate(headings):
        number = figures and n > 0
        grid.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in others:
        grid.add_row(*row)
    person = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=width() if person else WIDEST, color_system=None)
    with console.capture() as captured:
        console.print(grid)
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    typer.echo(f"\n{text}\n" if figures else text)


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
        rows += [("" if n else name, _text(each)) for n, each in enumerate(many) if each not in EMPTY]
    table(rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(each)}" for name, each in value.items() if each not in EMPTY)
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


def inputs_of(paths: list[str], **outputs: Path | None) -> "list[Input]":
    """
    Returns the files of *paths* and of folders among them, but for *outputs* (option to file) of an earlier run.

    Ends the command if one is not there, or if an output cannot be written or is a file that is to be read.
    """
    from guardrails.offline.transcripts.files import inputs

    named = {option: path for option, path in outputs.items() if path is not None}
    for path in named.values():
        if path.is_dir() or not path.parent.is_dir():
            fail(f"cannot write `{path}`: {'it is a folder' if path.is_dir() else f'no folder `{path.parent}`'}")
    written = {os.path.realpath(path): option for option, path in named.items()}
    files = []
    for file in inputs(paths):
        own = [written[place] for place in map(os.path.realpath, file.parts) if place in written]
        if own and not file.from_folder:
            fail(f"`--{own[0]}` would overwrite `{file.path}`, which is to be read")
        files += [] if own else [file]
    return files


def must_have(calls: int, paths: list[str], others: Mapping[str, str]) -> None:
    """
    End the command if there are no *calls* in the files of *paths*, where *others* are files without any, and why.
    """
    from guardrails.core.values.errors import NothingFoundError
    from guardrails.offline.transcripts.files import no_calls

    if not calls:
        raise NothingFoundError(no_calls(paths, others))


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """
    Write *text* to the file *path*, whose mode stays; a new one has *mode*. Ctrl-C leaves the old file or the new one.
    """
    from guardrails.stores.places import write_whole

    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        write_whole(os.path.realpath(path), text.encode(), mode)


def page(command: str, data: Any) -> str:
    """
    Returns a static file that draws *data*, which *command* prints with `--json`.
    """
    # ASCII without `<`: no text of it ends the element that holds it.
    text = json.dumps({"command": command, "data": data}, default=str).replace("<", "\\u003c")
    return PAGE.read_text(encoding="utf-8").replace("DATA", text, 1)


def write_page(path: Path | None, command: str, data: Any) -> None:
    """
    Write it to *path*, if there is one, for its owner only.
    """
    if path is not None:
        write_text(path, page(command, data), 0o600)
        echo(f"A page is written to `{path}`.", err=True)
