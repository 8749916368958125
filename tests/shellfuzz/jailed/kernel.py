"""
The calls to the Linux kernel that the standard library of Python 3.11 lacks, by ctypes.
"""

import ctypes
import os

from typing import Final


CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_NOATIME: Final = 1024
MS_NODIRATIME: Final = 2048
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
MS_RELATIME: Final = 1 << 21
_KEPT: Final = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME
"""Flags that have one number in mount(2) and in statvfs(3); whoever is not root may add to them, not remove them."""
_ST_RELATIME: Final = 4096
_MNT_DETACH: Final = 2

_PR_SET_PDEATHSIG: Final = 1
_PR_CAPBSET_READ: Final = 23
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_GET_NO_NEW_PRIVS: Final = 39
_CAPABILITIES_V3: Final = 0x20080522
_LAST_CAPABILITY: Final = 63

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    """
    What the C function *name* returns. Raises OSError if that is -1.
    """
    result = int(getattr(_libc, name)(*arguments))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", ctypes.c_int(flags))


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    given = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _call("mount", given[0], given[1], given[2], ctypes.c_ulong(flags), given[3])


def bind(source: str, target: str, *, flags: int = MS_RDONLY) -> None:
    """
    Show *source* at *target*, with *flags* added to those that its mount has.
    """
    mount(source, target, None, MS_BIND | MS_REC)
    has = os.statvfs(target).f_flag
    kept = has & _KEPT | (MS_RELATIME if has & _ST_RELATIME else 0)
    mount("none", target, None, MS_BIND | MS_REMOUNT | MS_NOSUID | kept | flags)


def enter_root(folder: str) -> None:
    """
    Make *folder*, a mount, the root of this process, and let go of the root that was.
    """
    os.chdir(folder)
    # The old root comes to lie over the new one, and is taken off again: it needs no place of its own.
    _call("pivot_root", b".", b".") if hasattr(_libc, "pivot_root") else _call(
        "syscall", ctypes.c_long(155), b".", b"."
    )
    _call("umount2", b".", ctypes.c_int(_MNT_DETACH))
    os.chdir("/")


def _prctl(option: int, value: int = 0) -> int:
    nothing = ctypes.c_ulong(0)
    return _call("prctl", ctypes.c_int(option), ctypes.c_ulong(value), nothing, nothing, nothing)


def die_with_parent(signal: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal)


def gain_no_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def gains_no_privileges() -> bool:
    return _prctl(_PR_GET_NO_NEW_PRIVS) == 1


def drop_capabilities() -> None:
    """
    Empty all sets of this process, so that no program that it starts gets any either.
    """
    for number in range(_LAST_CAPABILITY + 1):
        try:
            _prctl(_PR_CAPBSET_DROP, number)
        except OSError:
            break  # the kernel has no more of them
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


def capabilities() -> tuple[int, int]:
    """
    The permitted and inheritable sets of this process as one, and the bounding set.
    """
    header, data = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)()
    _call("capget", header, data)
    bounding = 0
    for number in range(_LAST_CAPABILITY + 1):
        try:
            bounding |= _prctl(_PR_CAPBSET_READ, number) << number
        except OSError:
            break
    return sum(data), bounding
