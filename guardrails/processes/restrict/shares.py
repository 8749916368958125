"""
The share of the machine that a program may take, and the rights of root that it may not.
"""

import ctypes
import os
import resource

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from .libc import PR_CAP_AMBIENT, PR_CAPBSET_DROP, _libc, prctl


_RESOURCES: Final = {
    "memory_bytes": "RLIMIT_DATA",
    "cpu_s": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_bytes": "RLIMIT_FSIZE",
}
_CAPABILITIES: Final = 64


def limit(limits: Mapping[str, "int | None"]) -> None:
    """
    Hold this process and what it starts to *limits*, by the names of `Limits`; None limits nothing.

    A limit that is lower already stays.
    """
    _lower(resource.RLIMIT_CORE, 0)
    for name, most in limits.items():
        kind = getattr(resource, _RESOURCES.get(name, ""), None)
        if kind is not None and most is not None:
            _lower(kind, most)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # A second more until it is killed: it may say where it was.
    beyond = most + 1 if kind == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or most < hard) else most
    resource.setrlimit(kind, (most, beyond))


def tasks_of(user: int) -> int:
    """
    How many processes and threads *user* has now, as RLIMIT_NPROC counts them; 0 if that cannot be seen.
    """
    found = 0
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                with suppress(OSError):
                    if entry.stat().st_uid == user:
                        found += len(os.listdir(f"/proc/{entry.name}/task"))
    return found


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_capabilities(kept: int) -> None:
    """
    Give up all rights of root but *kept*, a bit each, also for programs that this process becomes. Raises OSError if
    that fails.
    """
    with suppress(OSError):
        prctl(PR_CAP_AMBIENT, 4)
    for number in range(_CAPABILITIES):
        if not kept >> number & 1:
            # It fails without a right to do so (then there is none to give up), and past the last one.
            with suppress(OSError):
                prctl(PR_CAPBSET_DROP, number)
    sets = (_Sets * 2)(_Sets(kept, kept, 0), _Sets(0, 0, 0))
    if _libc.capset(ctypes.byref(_Header(0x20080522, 0)), sets) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
