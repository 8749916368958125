"""
The switch that stops every tool call of a user's processes: a file, whose text is the reason.
"""

import os
import threading

from typing import Final

from guardrails.core.engine.refusals import stopped
from guardrails.core.text.control import cleaned
from guardrails.core.values.logs import log
from guardrails.core.values.types import Denial
from guardrails.policy.source import at_once
from guardrails.stores.folders import state_folder


VARIABLE: Final = "GUARDRAILS_DENY_ALL"
"""Names the file, for processes that share no home."""
LOOK_S: Final = 0.1
"""Seconds between two looks."""
MAX_REASON: Final = 500
"""Bytes of a reason."""
Stamp = tuple[int, int, int, int]


def switch_file() -> str:
    """
    Returns the path of the switch's file, which need not exist.
    """
    return os.environ.get(VARIABLE) or os.path.join(state_folder(), "deny_all")  # noqa: PTH118


def reason_of(path: str) -> str | None:
    """
    Returns the reason for which *path* stops every call. Returns None if there is no such file. Raises OSError if nobody
    can say so, as its folder may not be searched.
    """
    try:
        with open(path, "rb", opener=at_once) as file:
            return (file.read(MAX_REASON) or b"").decode("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        # It is there: whoever put it there wants no call.
        return ""


def turn_on(path: str, reason: str) -> None:
    """
    Stop every call for a *reason*. Raises OSError if the file cannot be written.
    """
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
    written = f"{path}.{os.getpid()}"
    with open(written, "wb") as file:  # noqa: PTH123
        file.write(reason.encode("utf-8", "replace")[:MAX_REASON])
    os.replace(written, path)  # noqa: PTH105


def turn_off(path: str) -> bool:
    """
    Let calls through again. Returns whether they were stopped. Raises OSError if the file cannot be removed.
    """
    try:
        os.unlink(path)  # noqa: PTH108
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class Switch:
    """
    The content of the switch's file, looked at every `LOOK_S` at most. Safe in any number of threads.
    """

    def __init__(self) -> None:
        self._due_s = 0.0
        self._seen: tuple[str, Stamp | None] = "", None
        self._said: Denial | None = None
        self._lock = threading.Lock()

    def look(self, now_s: float) -> Denial | None:
        """
        Returns the denial that stops every call when the process's own clock says *now_s*. Returns None if no switch
        stops calls.
        """
        if now_s >= self._due_s:
            with self._lock:
                self._look()
                self._due_s = now_s + LOOK_S
        return self._said

    def _look(self) -> None:
        path = switch_file()
        seen = path, stamp_of(path)
        if seen == self._seen and (seen[1] is not None or self._said is None):
            return
        reason = None
        try:
            reason = reason_of(path)
        except OSError as error:
            log.error("the switch `%s` cannot be looked at, so it stops no call: %s", path, error.strerror or error)
        if reason is not None:
            log.warning("every tool call is denied, as `%s` says: %s", path, cleaned(reason))
        elif self._said is not None:
            log.warning("tool calls are let through again: `%s` is gone", path)
        self._seen, self._said = seen, None if reason is None else stopped(reason)

    def renew(self) -> None:
        """
        Let a process that forked take no lock along.
        """
        self._lock = threading.Lock()


def stamp_of(path: str) -> Stamp | None:
    """
    Returns a stamp that tells one version of the file *path* from another. Returns None if no file can be seen.
    """
    try:
        return stamp(os.stat(path))  # noqa: PTH116
    except OSError:
        return None


def stamp(found: os.stat_result) -> Stamp:
    """
    Returns the same of a file whose status was *found*.
    """
    # Who copies with the times of the original keeps all but the time of the change.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


SWITCH: Final = Switch()
"""That of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SWITCH.renew)
