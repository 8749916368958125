"""
What to judge: files, and the files in folders.
"""

import os

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple


STDIN: Final = "-"
MANY: Final = 15
"""Files of one folder from which on they are one source: a table with a row for each session file says nothing."""


class Input(NamedTuple):
    """
    One file.
    """

    path: str
    found: bool
    """In a folder; else it was given by name."""
    folder: str | None = None
    """What a table calls it in place of its own name: the folder that it was found in among many."""

    @property
    def size(self) -> int:
        """
        Its bytes; 0 for standard input, and for what is no longer there.
        """
        try:
            return 0 if self.path == STDIN else Path(self.path).stat().st_size
        except OSError:
            return 0


def inputs(paths: Iterable[str | os.PathLike[str]]) -> list[Input]:
    """
    The files of *paths*, those of a folder in the order of their names, hidden ones left out; each file once.

    Raises FileNotFoundError for the first that is not there.
    """
    found: dict[str, Input] = {}
    for path in paths:
        for each in _files(str(path)):
            found.setdefault(each.path if each.path == STDIN else os.path.realpath(each.path), each)
    return list(found.values())


def _files(path: str) -> Iterator[Input]:
    if path == STDIN or Path(path).is_file():
        yield Input(path, found=False)
    elif Path(path).is_dir():
        for folder, below, names in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            files = [Path(folder, name) for name in sorted(names) if not name.startswith(".")]
            files = [file for file in files if file.is_file()]
            source = Path(folder).resolve().name if len(files) > MANY else None
            yield from (Input(str(file), True, source) for file in files)  # noqa: FBT003
    elif Path(path).exists():
        # A pipe or a device: read as it comes.
        yield Input(path, found=False)
    else:
        raise FileNotFoundError(f"no file or folder `{path}`")
