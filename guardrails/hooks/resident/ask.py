"""
The asking side: an event to the resident process and its answer back, within a bounded time.
"""

import os

from guardrails.policy.compiled.source import digest

from .folder import inside, is_own, opened, peer, socket_folder
from .start import ended, started
from .wire import MAX_REQUEST, awaited, sent


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


SILENT_S = 2.0
"""Seconds without a sign of life after which the resident process hangs: it sends one every half second."""
START_S = 5.0
"""The same for a process that was just started: it imports first, beside whatever else the machine does."""
_SWITCH = "GUARDRAILS_DENY_ALL"
_VARIABLES = (
    _SWITCH,
    *("HOME", "LANG", "LC_ALL", "LNAME", "LOGNAME", "TZ", "USER", "USERNAME"),
    *("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
"""What of the environment an answer, or a start, may depend on, and all that the resident process has of it."""


def ask(words: "list[str]", data: bytes) -> "tuple[bytes, bytes] | None":
    """
    Returns the resident process's answer to the event *data*, and its words to people. The *words* say the options. The
    process is started if there is none.

    Returns None if this process is to answer: nothing was done then, or what was done is done once only, by the ids of
    calls. A process that hangs costs `SILENT_S`, one that does not get started `START_S`; the first is ended.
    """
    if len(data) > MAX_REQUEST - (1 << 16):
        return None
    folder = -1
    try:
        import _socket

        if not hasattr(_socket, "AF_UNIX"):
            return None
        identity = _identity()
        name = digest(os.fsencode(identity))
        path = socket_folder()
        folder = opened(path)
        connection = _connected(folder, name)
        for start in (connection is None, True):
            if start:
                connection = _started(path, folder, name, identity)
            if connection is None:
                return None
            try:
                connection.sendall(sent([identity, *words], data))
                answer = awaited(connection)
            except TimeoutError:
                ended(folder, name, peer(connection)[1])
                return None
            finally:
                connection.close()
            # Refused: it leaves, as its code or policy is not what the files say any more.
            if answer is not None or start:
                return answer
    except Exception:  # noqa: BLE001, S110  no such calls here, no permission, no space: this process can answer
        pass
    finally:
        if folder >= 0:
            os.close(folder)
    return None


def _identity() -> str:
    """
    Returns the identity of a resident process, which serves one only. It holds a user, a version of the library and its
    place, an interpreter, an environment, a machine and a view of its files. Containers may share the folder.
    """
    import sys

    from guardrails.core.values.version import __version__

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    told = [f"{name}={value}" for name, value in _environment().items()]
    told += [_link(f"/proc/self/ns/{kind}") for kind in ("mnt", "pid")]
    return "\n".join([str(os.geteuid()), __version__, package, sys.executable, sys.version, os.uname().nodename, *told])


def _environment() -> "dict[str, str]":
    said = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    if said.get(_SWITCH):
        # From where this process is: the resident one is elsewhere.
        said[_SWITCH] = os.path.abspath(said[_SWITCH])  # noqa: PTH100
    return said


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  pathlib takes 5 ms
    except OSError:
        return ""


def _connected(folder: int, name: str, silent_s: "float | None" = None) -> "Any":
    """
    A connection to the socket *name* in *folder*. Returns None if nobody listens there.

    Raises OSError, also for a listener of another user.
    """
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(SILENT_S if silent_s is None else silent_s)
    try:
        inside(folder, lambda: connection.connect(f"{name}.sock"))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    if not is_own(connection):
        connection.close()
        raise PermissionError("another user's process")
    return connection


def _started(path: str, folder: int, name: str, identity: str) -> "Any":
    """
    A connection to a resident process that is started here, or just now by another. Returns None if there is none.
    """
    from time import sleep

    for _ in range(20):
        if started(path, folder, name, identity, _environment()):
            return _connected(folder, name, START_S)
        # Another process starts it, or it has just left.
        connection = _connected(folder, name)
        if connection is not None:
            return connection
        sleep(0.005)
    return None
