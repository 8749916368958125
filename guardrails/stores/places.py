"""
Stores by the names that a command line gives them, and the files of one user. No store is imported until it is opened.
"""

import os
import sys


TYPE_CHECKING = False

if TYPE_CHECKING:
    from .persistence import PersistentStore


def store_at(place: str, *, namespace: str = "guardrails", timeout: float = 5.0) -> "PersistentStore":
    """
    Returns the store at *place*, a server's under *namespace* (of PostgreSQL in the table `NAMESPACE_states`); a file is
    made if it is not there, for its owner only.

    Raises StoreError if it cannot be used, MissingExtra for a URL without the package it needs.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from .postgres import PostgresStore

        return PostgresStore(place, table=f"{namespace}_states", timeout=timeout)
    if is_url(place):
        from .redis import RedisStore

        return RedisStore(place, namespace=namespace, timeout=timeout)
    from .sqlite import SqliteStore

    return SqliteStore(place, timeout=timeout)


def is_url(place: str) -> bool:
    """
    Returns whether *place* is a URL (`redis://`, `rediss://`, `unix://`, `postgresql://`), else the path of a file.
    """
    return "://" in place


def whole_place(place: str) -> str:
    """
    Returns *place* as it means the same in every working directory.
    """
    return place if is_url(place) else os.path.abspath(place)


def shown_place(place: str) -> str:
    """
    Returns *place* without the secrets of a URL: user, password, options.
    """
    scheme, url, rest = place.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if url else place


def state_folder() -> str:
    """
    Returns the folder for files that stay: `$XDG_STATE_HOME/guardrails`, or the platform's own.
    """
    folder = os.environ.get("XDG_STATE_HOME", "")
    # The specification has it: a path that is not absolute is to be ignored.
    if not os.path.isabs(folder):
        folder = os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else "~/.local/state")
        if sys.platform == "win32":
            folder = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
    return os.path.join(folder, "guardrails")


def write_whole(path: str | os.PathLike[str], content: bytes, mode: int = 0o666) -> None:
    """
    Put a file of *content* in the place of *path*, all or nothing: a full disk or a kill leaves the old one.

    The mode of a file that is there stays, without the bits that let a program run as its owner; a new one has *mode*. A
    link is replaced as such. Raises OSError.
    """
    made = os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.tmp")
    try:
        with open(made, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            # The mode of a link says nothing: all may write to it.
            if os.path.isfile(path) and not os.path.islink(path):
                os.chmod(made, os.stat(path).st_mode & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, path)
    except BaseException:
        if os.path.lexists(made):
            os.unlink(made)
        raise


def make_private(path: str | os.PathLike[str]) -> None:
    """
    Make the empty file *path* for its owner only (0600). A file that is there keeps the mode that somebody gave it.

    The files that a database keeps beside its file have that file's mode. Raises OSError if it cannot be made.
    """
    try:  # noqa: SIM105  contextlib is one more import of a hook
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
    except FileExistsError:
        pass
