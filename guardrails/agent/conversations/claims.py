"""
Which process goes on with a conversation: a lock that the system gives back when the process ends, however it ends.
"""

import os
import threading

from collections.abc import Callable
from typing import Final

from .file import ConversationError


try:
    import fcntl
except ImportError:  # no POSIX: two processes are told apart by `File.append` only, when the second one writes
    fcntl = None  # type: ignore[assignment]

_lock = threading.Lock()
_open: Final[dict[str, int]] = {}
"""Lock files by path. Never closed: to close any handle of a file gives back all locks on it."""
_held: Final[set[tuple[str, int]]] = set()
"""What this process holds: the system would let it in twice."""


class Claim:
    """
    The right to go on with the conversation *row* of the file *path*, until `release` or the end of the process.

    One byte of the lock file `PATH-lock` for each. Raises ConversationError, naming it *name*, if another holds it.
    """

    def __init__(self, path: str, row: int, name: str, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._key = (path, row)
        self._process = os.getpid()
        with _lock:
            if self._key in _held or not _locked(path, row):
                raise ConversationError(f"the conversation `{name}` is in use by another process, or by this one")
            _held.add(self._key)

    @property
    def held(self) -> bool:
        """
        Returns whether it is this process's still.
        """
        return self._key in _held and self._process == os.getpid()

    def release(self) -> None:
        """
        Give it back. A second time does nothing.
        """
        with _lock:
            if not self.held:
                return
            _held.discard(self._key)
            if fcntl is not None:
                path, row = self._key
                fcntl.lockf(_open[path], fcntl.LOCK_UN, 1, row)


def _locked(path: str, row: int) -> bool:
    if fcntl is None:
        return True
    if path not in _open:
        try:
            _open[path] = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConversationError(f"cannot open `{path}-lock`: {error.strerror}") from None
    try:
        fcntl.lockf(_open[path], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, row)
    except OSError:
        return False
    return True


def _after_fork() -> None:
    # Locks stay the parent's.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
