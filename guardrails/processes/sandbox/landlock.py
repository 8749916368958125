"""
The sandbox by Landlock and a filter of system calls, for containers that allow no namespaces.
"""

import os
import secrets
import tempfile

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.restrict.landlock import LEAST_ABI, SCOPES_ABI, abi
from guardrails.processes.restrict.seccomp import machine_here
from guardrails.processes.started import Started

from .confinement import Confinement, Program
from .folders import DEVICES, SYSTEM, hidden, inside, own_folders, private, python_folders, real, writable_of
from .order import bare, launcher, order


_FAMILIES: Final = (2, 10, 16)
_DAC_OVERRIDE: Final = 1 << 1
_LOOKED: Final = "as root, processes are counted twenty times a second, not held by the kernel"
_BEFORE_SCOPES: Final = "before Linux 6.12: other processes of this user can be sent signals, and so ended"


@dataclass(frozen=True, slots=True)
class Landlock:
    """
    Programs may open the system's folders, the workspace, a folder for temporary files and no more.
    """

    version: int
    """The kernel's version of Landlock (its ABI)."""
    name: ClassVar[str] = "landlock"

    @property
    def cannot(self) -> tuple[str, ...]:
        """
        The things that it cannot do here, a sentence each.
        """
        return (
            "other processes are visible: their names and arguments, not their environment or memory",
            "files outside cannot be opened, but seen to exist; modes, owners and times of own ones can be changed",
            "/tmp is not there for programs, only the folder that TMPDIR names; /dev/shm and new terminals are not either",  # noqa: S108
            "programs cannot use unix sockets and shared memory, even among themselves",
            "memory and CPU time are limited for each process; the processes of this user are counted all together",
            "hooks and settings in the workspace's .git can be changed, and run later, outside",
            "what is written into the workspace runs later, outside, if somebody starts it there: a Makefile, a test",
            "a hard link that lies in the workspace leads out of it",
            "temporary files are limited by the piece, not all together",
            "with the network on, all of it can be reached: also this machine's own servers, and those of its cloud",
            *((_BEFORE_SCOPES,) if self.version < SCOPES_ABI else ()),
            *((_LOOKED,) if os.geteuid() == 0 else ()),
        )

    @classmethod
    def found(cls) -> "Landlock":
        """
        The Landlock of this kernel. Raises SandboxUnavailable if it has none, or one that is too old.
        """
        try:
            machine_here()
        except (OSError, AttributeError) as error:
            raise SandboxUnavailable(f"{error}") from error
        version = abi()
        if version == 0:
            raise SandboxUnavailable("the kernel has no Landlock, or it is switched off, or this container forbids it")
        if version < LEAST_ABI:
            raise SandboxUnavailable(
                f"the kernel's Landlock is of version {version}, by which files outside could be emptied (Linux 6.2 is needed)"
            )
        return cls(version)

    def started(self, confinement: Confinement, program: Program) -> Started:
        """
        *program* under a process that ends with all that it started. Raises SandboxUnavailable if a folder of
        *confinement* cannot be used.
        """
        folders = writable_of(confinement)
        for folder in folders:
            if confinement.files == "own" and any(inside(path, folder) for path in own_folders()):
                raise SandboxUnavailable(
                    f"this library or its Python lies in {folder!r}, where a program could change it: install it outside"
                )
        system = [real(path) for path in SYSTEM if os.path.exists(path)]
        shown = [*system, *python_folders(), *map(real, confinement.readable)]
        closed = hidden(shown)
        readable = [part for path in dict.fromkeys(shown) for part in _open_parts(path, closed)]
        readable += ["/proc", "/sys/fs/cgroup"]
        if confinement.network:
            readable.append(real("/etc/resolv.conf"))
        own = os.geteuid() != 0 or all(os.stat(folder).st_uid == 0 for folder in folders)
        variables = order(
            confinement,
            program,
            folders[0],
            environment=private(confinement),
            counted=True,
            temporary=real(tempfile.gettempdir()) + f"/guardrails-{secrets.token_hex(8)}"
            if confinement.files == "own"
            else None,
            keep={"most": confinement.limits.processes if os.geteuid() == 0 else None},
            confine={
                "landlock": {
                    "readable": readable,
                    # Parts of these are closed, so that they are not readable as a whole.
                    "listed": [path for path in system if any(inside(other, path) for other in closed)],
                    "writable": list(folders),
                    "devices": list(DEVICES),
                    "files": confinement.files == "own",
                    "network": confinement.network,
                },
                # Root without it could not write to a workspace of another user, as containers have it.
                "capabilities": 0 if own else _DAC_OVERRIDE,
                "families": _FAMILIES if confinement.network else (),
                "pairs_only": True,
                "shared": True,
            },
        )
        return Started(
            arguments=launcher(), environment={**bare(), **variables}, folder="/", backend=self.name, whole=True
        )


def _open_parts(path: str, closed: Sequence[str]) -> Iterator[str]:
    """
    *path*, or the parts of it that do not hold what is *closed*: Landlock cannot take back a part of what it allows.
    """
    if path in closed:
        return
    if not any(inside(other, path) for other in closed):
        yield path
        return
    for entry in os.scandir(path):
        if not entry.is_symlink():
            yield from _open_parts(entry.path, closed)
