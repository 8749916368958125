"""
The files that commands write: looked at before long work, so that no transcript is overwritten, and written whole.
"""

import json
import os

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from .printing import fail, printable


if TYPE_CHECKING:
    from guardrails.offline.transcripts import Report
    from guardrails.offline.transcripts.files import Input

PAGE: Final = Path(__file__).with_name("page.html")
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Records, transcripts, folders; - is stdin.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write there a page to look at.")]


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


def must_have(calls: int, paths: list[str], report: "Report") -> None:
    """
    End the command if there are no *calls* in the files of *paths*, which the *report* tells of.
    """
    from guardrails.core.values.errors import NothingFoundError
    from guardrails.offline.transcripts.files import no_calls

    if not calls:
        raise NothingFoundError(no_calls(paths, report.without))


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """
    Write *text* to the file *path*, whose mode stays; a new one has *mode*. Ctrl-C leaves the old file or the new one.
    """
    from guardrails.stores.places import write_whole

    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
    else:
        write_whole(target, text.encode(), mode)


def page(command: Literal["report", "replay", "profile"], data: Any) -> str:
    """
    Returns a static file that draws *data*, which *command* prints with `--json`.
    """
    # ASCII without `<`: no text of it ends the element that holds it.
    text = json.dumps({"command": command, "data": data}, default=str).replace("<", "\\u003c")
    return PAGE.read_text(encoding="utf-8").replace("DATA", text, 1)


def write_page(path: Path | None, command: Literal["report", "replay", "profile"], data: Any) -> None:
    """
    Write it to *path*, if there is one, for its owner only.
    """
    if path is not None:
        write_text(path, page(command, data), 0o600)
        typer.echo(printable(f"A page is written to `{path}`."), err=True)
