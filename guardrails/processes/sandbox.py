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
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, get_args

from guardrails.core.values.errors import SandboxUnavailable

from .environment import listed
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
CANNOT: Final = (
    "a unix socket or a hard link that lies in the workspace leads out of it",
    "what is written into the workspace runs later, outside, if somebody starts it there: a Makefile, a test",
    "git's hooks and settings are kept in the workspace's own .git, not in others, to which it may be led",
    "with the network on, all of it can be reached: also this machine's own servers, and those of its cloud",
    "no system call is filtered: it holds as far as the kernel holds",
)
"""What it cannot do, a sentence each."""
_OF_KERNEL: Final = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
_NO_WORKSPACE: Final = ("/proc", "/sys", "/dev")
_BASE: Final = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_HOME: Final = "/tmp/home"  # noqa: S108  the sandbox's own
_FORBIDDEN: Final = ("uid map", "namespace", "not permitted", "Permission denied", "RTM_NEWADDR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """
    The rights of a program. All paths are absolute.
    """

    workspace: str
    """The folder that it works in, and may write to."""
    readable: tuple[str, ...] = ()
    """Folders and files that it may read, beside those of the system."""
    network: bool = False
    read_only: bool = False
    """The workspace is only read."""
    git: bool = True
    """The workspace's `.git` may be written, but for its hooks and settings."""
    environment: Mapping[str, str] = field(default_factory=lambda: listed(os.environ))
    """All that it sees, beside TMPDIR and HOME."""


def started(name: Name | None, confinement: Confinement, words: Sequence[str], folder: str) -> Started:
    """
    Returns *words* as the program of the sandbox *name*, in *folder*. Raises SandboxUnavailable if that sandbox does
    not work here, or not in this workspace.
    """
    if name in (None, "none"):
        return Started(arguments=tuple(words), environment=confinement.environment, folder=folder)
    arguments = (bubblewrap(), *_own(confinement, folder), "--", *words)
    return Started(arguments=arguments, environment=_private(confinement), folder="/")


def choose(name: Name) -> Literal["bwrap", "none"]:
    """
    Returns the sandbox that *name* stands for. Raises SandboxUnavailable if it does not work here, ValueError if there
    is none of that name.
    """
    if name not in NAMES:
        raise ValueError(f"there is no sandbox `{name}`: it is one of {', '.join(NAMES)}")
    if name == "none":
        return "none"
    bubblewrap()
    return "bwrap"


def bubblewrap() -> str:
    """
    Returns the path of `bwrap`, which ran a command here. Raises SandboxUnavailable with what blocked it.
    """
    if not sys.platform.startswith("linux"):
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise SandboxUnavailable(f"bwrap: it needs Linux, and this is {system}; {_next()}")
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailable(f"bwrap: the program is not installed (package bubblewrap); {_next()}")
    return _tried(path)


def _next() -> str:
    signs = ("/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io")
    contained = "container" in os.environ or any(map(os.path.exists, signs))
    known = "; this is a container, which is a sandbox of its own" if contained else ""
    return f"`--sandbox none` runs programs without one{known}"


@lru_cache(maxsize=1)
def _tried(path: str) -> str:
    command = [path, *_BASE, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"bwrap: it could not be started: {error}; {_next()}") from error
    if tried.returncode == 0:
        return path
    last = (tried.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
    if any(word in last for word in _FORBIDDEN):
        last += "; this machine or container forbids namespaces, docs/sandbox.md tells who allows them"
    raise SandboxUnavailable(f"bwrap: it cannot run a command: {last}; {_next()}")


def inside(path: str, folder: str) -> bool:
    """
    Returns whether *path* is *folder* or lies in it.
    """
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def homes() -> tuple[str, ...]:
    """
    Returns the homes of this user, by HOME and by the user's entry; `/` is none.
    """
    named = [os.environ.get("HOME", "")]
    with suppress(ImportError, KeyError):
        import pwd

        named.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return tuple(sorted({os.path.realpath(home) for home in named if os.path.isabs(home)} - {"/"}))


def _own(confinement: Confinement, folder: str) -> tuple[str, ...]:
    workspace = _workspace_of(confinement)
    options = [*_BASE, *(["--share-net"] if confinement.network else [])]
    for path in filter(os.path.isdir, SYSTEM):
        real = os.path.realpath(path)
        is_link = real != path and any(inside(real, one) for one in SYSTEM)
        options += ["--symlink", os.readlink(path), path] if is_link else ["--ro-bind", real, path]
    options += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108
    options += ["--symlink", "/tmp", "/var/tmp", "--dir", _HOME]  # noqa: S108
    for path in _OF_KERNEL:
        # They belong to root, who needs no further right to write them.
        options += ["--ro-bind-try", path, path]
    for path in _hidden():
        options += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
    names = ["/etc/resolv.conf"] if confinement.network else []
    shown = [*SYSTEM]
    for path in map(os.path.realpath, (*confinement.readable, *names)):
        if not any(inside(path, one) for one in shown):
            options += ["--ro-bind-try", path, path]
            shown.append(path)
    for path in confinement.readable:
        # By the name that it was given, too, unless that lies in what is shown anyway.
        if not any(inside(path, one) for one in shown):
            options += ["--symlink", os.path.realpath(path), path]
            shown.append(path)
    options += ["--ro-bind" if confinement.read_only else "--bind", workspace, workspace]
    options += () if confinement.read_only else _kept(workspace, git=confinement.git)
    # Last, since folders to mount on had to be made there.
    return (*options, "--remount-ro", "/", "--chdir", os.path.realpath(folder))


def _workspace_of(confinement: Confinement) -> str:
    """
    Returns the workspace as it really lies. Raises SandboxUnavailable if it holds a home or a part of the system.
    """
    given, folder = confinement.workspace, os.path.realpath(confinement.workspace)
    if not os.path.isdir(folder):
        raise SandboxUnavailable(f"the folder {given!r} does not exist")
    for home in homes():
        if inside(home, folder):
            raise SandboxUnavailable(
                f"{given!r} is or holds the home {home!r}, whose keys would be within reach: name a folder inside of it"
            )
    for other in (*SYSTEM, "/tmp", "/run", "/var"):  # noqa: S108  none is written to
        if inside(os.path.realpath(other), folder):
            raise SandboxUnavailable(
                f"{given!r} is or holds {other!r}, a part of the system: name a folder inside of it"
            )
    if any(inside(folder, other) for other in _NO_WORKSPACE) and not inside(folder, "/dev/shm"):  # noqa: S108
        raise SandboxUnavailable(f"{given!r} is no folder of files: name another one")
    return folder


def _private(confinement: Confinement) -> dict[str, str]:
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
    return {**environment, "TMPDIR": "/tmp"}  # noqa: S108


def _hidden() -> Iterator[str]:
    """
    Returns what of the folders of the system is not seen: a home, and what of /etc root alone may read.
    """
    for home in homes():
        # Users of services have homes as /usr/sbin.
        if any(inside(home, path) for path in SYSTEM) and os.path.basename(home) not in ("bin", "sbin"):
            yield home
    if os.geteuid() == 0:
        for folder, below, files in os.walk("/etc"):
            for name in (*below, *files):
                path = os.path.join(folder, name)
                with suppress(OSError):
                    if not os.path.islink(path) and not os.stat(path).st_mode & 0o004:
                        yield path
            below[:] = [name for name in below if os.stat(os.path.join(folder, name)).st_mode & 0o004]


def _kept(workspace: str, *, git: bool) -> Iterator[str]:
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
