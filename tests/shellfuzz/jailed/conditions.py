"""
What must hold of the place before a generated command runs in it, each proved by an attempt.
"""

import errno
import os
import socket

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.shellfuzz.jailed import kernel


TOP: Final = frozenset({"bin", "dev", "fuzz", "lib", "lib32", "lib64", "log", "programs", "python", "usr", "world"})
"""All that the root of the jail may hold."""
GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
KEPT: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NO_WAY: Final = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ECONNREFUSED, errno.EADDRNOTAVAIL, errno.ENODEV}
)
NAMES: Final = (
    "it is run by no root",
    "it has no capability",
    "it gains no privileges",
    "the repository is not there",
    "no home is there",
    "the canary outside is not there",
    "no handle leads outside",
    "the root is the jail's own and cannot be written",
    "there is no network",
    "no process outside can be seen",
)


def broken(plan: dict[str, Any]) -> list[str]:
    """
    The conditions that do not hold here, each with what showed it.
    """
    checks = (_user, _capabilities, _privileges, _repository, _homes, _canary, _handles, _root, _network, _processes)
    found = []
    for name, check in zip(NAMES, checks, strict=True):
        try:
            found += [f"{name}: {said}" for said in check(plan)]
        except OSError as error:
            found.append(f"{name}: it cannot be told, {error}")
    return found


def _fails(attempt: Callable[[], object], said: str, expected: frozenset[int]) -> Iterator[str]:
    """
    Says *said* if *attempt* succeeds, or fails for another reason than one of *expected*.
    """
    try:
        result = attempt()
    except OSError as error:
        if error.errno not in expected:
            yield f"{said} fails with {error}, which proves nothing"
    else:
        yield f"{said} succeeds"
        if isinstance(result, int) and not isinstance(result, bool) and result > 2:
            os.close(result)


def _user(plan: dict[str, Any]) -> Iterator[str]:
    if 0 in (*os.getresuid(), *os.getresgid()):
        yield "a user or group is 0"
    yield from _fails(partial(os.setresuid, 0, 0, 0), "becoming root", KEPT | {errno.EINVAL})
    yield from _fails(partial(os.setresgid, 0, 0, 0), "becoming group 0", KEPT | {errno.EINVAL})


def _capabilities(plan: dict[str, Any]) -> Iterator[str]:
    held, bounding = kernel.capabilities()
    if held or bounding:
        yield f"it holds {held:#x}, and its programs may come to hold {bounding:#x}"
    yield from _fails(lambda: os.chroot("/world"), "chroot", KEPT)
    yield from _fails(lambda: kernel.mount("none", "/world", "tmpfs", 0), "mount", KEPT)
    yield from _fails(lambda: socket.sethostname("x"), "sethostname", KEPT)


def _privileges(plan: dict[str, Any]) -> Iterator[str]:
    if not kernel.gains_no_privileges():
        yield "no_new_privs is off"


def _repository(plan: dict[str, Any]) -> Iterator[str]:
    for path in (plan["repository"], plan["stage"]):
        yield from _fails(partial(os.stat, path), f"stat of {path}", GONE)


def _homes(plan: dict[str, Any]) -> Iterator[str]:
    for path in plan["homes"]:
        yield from _fails(partial(os.stat, path), f"stat of {path}", GONE)


def _canary(plan: dict[str, Any]) -> Iterator[str]:
    file = plan["canary"]["file"]
    for path in (file, f"/../../..{file}", f"/proc/1/root{file}", f"/proc/self/cwd/../..{file}"):
        for flags, doing in ((os.O_RDONLY, "reading"), (os.O_WRONLY, "writing"), (os.O_WRONLY | os.O_CREAT, "making")):
            yield from _fails(partial(os.open, path, flags), f"{doing} {path}", GONE | KEPT)


def _handles(plan: dict[str, Any]) -> Iterator[str]:
    for handle in range(4096):
        try:
            os.fstat(handle)
        except OSError:
            continue
        if handle > 2:
            yield f"handle {handle} is open"
        else:
            yield from _fails(partial(os.listdir, handle), f"listing handle {handle}", GONE | KEPT)


def _root(plan: dict[str, Any]) -> Iterator[str]:
    strange = sorted(set(os.listdir("/")) - TOP)
    if strange or os.stat("/").st_ino != os.stat("/..").st_ino:
        yield f"it also holds {strange}"
    writable = KEPT | GONE
    for folder in ("/", "/bin", "/usr", "/usr/lib", "/fuzz", "/python", "/programs", "/dev"):
        path = f"{folder}/written"
        yield from _fails(partial(os.open, path, os.O_WRONLY | os.O_CREAT), f"making {path}", writable)
    for path in ("/bin/bash", "/bin/dash", "/fuzz/plan.json"):
        yield from _fails(partial(os.open, path, os.O_WRONLY), f"writing {path}", writable)
    if not Path("/world").is_dir():
        yield "it has no folder for the commands"


def _network(plan: dict[str, Any]) -> Iterator[str]:
    canary = plan["canary"]
    for family, kind, where in (
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", canary["port"])),
        (socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
        (socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 9)),
        (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + canary["socket"]),
    ):
        try:
            end = socket.socket(family, kind)
        except OSError:
            continue  # no such family at all
        with end:
            end.settimeout(5)
            yield from _fails(partial(end.connect, where), f"connecting to {where}", NO_WAY)


def _processes(plan: dict[str, Any]) -> Iterator[str]:
    if os.getpid() != 1 or os.getppid() != 0:
        yield f"it is process {os.getpid()} of {os.getppid()}"
    for number in plan["outside"]:
        yield from _fails(partial(os.kill, number, 0), f"signalling {number}", frozenset({errno.ESRCH}))
        yield from _fails(partial(os.stat, f"/proc/{number}"), f"seeing {number}", GONE)
