"""
Calls of the C library that Python has no name for.
"""

import ctypes
import os

from typing import Final


PR_SET_PDEATHSIG: Final = 1
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def system_call(number: int, *arguments: "int | ctypes._Pointer[ctypes.Structure] | None") -> int:
    """
    Make the system call *number*. Raises OSError if it fails.
    """
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *given))


def prctl(option: int, first: "int | ctypes._Pointer[ctypes.Structure]", second: object = 0) -> int:
    """
    Change an attribute of this process. Raises OSError if it fails.
    """
    words = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in (first, second)]
    return _checked(_libc.prctl(ctypes.c_int(option), *words, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
