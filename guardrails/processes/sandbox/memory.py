"""
Which sandboxes were tried since the machine was started; kept in the user's folder for caches.
"""

import json
import os
import sys
import tempfile

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.version import __version__
from guardrails.stores.folders import cache_folder


_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_tried: set[str] = set()


def key_of(name: str, program: str) -> str:
    """
    Returns the key of a trial of the sandbox *name*: it holds for this boot, user, library, Python and *program*.
    """
    parts = [name, __version__, _BOOT.read_text().strip() if _BOOT.exists() else "", os.uname().release]
    parts += [str(os.geteuid()), sys.executable, os.environ.get("HOME", ""), _mount_namespace()]
    if program:
        state = os.stat(program)
        parts += [program, str(state.st_mtime_ns), str(state.st_size), oct(state.st_mode)]
    return " ".join(parts)


def remembered(name: str, key: str) -> bool:
    """
    Returns whether the sandbox *name* was tried with success by *key*.
    """
    return key in _tried or _read().get(name) == key


def remember(name: str, key: str) -> None:
    """
    Keep that the sandbox *name* was tried with success by *key*. Without a folder for caches this process keeps it.
    """
    _tried.add(key)
    path = _file()
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        text = json.dumps({**_read(), name: key})
        handle, written = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.replace(written, path)
        except OSError:
            os.unlink(written)
            raise


def _read() -> dict[str, Any]:
    path = _file()
    if path is None:
        return {}
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle) as file:
            state = os.fstat(file.fileno())
            # What somebody else could have written says nothing.
            if state.st_uid != os.geteuid() or state.st_mode & 0o022 or state.st_size > 65_536:
                return {}
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _file() -> Path | None:
    folder = cache_folder()
    return Path(folder) / "sandbox.json" if os.path.isabs(folder) else None


def _mount_namespace() -> str:
    # The containers of one machine share its boot.
    try:
        return os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""
