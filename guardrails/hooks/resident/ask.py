"""
The asking side: an event to the resident process and its answer back, within a bounded time.
"""

import os

from guardrails.policy.compiled.source import digest

from .folder import inside, opened, own_peer, socket_folder
from .start import ended, started
from .wire import MAX_REQUEST, WireError, awaited, sent


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


SILENT_S = 2.0
"""Seconds without a sign of life after which the resident process hangs: it sends one every half second."""
_VARIABLES = ("HOME", "LANG", "LC_ALL", "LOCALAPPDATA", "TZ", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
"""What of the environment an answer may depend on."""


def ask(words: "list[str]", data: bytes) -> "bytes | None":
    """
    The resident process's answer to the event *data* by *words*, which say the options; it is started if there is none.

    Returns None if this process is to answer: nothing was done then, or what was done is done once only, by the ids of
    calls. A process that hangs costs `SILENT_S`, and is ended.
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
                ended(folder, name)
                return None
            finally:
                connection.close()
            # Refused: it leaves, as its code or policy is not what the files say any more.
            if answer is not None or start:
                return answer
    except (OSError, WireError, ImportError, AttributeError):
        # No such calls on this platform, no permission, no space: whatever it is, this process can answer.
        pass
    finally:
        if folder >= 0:
            os.close(folder)
    return None


def _identity() -> str:
    """
    What one resident process is for: a user, a version of the library, where it is, an interpreter, an environment.
    """
    import sys

    from guardrails.core.values.version import __version__

    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    told = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    return "\n".join(["1", str(os.geteuid()), __version__, package, sys.executable, sys.version, *told])


def _connected(folder: int, name: str) -> "Any":
    """
    A connection to the socket *name* in *folder*. Returns None if nobody listens there.

    Raises OSError, also for a listener of another user.
    """
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(SILENT_S)
    try:
        inside(folder, lambda: connection.connect(f"{name}.sock"))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    if not own_peer(connection):
        connection.close()
        raise PermissionError("another user's process")
    return connection


def _started(path: str, folder: int, name: str, identity: str) -> "Any":
    """
    A connection to a resident process that is started here, or just now by another. Returns None if there is none.
    """
    from time import sleep

    for _ in range(20):
        if started(path, folder, name, identity, {key: os.environ[key] for key in _VARIABLES if key in os.environ}):
            return _connected(folder, name)
        # Another process starts it, or it has just left.
        connection = _connected(folder, name)
        if connection is not None:
            return connection
        sleep(0.005)
    return None
