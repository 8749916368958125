"""
The folders elsewhere in which git keeps parts of a workspace.
"""

import os
import re

from pathlib import Path
from typing import Final


_WORKTREE: Final = re.compile(r"^[ \t]*worktree[ \t]*=(.*)$", re.MULTILINE)
_READ: Final = 65_536


def git_folder(workspace: str, home: str) -> str | None:
    """
    Returns the folder in which git keeps the repository of *workspace*: a part, a linked worktree or a submodule of it.

    Returns None if that lies in the workspace, if there is none, and for a repository of the whole *home*. A path that
    the workspace names is believed if that folder names the workspace. A program can write in the one and not in the
    other.
    """
    own = _real(workspace)
    for folder in (own, *own.parents):
        kept = folder / ".git"
        if folder == _real(home):
            return None
        if kept.is_dir():
            return None if folder == own else str(_real(kept))
        if kept.is_file():
            linked = _linked(kept)
            return None if linked is None or own in (linked, *linked.parents) else str(linked)
    return None


def _linked(kept: Path) -> Path | None:
    """
    The repository to which the file *kept* leads, and which leads back to it.
    """
    try:
        said, _, text = _text(kept).strip().partition(": ")
        folder = _real(kept.parent / text)
        if said != "gitdir" or not (folder / "HEAD").is_file():
            return None
        if folder.parent.name == "worktrees":
            return folder.parent.parent if _real(_text(folder / "gitdir").strip()) == _real(kept) else None
        back = _WORKTREE.search(_text(folder / "config"))
        return folder if back is not None and _real(folder / back[1].strip()) == _real(kept.parent) else None
    except (OSError, ValueError):
        return None


def _text(file: Path) -> str:
    with file.open(encoding="utf-8") as opened:
        return opened.read(_READ)


def _real(path: "str | Path") -> Path:
    return Path(os.path.realpath(path))
