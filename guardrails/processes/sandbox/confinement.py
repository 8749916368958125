"""
The rights of a program in a sandbox, and the interface of a sandbox.
"""

import os

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, get_args

from guardrails.processes.environment import listed
from guardrails.processes.started import Started


Name = Literal["auto", "bwrap", "landlock", "none"]
NAMES: Final[tuple[Name, ...]] = get_args(Name)
GIB: Final = 1 << 30
Tree = Mapping[str, Any]
"""A command that was read and judged, as `guardrails.processes.tree` runs it."""
Program = Sequence[str] | Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    The most that programs may take of the machine; None is no limit.
    """

    memory_bytes: int | None = 4 * GIB
    """Of each process: what it writes to. What it only reserves does not count."""
    cpu_s: int | None = 3_600
    """Of each process: seconds of all its threads together."""
    processes: int | None = 1_024
    """Processes and threads at once."""
    file_bytes: int | None = 4 * GIB
    """Of each file that is written."""
    temporary_bytes: int | None = GIB
    """Of all temporary files together, if the sandbox keeps them in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """
    The rights of a program. All paths are absolute.
    """

    workspace: str
    """The folder that it works in, and may write to."""
    writable: tuple[str, ...] = ()
    """More folders that it may write to."""
    readable: tuple[str, ...] = ()
    """Folders and files that it may read, beside those of the system and of this Python."""
    network: bool = False
    files: Literal["own", "all"] = "own"
    """`all`: every file that this process may open is left to it, so that only the rest is confined."""
    environment: Mapping[str, str] = field(default_factory=lambda: listed(os.environ))
    """All that it sees. TMPDIR, and HOME if it is not shown, are private folders that go with the program."""
    limits: Limits = field(default_factory=Limits)


class Backend(Protocol):
    """
    A way to confine programs.
    """

    @property
    def name(self) -> str:
        """
        `bwrap`, `landlock` or `none`.
        """
        ...

    @property
    def cannot(self) -> tuple[str, ...]:
        """
        The things that it cannot do, a sentence each.
        """
        ...

    def started(self, confinement: Confinement, program: Program) -> Started:
        """
        Returns the command by which *program* (its arguments, or a tree) is started. Raises SandboxUnavailable if it
        cannot be confined so.
        """
        ...
