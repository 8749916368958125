"""
The files that commands write: looked at before long work, so that no transcript is overwritten, and written whole.
"""

import base64
import hashlib
import json
import os
import shutil

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from .printing import fail, printable


if TYPE_CHECKING:
    from guardrails.offline.transcripts.inputs import Input

PAGE: Final = Path(__file__).with_name("page.html")
Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Records, transcripts, folders of them; - is stdin.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write there a page to look at.")]


def inputs_of(paths: list[str], **outputs: Path | None) -> "list[Input]":
    """
    Returns the files of *paths* and of folders among them, but for *outputs* (option to file) of an earlier run.

    Ends the command if one is not there, or if an output cannot be written or is a file that is to be read.
    """
    from guardrails.offline.transcripts.inputs import inputs

    try:
        files = inputs(paths)
    except OSError as error:
        fail(str(error))
    options: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.is_dir() or not path.parent.is_dir():
            fail(f"cannot write `{path}`: {'it is a folder' if path.is_dir() else f'no folder `{path.parent}`'}")
        options[os.path.realpath(path)] = option
    clashes = {
        file: options[place] for file in files for place in map(os.path.realpath, file.parts) if place in options
    }
    for file, option in clashes.items():
        if not file.found:
            fail(f"`--{option}` would overwrite `{file.path}`, which is to be read")
    return [file for file in files if file not in clashes]


def write_whole(path: Path, text: str, mode: int = 0o666) -> None:
    """
    Write *text* to the file *path*, whose mode stays; a new one has *mode*. Ctrl-C leaves the old file or the new one.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.touch(mode)
        if target.exists():
            shutil.copymode(target, unfinished)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def page(command: Literal["report", "replay", "profile"], data: Any) -> str:
    """
    Returns a static file that draws *data*, which *command* prints with `--json`.
    """
    head, _, rest = PAGE.read_text(encoding="utf-8").partition("DATA")
    script = rest.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # ASCII without `<`: no text of it ends the element that holds it.
    text = json.dumps({"command": command, "data": data}, default=str).replace("<", "\\u003c")
    return head.replace("SCRIPT", f"sha256-{digest}") + text + rest


def write_page(path: Path | None, command: Literal["report", "replay", "profile"], data: Any) -> None:
    """
    Write it to *path*, if there is one, for its owner only.
    """
    if path is not None:
        write_whole(path, page(command, data), 0o600)
        typer.echo(printable(f"A page is written to `{path}`."), err=True)
