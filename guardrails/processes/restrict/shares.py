"""
The share of the machine that a program may take.
"""

import os
import resource

from collections.abc import Mapping
from contextlib import suppress
from typing import Final


_RESOURCES: Final = {
    "memory_bytes": "RLIMIT_DATA",
    "cpu_s": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_bytes": "RLIMIT_FSIZE",
}


def limit(limits: Mapping[str, "int | None"]) -> None:
    """
    Hold this process and what it starts to *limits*, by the names of `Limits`; None limits nothing.

    A limit that is lower already stays.
    """
    # With 0 the kernel would still hand the memory of a program that fails to a handler outside; with 1 to none.
    _lower(resource.RLIMIT_CORE, 1)
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
    Returns the number of processes and threads that *user* has now, as RLIMIT_NPROC counts them; 0 if that cannot be
    seen.
    """
    found = 0
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                with suppress(OSError):
                    if entry.stat().st_uid == user:
                        found += len(os.listdir(f"/proc/{entry.name}/task"))
    return found
