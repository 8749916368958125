"""
The rights of root that a program may not have.
"""

import ctypes
import os

from contextlib import suppress
from typing import Final

from .libc import PR_CAP_AMBIENT, PR_CAPBSET_DROP, _libc, prctl


_CAPABILITIES: Final = 64


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
