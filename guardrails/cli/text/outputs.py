"""
The files that commands write. They are looked at before long work, so that no transcript is overwritten, and named
after it.
"""

import os

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .printing import fail, printable


if TYPE_CHECKING:
    from guardrails.offline.transcripts.inputs import Input


def without_outputs(files: "Sequence[Input]", outputs: Mapping[str, Path | None]) -> "list[Input]":
    """
    *files* but for those of a folder that are *outputs* (option to path) of an earlier run.

    Ends the command if an output cannot be written, is a file that is to be read, or is another output too.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    places: dict[str, str] = {}
    for option, path in given.items():
        why = _unwritable(path)
        if why is not None:
            fail(f"cannot write `{path}`: {why}")
        other = places.setdefault(os.path.realpath(path), option)
        if other != option and not _is_special(path):
            fail(f"`{other}` and `{option}` are the same file `{path}`")
    left = []
    for file in files:
        option = next(filter(None, (places.get(os.path.realpath(path)) for path in file.paths)), "")
        if not option:
            left.append(file)
        elif not file.found:
            fail(f"`{option}` would overwrite `{file.path}`, which is to be read")
    return left


def write_whole(path: Path, text: str, mode: int = 0o666) -> None:
    """
    Write *text* to the file *path*, whose mode stays; a new one has *mode*. Ctrl-C leaves the old file or the new one.
    Ends the command if that fails.
    """
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8")
            return
        target = Path(os.path.realpath(path))
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            unfinished.touch(mode)
            unfinished.write_text(text, encoding="utf-8")
            if target.exists():
                unfinished.chmod(target.stat().st_mode & 0o7777)
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        fail(f"cannot write `{path}`: {error.strerror}")


def _unwritable(path: Path) -> str | None:
    """
    Why nothing can be written to *path*, as far as can be told without writing; None: it may well be.
    """
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"no folder `{path.parent}`"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return "it may not be written"
    return None


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def tell_of_written(path: Path, what: str) -> None:
    """
    Say on stderr *what* was written, where, and how large it is.
    """
    size = f" ({path.stat().st_size:,} bytes)" if path.is_file() else ""
    typer.echo(printable(f"{what} written to `{path}`{size}."), err=True)
