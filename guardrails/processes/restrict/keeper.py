"""
The process that stays outside of what it started, and ends all of it, if no namespace of processes does so.
"""

import os
import signal

from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from .libc import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, prctl


_LOOK_S: Final = 0.05
"""Between two looks at how many processes there are."""
_ROUNDS: Final = 1_000


class _Ended(BaseException):
    """
    Somebody asked for the end: a signal, or one process too many.
    """


def keep(*, most: int | None, temporary: str | None) -> None:
    """
    Split in two: it returns in the child, which becomes the program. The parent waits for it, kills whatever it left,
    removes the folder *temporary* and ends as the child did. More than *most* processes at once end all of them.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(125)
        os.setsid()
        return
    _stay(child, most, temporary)


def _stay(child: int, most: int | None, temporary: str | None) -> NoReturn:
    status: int = 0
    told = False
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _end)
        if most is not None:
            signal.signal(signal.SIGALRM, _looking(most))
            signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == child:
                break
    except _Ended as why:
        status, told = signal.SIGKILL, bool(why.args)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _end_all()
    if told:
        with suppress(OSError):
            os.write(2, b"guardrails: more processes than the limit allows; all of them were killed\n")
    if temporary is not None:
        with suppress(OSError):
            os.chmod(temporary, 0o700)
            empty(temporary)
            os.rmdir(temporary)
    if os.WIFSIGNALED(status):
        # As the child did, so that whoever waits for this process sees it.
        its = os.WTERMSIG(status)
        with suppress(OSError, ValueError):
            signal.signal(its, signal.SIG_DFL)
        os.kill(os.getpid(), its)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # one is enough, and a second would leave what is killed half done
    raise _Ended


def _looking(most: int) -> Callable[[int, FrameType | None], None]:
    def look(number: int, frame: FrameType | None) -> None:
        if len(_below(os.getpid())) > most:
            raise _Ended("processes")

    return look


def _end_all() -> None:
    """
    Kill all that descends from this process. They are stopped first, so that no new one comes while they are killed.
    """
    for _ in range(_ROUNDS):
        while True:
            try:
                ended, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended == 0:
                break
        stopped: set[int] = set()
        for _ in range(_ROUNDS):
            new = _below(os.getpid()) - stopped
            if not new:
                break
            for pid in new:
                with suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new
        for pid in stopped:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _below(root: int) -> set[int]:
    """
    The processes that descend from *root*; those whose parent ended belong to it too.
    """
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    parents.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    left = [root]
    while left:
        children = [pid for pid in parents.get(left.pop(), ()) if pid not in found]
        found.update(children)
        left += children
    return found


def empty(folder: str) -> None:
    """
    Remove all that is in *folder*, however deep and whatever its modes, following no link. A file that cannot be
    removed stays.
    """
    with suppress(OSError):
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _empty(root)
        finally:
            os.close(root)


def _empty(root: int) -> None:
    number = 0
    for _ in range(_ROUNDS * _ROUNDS):
        names = os.listdir(root)
        if not names:
            return
        gone = False
        for name in names:
            with suppress(OSError):
                try:
                    os.unlink(name, dir_fd=root)
                    gone = True
                    continue
                except (IsADirectoryError, PermissionError):
                    pass
                with suppress(OSError):
                    os.rmdir(name, dir_fd=root)
                    gone = True
                    continue
                inner = _opened(name, root)
                try:
                    # Its content moves up, so that no depth is too deep.
                    for below in os.listdir(inner):
                        number += 1
                        os.rename(below, f".{number}", src_dir_fd=inner, dst_dir_fd=root)
                        gone = True
                finally:
                    os.close(inner)
        if not gone:
            return


def _opened(name: str, root: int) -> int:
    """
    The folder *name* in *root*, made readable first. A link is not followed.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, dir_fd=root)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=root)
        handle = os.open(name, flags, dir_fd=root)
    os.fchmod(handle, 0o700)
    return handle
