"""
The sandbox of programs that are started for a model: bubblewrap, or none.

A program in it sees the folders of the system, its workspace and no more: no home, no other process, and no network
unless it is allowed. It may write into the workspace, and into a private `/tmp`.
"""

import os
import shutil
import subprocess
import sys

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, get_args

from guardrails.core.values.errors import SandboxUnavailable

from .run import Started


Name = Literal["auto", "bwrap", "read-only", "none"]
NAMES: Final[tuple[Name, ...]] = get_args(Name)
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    # NixOS and Guix keep all programs there.
    *("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/run/current-system"),
    # How many processors there are.
    *("/sys/devices/system/cpu", "/sys/devices/system/node"),
)
"""What programs consist of. All else of the file system is not there."""
_NO_WORKSPACE: Final = (*SYSTEM, "/tmp", "/run", "/var", "/proc", "/sys", "/dev")  # noqa: S108  none is written to
_BASE: Final = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_TMP: Final = "/tmp"  # noqa: S108  the sandbox's own
_HOME: Final = f"{_TMP}/home"
_LIMITED: Final = (
    "/bin/sh",
    "-c",
    '{ ulimit -c 0; ulimit -d 4194304; ulimit -f 8388608; ulimit -t 3600; } 2>/dev/null; exec "$@"',
    "sh",
)
"""The start of each program in it: it may have 4 GiB of memory, files of 4 GiB and an hour of CPU time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """
    The rights of a program. All paths are absolute.
    """

    workspace: str
    """The folder that it works in, and may write to."""
    environment: Mapping[str, str]
    """All that it sees, beside TMPDIR and HOME."""
    readable: tuple[str, ...] = ()
    """Folders and files that it may read, beside those of the system."""
    network: bool = False
    read_only: bool = False
    """The workspace is only read."""
    git: bool = True
    """The workspace's `.git` may be written, but for its hooks and settings."""


def started(confinement: Confinement, words: Sequence[str], folder: str) -> Started:
    """
    Returns *words* as a program in a sandbox, in *folder*. Raises SandboxUnavailable if none works here, or not in this
    workspace.
    """
    arguments = (bubblewrap(), *_options(confinement, folder), "--", *_LIMITED, *words)
    return Started(arguments=arguments, environment=_variables(confinement), folder="/")


def bubblewrap() -> str:
    """
    Returns the path of `bwrap`, which ran a command here. Raises SandboxUnavailable with what blocked it.
    """
    if not sys.platform.startswith("linux"):
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise _unavailable(f"it needs Linux, and this is {system}")
    path = shutil.which("bwrap")
    if path is None:
        raise _unavailable("the program is not installed (package bubblewrap)")
    return _tried(path)


def _unavailable(reason: str) -> SandboxUnavailable:
    signs = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")
    contained = "container" in os.environ or any(map(os.path.exists, signs))
    known = "; this is a container, which is a sandbox of its own" if contained else ""
    return SandboxUnavailable(f"bwrap: {reason}; `--sandbox none` runs programs without one{known}")


