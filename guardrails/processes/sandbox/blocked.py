"""
The obstacles that keep a sandbox from working on this machine, by name.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final


_APPARMOR: Final = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_CLONE: Final = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST: Final = "/proc/sys/user/max_user_namespaces"
_CONTAINERS: Final = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
_NAMESPACES: Final = ("uid map", "namespace", "Operation not permitted", "Permission denied", "RTM_NEWADDR")


def why_not(backend: str, output: str, read: "Callable[[str], str | None] | None" = None) -> str:
    """
    Why *backend* could not run a command, by what it printed and what *read* tells of a file of the system.
    """
    read = read or _read
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "it said nothing")[:200]
    if backend != "bwrap" or not any(word in output for word in _NAMESPACES):
        return f"it cannot run a command: {last}"
    if "mount proc" in output:
        return (
            f"this container shows only a part of /proc, so that no new one can be mounted ({last}); start the container"
            " with `--security-opt systempaths=unconfined` (podman: `unmask=ALL`), or use `landlock`"
        )
    if read(_APPARMOR) == "1":
        return (
            f"AppArmor forbids user namespaces ({last}); an administrator can load a profile for bwrap with the rule"
            " `userns,`, or set kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if read(_CLONE) == "0":
        return f"the kernel forbids user namespaces ({last}); kernel.unprivileged_userns_clone=1 allows them"
    if read(_MOST) == "0":
        return f"the kernel allows no user namespaces ({last}); user.max_user_namespaces says how many"
    if any(read(path) is not None for path in _CONTAINERS):
        return f"this container forbids user namespaces ({last}); its seccomp profile or its capabilities decide it"
    return f"user namespaces are forbidden here ({last})"


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
