"""
Which folders a confined program sees, and which of them it may not.
"""

import os
import sys
import sysconfig

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from guardrails.core.values.errors import SandboxUnavailable

from .confinement import Confinement


SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    # NixOS and Guix keep all programs there.
    *("/nix/store", "/nix/var/nix/profiles", "/gnu/store", "/run/current-system"),
    # How many processors there are.
    *("/sys/devices/system/cpu", "/sys/devices/system/node"),
)
"""What programs consist of. All else of the file system is not there."""
NO_WORKSPACE: Final = ("/proc", "/sys", "/dev")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def real(path: str) -> str:
    return os.path.realpath(path)


def inside(path: str, folder: str) -> bool:
    """
    Returns whether *path* is *folder* or lies in it.
    """
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def homes() -> tuple[str, ...]:
    """
    The homes of this user, by HOME and by the user's entry; `/` is none.
    """
    named = [os.environ.get("HOME", "")]
    try:
        import pwd

        named.append(pwd.getpwuid(os.geteuid()).pw_dir)
    except (KeyError, ImportError):  # there is no entry, or there are no users
        pass
    return tuple(sorted({real(home) for home in named if os.path.isabs(home) and real(home) != "/"}))


def writable_of(confinement: Confinement) -> tuple[str, ...]:
    """
    The folders that may be written to, as they really lie, the workspace first.

    Raises SandboxUnavailable if one of them holds a home or a part of the system, or does not exist.
    """
    found = []
    if confinement.files == "all":
        return (real(confinement.workspace),)
    for path in (confinement.workspace, *confinement.writable):
        folder = real(path)
        if not os.path.isdir(folder):
            raise SandboxUnavailable(f"the folder {path!r} does not exist")
        for home in homes():
            if inside(home, folder):
                raise SandboxUnavailable(
                    f"{path!r} is or holds the home {home!r}, whose keys would be within reach: name a folder inside of it"
                )
        for other in (*SYSTEM, *NO_WORKSPACE, "/tmp", "/run", "/var"):  # noqa: S108  none is written to
            if inside(real(other), folder):
                raise SandboxUnavailable(
                    f"{path!r} is or holds {other!r}, a part of the system: name a folder inside of it"
                )
        if any(inside(folder, other) for other in NO_WORKSPACE) and not inside(folder, "/dev/shm"):  # noqa: S108
            raise SandboxUnavailable(f"{path!r} is no folder of files: name another one")
        found.append(folder)
    return tuple(dict.fromkeys(found))


def private(confinement: Confinement, *, home: str = "", temporary: str = "") -> dict[str, str]:
    """
    Returns the variables that the program sees: *home* in place of a home that it is not shown, and *temporary* for
    temporary files.

    Without these the launcher makes the folders and names them.
    """
    environment = dict(confinement.environment)
    if confinement.files == "all":
        return environment
    shown = [real(path) for path in (confinement.workspace, *confinement.writable, *confinement.readable)]
    if "HOME" in environment and not any(inside(real(environment["HOME"]), folder) for folder in shown):
        del environment["HOME"]
    environment.pop("TMPDIR", None)
    if os.geteuid() == 0:
        # Other owners cannot be given there, and as root tar would fail by that.
        environment.setdefault("TAR_OPTIONS", "--no-same-owner")
    for name, folder in (("HOME", home), ("TMPDIR", temporary)):
        if folder:
            environment.setdefault(name, folder)
    return environment


def interpreter() -> str:
    """
    The Python that the launcher runs on, without a virtual environment. Raises SandboxUnavailable if there is none.
    """
    named = getattr(sys, "_base_executable", None) or sys.executable
    if not named or not os.access(named, os.X_OK):
        raise SandboxUnavailable("this Python has no program file, by which the launcher could be started")
    return real(named)


def package() -> str:
    """
    The folder of this library.
    """
    return real(str(Path(__file__).parents[2]))


def python_folders() -> tuple[str, ...]:
    """
    Returns the folders that the launcher and the user's Python consist of. A prefix that holds a home is not taken
    whole.
    """
    found = [interpreter(), package()]
    for prefix in {sys.base_prefix, sys.base_exec_prefix, sys.prefix}:
        if any(inside(home, real(prefix)) for home in homes()) or real(prefix) == "/":
            continue
        found.append(real(prefix))
    paths = sysconfig.get_paths()
    found += [real(paths[name]) for name in ("stdlib", "platstdlib")]
    library = sysconfig.get_config_var("LDLIBRARY"), sysconfig.get_config_var("LIBDIR")
    if all(library):
        found.append(real(os.path.join(library[1], library[0])))
    return tuple(dict.fromkeys(path for path in found if os.path.exists(path)))


def own_folders() -> tuple[str, ...]:
    """
    This library and its Python, none of them in another.
    """
    found = {package(), *(real(prefix) for prefix in (sys.base_prefix, sys.prefix))}
    return tuple(sorted(path for path in found if not any(path != other and inside(path, other) for other in found)))


def kept_in(writable: Iterable[str]) -> dict[str, bool]:
    """
    Returns the paths in *writable* folders that stay as they are (True), and the folders between (False), from the
    outside inwards.

    It is what runs outside of the sandbox unasked: this library with its Python, and the hooks and settings of git.
    """
    found: dict[str, bool] = {}
    own = own_folders()
    for folder in writable:
        kept = [path for path in own if inside(path, folder) and path != folder]
        git = f"{folder}/.git"
        if os.path.isdir(git) and not os.path.islink(git):
            kept += [path for path in (f"{git}/config", f"{git}/hooks") if _is_there(path)]
        for path in kept:
            parts = path[len(folder) + 1 :].split("/")
            for count in range(1, len(parts)):
                found.setdefault("/".join((folder, *parts[:count])), False)
            found[path] = True
    return found


def _is_there(path: str) -> bool:
    """
    Whether *path* is a file or a folder, no link. A folder for hooks is made, as git itself would, so that it can be kept.
    """
    if path.endswith("/hooks") and not os.path.lexists(path):
        try:
            os.mkdir(path)
        except OSError:
            return False
    return os.path.exists(path) and not os.path.islink(path)


def hidden(visible: Iterable[str]) -> tuple[str, ...]:
    """
    Returns the paths in *visible* folders that must not be seen: a home, and the files in /etc that not every user may
    read.
    """
    found = [home for home in homes() if any(inside(home, folder) for folder in visible) and not _is_of_programs(home)]
    return (*found, *_private(real("/etc")))


def _is_of_programs(folder: str) -> bool:
    # Users of services have homes as /usr/sbin.
    return os.path.basename(folder) in ("bin", "sbin") or folder in SYSTEM


def _private(folder: str) -> Iterator[str]:
    """
    Returns the entries of *folder* that this user can read and not every user may.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir()
            needed = 0o005 if is_folder else 0o004
            if entry.stat(follow_symlinks=False).st_mode & needed != needed:
                if os.access(entry.path, os.R_OK):
                    yield entry.path
            elif is_folder:
                yield from _private(entry.path)
        except OSError:
            continue
