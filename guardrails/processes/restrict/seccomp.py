"""
A filter of system calls: which are refused, as data, and the small program that the kernel runs for it.
"""

import ctypes
import errno
import os
import struct
import sys

from typing import Final, NamedTuple

from .libc import PR_SET_SECCOMP, prctl
from .syscalls import ABSENT, ATTRIBUTES, MACHINES, REFUSED, SHARED_MEMORY, X86_64, number_of


_LOAD: Final = 0x20
_AND: Final = 0x54
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL: Final = 0x80000000
_X32: Final = 0x40000000
_LOW: Final = 0 if sys.byteorder == "little" else 4
AF_UNIX: Final = 1
AF_INET: Final = 2
AF_INET6: Final = 10
AF_NETLINK: Final = 16
SOCK_STREAM: Final = 1
SOCK_SEQPACKET: Final = 5
_SOCKET_TYPE: Final = 0xF
_SETUID: Final = 0o4000
_O_CREAT: Final = 0o100
_O_TMPFILE: Final = 0o20000000
_NAMESPACES: Final = (0x00000080, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
"""The flags of `clone` for namespaces."""
_TERMINAL: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: what would be typed into the terminal of another."""
_SHARED_ANONYMOUS: Final = 0x21
_SHARING: Final = 0x2F
"""Of the flags of `mmap`: which kind of sharing, and that there is no file."""
HIGH: Final = 8
"""Added to the number of an argument: its high 32 bits."""
Tests = tuple[tuple[int, int, int], ...]


class Rule(NamedTuple):
    """
    Answer the call *name* with *error* (an errno) if each of *tests* holds. A test is (argument, mask, value) of the
    argument's low 32 bits, or of its high ones with `HIGH` added to the argument.

    With *unless* it is answered if none of those values is the argument's, all of one argument and one mask.
    """

    name: str
    error: int = errno.EPERM
    tests: Tests = ()
    unless: Tests = ()


def rules(
    *, families: "tuple[int, ...] | None", pairs_only: bool, shared: bool, memory_bytes: "int | None" = None
) -> tuple[Rule, ...]:
    """
    Returns the rules for refused calls. The *families* are those of new sockets, None if they are not looked at. With
    *pairs_only* a pair of sockets cannot be addressed. With *shared* other processes share the namespace for messages
    and memory. Memory that processes can share is refused in pieces of *memory_bytes*, or rather of the next power of
    two, and more.
    """
    found = [Rule(name) for name in REFUSED]
    found += [Rule(name, errno.ENOSYS) for name in ABSENT]
    found += [Rule("clone", tests=((0, flag, flag),)) for flag in _NAMESPACES]
    found += [Rule("ioctl", tests=((1, 0xFFFFFFFF, command),)) for command in _TERMINAL]
    # A program of its owner that another user starts would run as its owner, outside.
    found += [Rule(name, tests=((index, _SETUID, _SETUID),)) for name, index in _MODES]
    for flag in (_O_CREAT, _O_TMPFILE):
        found += [
            Rule(name, tests=((index, flag, flag), (index + 1, _SETUID, _SETUID)))
            for name, index in (("open", 1), ("openat", 2))
        ]
    if families is not None:
        found.append(Rule("socket", errno.EACCES, unless=tuple((0, 0xFFFFFFFF, family) for family in families)))
    if AF_NETLINK in (families or ()):
        # Only NETLINK_ROUTE, by which programs list interfaces.
        found.append(Rule("socket", errno.EACCES, ((0, 0xFFFFFFFF, AF_NETLINK),), ((2, 0xFFFFFFFF, 0),)))
    if pairs_only:
        # A pair of datagram sockets can still send to any path.
        streams = tuple((1, _SOCKET_TYPE, kind) for kind in (SOCK_STREAM, SOCK_SEQPACKET))
        found.append(Rule("socketpair", errno.EACCES, unless=streams))
    if shared:
        found += [Rule(name) for name in SHARED_MEMORY]
        # Limits of other processes, memory of other processes.
        found.append(Rule("prlimit64", unless=((0, 0xFFFFFFFF, 0),)))
        found.append(Rule("move_pages", unless=((0, 0xFFFFFFFF, 0),)))
        # How much time and disk other processes get: left is what a process (first argument) does to itself.
        for name, process in (("setpriority", 0), ("ioprio_set", 1)):
            found.append(Rule(name, unless=((0, 0xFFFFFFFF, process),)))
            found.append(Rule(name, unless=((1, 0xFFFFFFFF, 0),)))
        found += [Rule(name, errno.ENOTSUP) for name in ATTRIBUTES]
    if memory_bytes is not None:
        # The kernel counts it for no process, so that no limit of memory holds it.
        above = ~((1 << max(memory_bytes - 1, 0).bit_length()) - 1) & 0xFFFFFFFFFFFFFFFF
        for name, size, tests in (("mmap", 1, ((3, _SHARING, _SHARED_ANONYMOUS),)), ("shmget", 1, ())):
            for word, mask in ((size, above & 0xFFFFFFFF), (size + HIGH, above >> 32)):
                found.append(Rule(name, errno.ENOMEM, tests, ((word, mask, 0),)))
    return tuple(found)


_MODES: Final = (
    ("chmod", 1),
    ("fchmod", 1),
    ("fchmodat", 2),
    ("fchmodat2", 2),
    ("creat", 1),
    ("mknod", 1),
    ("mknodat", 2),
)


def program(refused: tuple[Rule, ...], machine: int) -> bytes:
    """
    The filter of *refused* for *machine*, in the form that the kernel reads: 8 bytes an instruction.
    """
    out = [_step(_LOAD, 4), _step(_EQUAL, machine, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, 0)]
    if machine == X86_64:
        # The calls of the x32 interface, by other numbers.
        out += [_step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _ERRNO | errno.ENOSYS)]
    for rule in refused:
        number = number_of(rule.name, machine)
        if number is not None:
            body = _body(rule)
            out += [_step(_EQUAL, number, 0, len(body)), *body]
    out.append(_step(_RETURN, _ALLOW))
    return b"".join(out)


def _body(rule: Rule) -> list[bytes]:
    """
    Returns the instructions for a call's number that fits. It answers the call, or goes on behind itself with the
    number loaded.
    """
    refuse = [_step(_RETURN, _ERRNO | rule.error)]
    if not rule.tests and not rule.unless:
        return refuse
    again = [_step(_LOAD, 0)]
    rest = refuse
    for argument, mask, value in rule.unless:
        # To the reload behind `rest` if it is this value.
        rest = [_load(argument), _step(_AND, mask), _step(_EQUAL, value, len(rest), 0), *rest]
    for argument, mask, value in reversed(rule.tests):
        rest = [_load(argument), _step(_AND, mask), _step(_EQUAL, value, 0, len(rest)), *rest]
    return [*rest, *again]


def _load(argument: int) -> bytes:
    half = _LOW if argument < HIGH else 4 - _LOW
    return _step(_LOAD, 16 + 8 * (argument % HIGH) + half)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value & 0xFFFFFFFF)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def machine_here() -> int:
    """
    The machine that this runs on. Raises OSError if its numbers are not known.
    """
    name = os.uname().machine
    if name not in MACHINES:
        raise OSError(errno.ENOSYS, f"no filter of system calls is known for the machine {name}")
    return MACHINES[name]


def restrict(refused: tuple[Rule, ...]) -> None:
    """
    Filter the system calls of this process and all that it starts. It needs no_new_privs. Raises OSError if it fails.
    """
    code = program(refused, machine_here())
    prctl(PR_SET_SECCOMP, 2, ctypes.byref(_Program(len(code) // 8, code)))
