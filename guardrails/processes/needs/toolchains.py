"""
The folders that programs need beside the system's: those of the PATH, and the targets of their links. Many of them are
in a home that is not shown.
"""

import os

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final


MANAGERS: Final = (
    ".asdf",
    ".bun",
    ".deno",
    ".goenv",
    ".jenv",
    ".linuxbrew",
    ".local/pipx/venvs",
    ".local/share/mise/installs",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".local/share/rtx/installs",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nodenv",
    ".nvm/versions",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
)
"""What keeps languages in a home and starts them by a small program on the PATH. None of these holds keys."""
HOMES: Final = {"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "VOLTA_HOME": ".volta", "ASDF_DATA_DIR": ".asdf"}
"""Variables by which a manager finds itself in another home than the one that HOME names."""
SYSTEM: Final = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix/store")))
"""What each program is shown anyway."""
MAX_PROGRAMS: Final = 4_000
"""Programs of one folder whose links are followed."""
_PROGRAMS: Final = ("bin", "sbin", "shims")
_BESIDE: Final = ("lib", "lib64", "libexec")
"""What a program finds beside its own folder."""


def shown_of(home: str, path: str) -> tuple[str, ...]:
    """
    The folders that programs of the search path *path* need, without those that lie in another of them.

    Never *home* itself, and of `~/.local` and `~/.cargo` only what programs consist of: keys are kept in both.
    """
    own = _real(home)
    found: set[Path] = set()
    for entry in path.split(os.pathsep):
        folder = _real(entry)
        if Path(entry).is_absolute() and folder.is_dir():
            found.update(_prefix(own, folder))
            for target in _targets(folder):
                found.update(_prefix(own, target.parent))
    # What a virtual environment in a workspace leads to, also if nothing on the path does.
    found.update(_real(own / name) for name in MANAGERS if (own / name).is_dir())
    found.update(_real(site) for site in _user_sites(own))
    return tuple(sorted(str(one) for one in found if not found.intersection(one.parents)))


def homes_of(home: str) -> dict[str, str]:
    """
    The variables by which managers below *home* are found from another home.
    """
    found = {name: str(Path(home) / folder) for name, folder in HOMES.items() if (Path(home) / folder).is_dir()}
    if any(_user_sites(Path(home))):
        found["PYTHONUSERBASE"] = str(Path(home) / ".local")
    return found


def _user_sites(home: Path) -> Iterator[Path]:
    """
    Returns the folders that `pip install --user` made below *home*, one for each version of Python.
    """
    return (home / ".local/lib").glob("python3*")


def _prefix(home: Path, folder: Path) -> Iterator[Path]:
    """
    Returns the folders that belong to the programs of *folder*: it, and its neighbours if that is a prefix of their
    own.
    """
    if folder == home or folder in home.parents or any(_is_in(folder, one) for one in SYSTEM):
        return
    yield folder
    prefix = folder.parent
    if folder.name not in _PROGRAMS or prefix == home or prefix in home.parents or prefix == prefix.parent:
        return
    beside = [prefix / name for name in _BESIDE if (prefix / name).is_dir()]
    if prefix == home / ".local":
        yield from beside
    elif beside:
        yield prefix


def _targets(folder: Path) -> Iterator[Path]:
    """
    Returns the targets of the links in *folder*.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, MAX_PROGRAMS):
                if entry.is_symlink():
                    yield _real(entry.path)
    except OSError:
        return


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _real(path: "str | Path") -> Path:
    # Unlike `Path.resolve` it takes a link that leads to itself.
    return Path(os.path.realpath(path))
