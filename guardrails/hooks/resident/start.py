"""
One resident process started and one that hangs ended: who holds the lock beside the socket is the one.
"""

import os
import sys


FAILED_S = 60
"""Seconds in which a start is not tried again that has come to nothing: each costs as much as an answer."""
BACKLOG = 128
_STARTING = b"starting "
_CODE = """import os, sys
os.chdir("/")
sys.path[:] = sys.argv[1].splitlines()
from guardrails.hooks.resident.process import main
main(*sys.argv[2:])"""


class FailedError(OSError):
    """
    The last start came to nothing a moment ago.
    """


def started(path: str, folder: int, name: str, identity: str, environment: "dict[str, str]") -> bool:
    """
    Returns whether a resident process was started for the socket *name* in *folder*, whose path is *path*. The socket
    listens already, so that a request can be sent while the process imports.

    False: another process holds the lock. Raises OSError.
    """
    if getattr(sys, "frozen", False):
        raise OSError("a program that is no interpreter starts itself only")
    import fcntl

    from _socket import AF_UNIX, SOCK_STREAM, socket
    from time import time

    from .folder import inside

    lock = os.open(f"{name}.lock", _flags(os.O_CREAT), 0o600, dir_fd=folder)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        said = os.pread(lock, 64, 0)
        if said.startswith(_STARTING) and 0 <= time() - float(said[len(_STARTING) :]) < FAILED_S:
            raise FailedError("the last start came to nothing")
        say(lock, _STARTING + b"%d" % time())
        try:  # noqa: SIM105  contextlib takes 2 ms
            os.unlink(f"{name}.sock", dir_fd=folder)
        except FileNotFoundError:
            pass
        listener = socket(AF_UNIX, SOCK_STREAM)
        try:
            inside(folder, lambda: listener.bind(f"{name}.sock"))
            listener.listen(BACKLOG)
            _spawn(lock, listener.fileno(), [path, name, identity], environment)
        finally:
            listener.close()
    finally:
        os.close(lock)
    return True


def say(lock: int, said: bytes) -> None:
    """
    Put *said* in the file *lock* in place of what it holds.
    """
    os.pwrite(lock, said, 0)
    os.ftruncate(lock, len(said))


def ended(folder: int, name: str, process: int) -> None:
    """
    End the resident process of *name* that does not answer, if it is *process*: it would cost each next call as much.

    One that is still starting goes on, and so does the next one that another asker has started meanwhile. Raises OSError.
    """
    import fcntl

    try:
        lock = os.open(f"{name}.lock", _flags(0), dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # It holds the lock, so the number in it is that of a process that lives.
            if os.pread(lock, 64, 0) == b"%d" % process:
                os.kill(process, 9)
    finally:
        os.close(lock)


def _flags(more: int) -> int:
    return os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | more


def _spawn(lock: int, listener: int, words: "list[str]", environment: "dict[str, str]") -> None:
    """
    Start the process in a session of its own, with no descriptor but *lock* and *listener* and the three of no device.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    here = os.getcwd()  # noqa: PTH109
    # The working directory may be on the path (`python -m`), where the code of a project is that is not trusted.
    paths = [found for found in sys.path if found == package or (os.path.isabs(found) and found != here)]  # noqa: PTH117
    paths += [] if package in paths else [package]
    flags = ["-B"] if sys.dont_write_bytecode else []
    flags += [f"-Xpycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.set_inheritable(lock, True)  # noqa: FBT003
    os.set_inheritable(listener, True)  # noqa: FBT003
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", *flags, "-c", _CODE, "\n".join(paths), str(lock), str(listener), *words],
        environment,
        file_actions=null,
        # Elsewhere it may not be there; the process does it too.
        setsid=sys.platform == "linux",
    )
