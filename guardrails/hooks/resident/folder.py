"""
The folder of the sockets: this user's alone, and both sides look whether it is.
"""

import os


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_MACOS_LEVEL, _MACOS_USER, _MACOS_PROCESS = 0, 1, 2
"""SOL_LOCAL, LOCAL_PEERCRED, whose `struct xucred` has the user second, and LOCAL_PEERPID."""


def socket_folder() -> str:
    """
    The folder for sockets: below `$XDG_RUNTIME_DIR`, which ends with the login, else below the user's cache.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):  # noqa: PTH112, PTH117
        return os.path.join(runtime, "guardrails")  # noqa: PTH118
    from guardrails.stores.folders import cache_folder

    return os.path.join(cache_folder(), "run")  # noqa: PTH118


def opened(path: str) -> int:
    """
    A descriptor of the folder *path*, which is made if it is not there. All that is done there is done by it, so that nobody
    can put another folder in its place.

    Raises OSError if it is a link, another user's, or open to others.
    """
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        os.close(folder)
        raise PermissionError(f"`{path}` is not this user's alone")
    return folder


def inside(folder: int, act: "Any") -> None:
    """
    Call *act* with *folder* as the working directory, then go back: a path of a socket may be some hundred bytes only.

    Raises OSError.
    """
    back = os.open(".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
    try:
        os.fchdir(folder)
        try:
            act()
        finally:
            os.fchdir(back)
    finally:
        os.close(back)


def peer(connection: "Any") -> "tuple[int, int]":
    """
    The user and the process on the other side of *connection*; -1: the platform does not tell, and the folder has to do.

    Raises OSError.
    """
    import _socket
    import sys

    if hasattr(_socket, "SO_PEERCRED"):
        told = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return int.from_bytes(told[4:8], sys.byteorder), int.from_bytes(told[:4], sys.byteorder)
    if sys.platform == "darwin":
        told = connection.getsockopt(_MACOS_LEVEL, _MACOS_USER, 76)
        process = connection.getsockopt(_MACOS_LEVEL, _MACOS_PROCESS, 4)
        return int.from_bytes(told[4:8], sys.byteorder), int.from_bytes(process, sys.byteorder)
    return -1, -1


def is_own(connection: "Any") -> bool:
    """
    Returns whether the other side of *connection* is a process of this user, as far as the platform tells.
    """
    try:
        return peer(connection)[0] in (-1, os.geteuid())
    except OSError:
        return False