@lru_cache(maxsize=1)
def _tried(path: str) -> str:
    command = [path, *_BASE, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(f"it could not be started: {error}") from error
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
        raise _unavailable(f"it cannot run a command: {last}; docs/sandbox.md tells what may forbid it")
    return path


def inside(path: str, folder: str) -> bool:
    """
    Returns whether *path* is *folder* or lies in it.
    """
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def homes() -> set[str]:
    """
    Returns the homes of this user, by HOME and by the user's entry; `/` is none.
    """
    named = [os.environ.get("HOME", "")]
    with suppress(ImportError, KeyError):
        import pwd

        named.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return {os.path.realpath(home) for home in named if os.path.isabs(home)} - {"/"}


def _options(confinement: Confinement, folder: str) -> tuple[str, ...]:
    workspace = _workspace_of(confinement.workspace)
    options = [*_BASE, *(["--share-net"] if confinement.network else [])]
    for path in filter(os.path.isdir, SYSTEM):
        real = os.path.realpath(path)
        is_link = real != path and any(inside(real, one) for one in SYSTEM)
        options += ["--symlink", os.readlink(path), path] if is_link else ["--ro-bind", real, path]
    options += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", _TMP, "--symlink", _TMP, "/var/tmp"]  # noqa: S108
    options += ["--dir", _HOME]
    for path in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
        # They belong to root, who needs no further right to write them.
        options += ["--ro-bind-try", path, path]
    for path in _hidden():
        options += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    shown = [*SYSTEM]
    for path in (*confinement.readable, *(["/etc/resolv.conf"] if confinement.network else [])):
        real = os.path.realpath(path)
        if not any(inside(real, one) for one in shown):
            options += ["--ro-bind-try", real, real]
            shown.append(real)
        if not any(inside(path, one) for one in shown):
            # By the name that it was given, too.
            options += ["--symlink", real, path]
            shown.append(path)
    options += ["--ro-bind" if confinement.read_only else "--bind", workspace, workspace]
    options += () if confinement.read_only else _protected(workspace, git=confinement.git)
    # Last, since folders to mount on had to be made there.
    return (*options, "--remount-ro", "/", "--chdir", os.path.realpath(folder))


def _workspace_of(given: str) -> str:
    """
    Returns the workspace as it really lies. Raises SandboxUnavailable if it holds a home or a part of the system.
    """
    folder = os.path.realpath(given)
    if not os.path.isdir(folder):
        raise SandboxUnavailable(f"the folder {given!r} does not exist")
    holds = [f"the home {home!r}" for home in sorted(homes()) if inside(home, folder)]
    holds += [f"{part!r}, a part of the system" for part in _NO_WORKSPACE if inside(os.path.realpath(part), folder)]
    lies = [f"in {part!r}" for part in ("/proc", "/sys", "/dev") if inside(folder, part)]
    if holds or (lies and not inside(folder, "/dev/shm")):  # noqa: S108
        reason = f"is or holds {holds[0]}" if holds else f"lies {lies[0]}"
        raise SandboxUnavailable(f"{given!r} {reason}: name a folder of your own, which holds no more than the work")
    return folder


def _variables(confinement: Confinement) -> dict[str, str]:
    """
    Returns the variables that the program sees: other folders in place of a home that it is not shown, and of TMPDIR.
    """
    environment = dict(confinement.environment)
    shown = [os.path.realpath(path) for path in (confinement.workspace, *confinement.readable)]
    home = os.path.realpath(environment.get("HOME", "/"))
    if not any(inside(home, folder) for folder in shown):
        environment["HOME"] = _HOME
    if os.geteuid() == 0:
        # Other owners cannot be given there, and as root tar would fail by that.
        environment.setdefault("TAR_OPTIONS", "--no-same-owner")
    return {**environment, "TMPDIR": _TMP}


def _hidden() -> Iterator[str]:
    """
    Returns what of the folders of the system is not seen: a home, and what of /etc root alone may read.
    """
    # Users of services have homes as /usr/sbin.
    service = ("bin", "sbin")
    yield from (h for h in homes() if any(inside(h, one) for one in SYSTEM) and os.path.basename(h) not in service)
    for folder, below, files in os.walk("/etc") if os.geteuid() == 0 else ():
        modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in (*below, *files)}
        secret = {name for name, mode in modes.items() if not mode & 0o004}
        yield from (os.path.join(folder, name) for name in secret)
        below[:] = [name for name in below if name not in secret]


def _protected(workspace: str, *, git: bool) -> Iterator[str]:
    """
    Returns the options by which that stays as it is which runs outside of the sandbox unasked: the hooks and settings
    of git, and this library with its Python.
    """
    folder = f"{workspace}/.git"
    if os.path.isdir(folder) and not os.path.islink(folder):
        # A mount cannot be moved away, so that no other folder takes its place.
        yield from ("--bind" if git else "--ro-bind", folder, folder)
        with suppress(OSError):
            os.mkdir(f"{folder}/hooks")
        for path in (f"{folder}/config", f"{folder}/hooks") if git else ():
            if os.path.exists(path) and not os.path.islink(path):
                yield from ("--ro-bind", path, path)
    for own in {os.path.realpath(Path(__file__).parents[1]), os.path.realpath(sys.prefix)}:
        if inside(own, workspace) and own != workspace:
            yield from ("--ro-bind", own, own)
