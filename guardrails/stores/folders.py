"""
The folders of one user for the files of programs, as each platform has them, and files that are that user's alone.
"""

import os
import sys


def state_folder() -> str:
    """
    Returns the folder for files that stay: `$XDG_STATE_HOME/guardrails`, or the platform's own.
    """
    said = os.environ.get("XDG_STATE_HOME", "")
    # The specification has it: a path that is not absolute is to be ignored.
    if not os.path.isabs(said):  # noqa: PTH117
        home = os.path.expanduser("~")  # noqa: PTH111
        if sys.platform == "win32":
            said = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")  # noqa: PTH118
        elif sys.platform == "darwin":
            said = os.path.join(home, "Library", "Application Support")  # noqa: PTH118
        else:
            said = os.path.join(home, ".local", "state")  # noqa: PTH118
    return os.path.join(said, "guardrails")  # noqa: PTH118


def make_private(path: str | os.PathLike[str]) -> None:
    """
    Make the empty file *path* for its owner only (0600). A file that is there keeps the mode that somebody gave it.

    The files that a database keeps beside its file have that file's mode. Raises OSError if it cannot be made.
    """
    try:  # noqa: SIM105  contextlib is one more import of a hook
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
    except FileExistsError:
        pass
