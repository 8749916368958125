"""
The sandbox by bubblewrap: other namespaces, and a file system put together of what is named.
"""

import os
import shutil
import stat

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.restrict.landlock import LEAST_ABI, SCOPES_ABI, abi
from guardrails.processes.restrict.shares import tasks_of
from guardrails.processes.started import Started

from .confinement import Confinement, Program
from .folders import SYSTEM, hidden, inside, kept_in, private, python_folders, real, writable_of
from .order import bare, launcher, order


_TEMPORARY: Final = "/tmp"  # noqa: S108  the sandbox's own
_HOME: Final = "/tmp/home"  # noqa: S108
_FAMILIES: Final = (1, 2, 10, 16)
"""Of sockets: unix, internet, netlink. Others, as vsock, know no namespaces."""
_COUNTED_APART: Final = (5, 14)
"""From this Linux on, processes in a namespace of users are counted apart."""
_NO_SIZE: Final = "this bwrap is installed setuid: temporary files are not limited"
_OTHERS: Final = "as root, files of other users in the workspace cannot be written to"
_LOOKED: Final = "as root, processes are counted twenty times a second, not held by the kernel"
_NO_ABSTRACT: Final = (
    "with the network on, before Linux 6.12: abstract unix sockets of other programs can be connected to"
)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """
    Programs see the system's folders, the workspace and no more; no other process, and no network unless it is allowed.
    """

    program: str
    """The path of `bwrap`."""
    name: ClassVar[str] = "bwrap"

    @property
    def cannot(self) -> tuple[str, ...]:
        """
        The things that it cannot do here, a sentence each.
        """
        return (
            "memory and CPU time are limited for each process, shared memory by the piece: not for all together",
            "a unix socket or a hard link that lies in the workspace leads out of it",
            "what is written into the workspace runs later, outside, if somebody starts it there: a Makefile, a test",
            "git's hooks and settings are kept in the workspace's own .git, not in others, to which it may be led",
            "with the network on, all of it can be reached: also this machine's own servers, and those of its cloud",
            *((_NO_ABSTRACT,) if abi() < SCOPES_ABI else ()),
            *((_NO_SIZE,) if self._is_setuid() else ()),
            *((_OTHERS, _LOOKED) if os.geteuid() == 0 else ()),
        )

    @classmethod
    def found(cls) -> "Bubblewrap":
        """
        The one on the search path. Raises SandboxUnavailable if there is none.
        """
        path = shutil.which("bwrap")
        if path is None:
            raise SandboxUnavailable("the program `bwrap` is not installed (package bubblewrap)")
        return cls(real(path))

    def started(self, confinement: Confinement, program: Program) -> Started:
        """
        *program* in new namespaces. Raises SandboxUnavailable if a folder of *confinement* cannot be used.
        """
        folders = writable_of(confinement)
        environment = private(confinement, home=_HOME, temporary=_TEMPORARY)
        limits = confinement.limits
        processes = limits.processes
        if processes is not None and not _counted_apart():
            processes += tasks_of(os.getuid())
        variables = order(
            confinement,
            program,
            folders[0],
            environment=environment,
            same=[_identity(path) for path in (*folders, *self._kept(confinement, folders))],
            make=[_HOME] if confinement.files == "own" else [],
            limits={
                "memory_bytes": limits.memory_bytes,
                "cpu_s": limits.cpu_s,
                "processes": processes,
                "file_bytes": limits.file_bytes,
            },
            # Without it what a program leaves behind would end a little after it. The kernel counts no processes of root.
            keep={"most": limits.processes if os.geteuid() == 0 else None},
            confine={
                "landlock": _also(confinement, folders),
                "capabilities": 0,
                "families": _FAMILIES,
                "pairs_only": False,
                "shared": False,
            },
        )
        arguments = (self.program, *self._options(confinement, folders), "--", *launcher())
        return Started(
            arguments=arguments, environment={**bare(), **variables}, folder="/", backend=self.name, whole=True
        )

    def _options(self, confinement: Confinement, writable: tuple[str, ...]) -> list[str]:
        options = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if confinement.network:
            options.append("--share-net")
        if confinement.files == "all":
            return [*options, "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--chdir", "/"]
        visible = [*_system(options), *python_folders(), *map(real, confinement.readable)]
        size = self._size(confinement.limits.temporary_bytes)
        options += ["--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
        options += ["--perms", "1777", *size, "--tmpfs", _TEMPORARY, "--symlink", _TEMPORARY, "/var/tmp"]  # noqa: S108
        masked = hidden(visible)
        for path in masked:
            # Of a device behind a mount without devices nothing can be read.
            options += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        for path in visible:
            if os.path.exists(path) and not any(inside(path, real(folder)) for folder in SYSTEM):
                options += ["--ro-bind-try", path, path]
        for path in dict.fromkeys(confinement.readable):
            # By the name that it was given, too, unless that lies in what is shown anyway.
            if path != real(path) and not any(inside(path, folder) for folder in visible):
                options += ["--symlink", real(path), path]
                visible.append(path)
        if confinement.network:
            options += _names()
        for path in writable:
            options += ["--bind", path, path]
        for path, read_only in self._kept(confinement, writable).items():
            # A mount cannot be moved away, so that no other folder takes its place.
            options += ["--ro-bind" if read_only else "--bind", path, path]
        # Last, since folders to mount on had to be made there.
        for path in ("/", *(path for path in masked if os.path.isdir(path))):
            options += ["--remount-ro", path]
        return [*options, "--chdir", "/"]

    def _kept(self, confinement: Confinement, writable: tuple[str, ...]) -> dict[str, bool]:
        return {} if confinement.files == "all" else kept_in(writable)

    def _size(self, most: int | None) -> list[str]:
        # A bwrap that is installed setuid does not take it.
        return [] if most is None or self._is_setuid() else ["--size", str(most)]

    def _is_setuid(self) -> bool:
        return bool(os.stat(self.program).st_mode & stat.S_ISUID)


def _system(options: list[str]) -> list[str]:
    """
    Add the folders of the system to *options*, links as links. Returns those folders.
    """
    found: list[str] = []
    for path in SYSTEM:
        if os.path.islink(path) and any(inside(real(path), folder) for folder in found):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", real(path), path]
            found.append(path)
    return found


def _also(confinement: Confinement, folders: tuple[str, ...]) -> dict[str, Any]:
    """
    Returns the confinement that Landlock adds. Root owns what of /proc and /sys sets the kernel, and needs no further
    right to change it.
    """
    files = confinement.files == "own" and os.geteuid() == 0 and abi() >= LEAST_ABI
    return {
        "readable": ["/"],
        "listed": [],
        "writable": [*folders, _TEMPORARY, "/dev/shm"],  # noqa: S108
        "devices": ["/dev", "/proc/self/fd"],
        "files": files,
        "network": True,
    }


def _identity(path: str) -> tuple[str, int, int]:
    # The launcher looks whether the same is there once all is mounted: a link that was put there leads elsewhere.
    state = os.lstat(path)
    return path, state.st_dev, state.st_ino


def _names() -> list[str]:
    """
    Returns the files that names are resolved by, if they lie in a folder that is not shown.
    """
    target = real("/etc/resolv.conf")
    shown = any(inside(target, folder) for folder in SYSTEM)
    return [] if shown or not os.path.isfile(target) else ["--ro-bind", target, target]


def _counted_apart() -> bool:
    version: Any = os.uname().release.split("-")[0].split(".")
    try:
        return (int(version[0]), int(version[1])) >= _COUNTED_APART
    except (ValueError, IndexError):
        return False
