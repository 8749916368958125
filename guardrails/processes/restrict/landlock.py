"""
Landlock: files by folder, connections, signals, for this process and all that it starts.
"""

import ctypes
import os
import stat

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from .libc import system_call


_CREATE: Final = 444
_ADD: Final = 445
_RESTRICT: Final = 446
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_MAKE_DEVICES: Final = 1 << 6 | 1 << 11
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_DEVICE_CONTROL: Final = 1 << 15
_ALL: Final = (1 << 13) - 1
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE_CONTROL
LEAST_ABI: Final = 3
"""Before it a file outside could be emptied."""
SCOPES_ABI: Final = 6
"""From it on, signals and abstract sockets stay inside."""


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Below(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def abi() -> int:
    """
    The version of Landlock that the kernel has; 0 if it has none, or if it is switched off.
    """
    try:
        return system_call(_CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict(
    *,
    readable: Sequence[str],
    listed: Sequence[str],
    writable: Sequence[str],
    devices: Sequence[str],
    files: bool,
    network: bool,
) -> None:
    """
    Leave this process what is below *readable*, *writable* and *devices*, the names below *listed*, and with *network* its
    connections.

    Without *files* only signals and abstract sockets are kept inside, as far as the kernel can. Paths that do not exist
    are passed over. It needs no_new_privs. Raises OSError if the kernel refuses.
    """
    version = abi()
    handled = _handled(version) if files else 0
    scoped = 3 if version >= SCOPES_ABI else 0
    connections = 3 if version >= 4 and not network else 0
    if not (handled or scoped or connections):
        return
    size = 24 if version >= SCOPES_ABI else 16 if version >= 4 else 8
    rules = system_call(_CREATE, ctypes.pointer(_Rules(handled, connections, scoped)), size, 0)
    try:
        if files:
            for path in readable:
                _allow(rules, path, handled & (_EXECUTE | _READ | _LIST))
            for path in listed:
                _allow(rules, path, handled & _LIST)
            for path in writable:
                _allow(rules, path, handled & ~(_MAKE_DEVICES | _DEVICE_CONTROL))
            for path in devices:
                _allow(rules, path, handled & (_READ | _WRITE | _TRUNCATE | _DEVICE_CONTROL))
        system_call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _handled(version: int) -> int:
    return (
        _ALL
        | (_REFER if version >= 2 else 0)
        | (_TRUNCATE if version >= 3 else 0)
        | (_DEVICE_CONTROL if version >= 5 else 0)
    )


def _allow(rules: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, PermissionError):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                rights &= _OF_FILES
            system_call(_ADD, rules, 1, ctypes.pointer(_Below(rights, handle)), 0)
        finally:
            os.close(handle)
