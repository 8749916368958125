"""
The needs of honest programs in a sandbox, beside the system and the workspace: languages, git.
"""

import os
import subprocess

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from .environment import listed
from .sandbox import Confinement, inside


MANAGERS: Final = (
    *(".asdf", ".bun", ".deno", ".goenv", ".jenv", ".linuxbrew", ".local/lib", ".local/pipx/venvs", ".nodenv"),
    *(".local/share/mise/installs", ".local/share/pipx/venvs", ".local/share/pnpm", ".local/share/rtx/installs"),
    *(".local/share/uv/python", ".local/share/uv/tools", ".nvm/versions", ".pyenv", ".rbenv", ".rustup"),
    *(".sdkman/candidates", ".volta"),
)
"""What keeps languages in a home, and starts them by a small program on the PATH. None of these holds keys."""
HOMES: Final = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
    "PYTHONUSERBASE": ".local",
}
"""Variables by which a manager finds itself in another home than the one that HOME names."""
_GIT: Final = ("git", "config", "--global", "--null", "--get-regexp", r"^(user\.(name|email)|safe\.directory)$")


def confinement_for(
    workspace: str,
    *,
    network: bool = False,
    read_only: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Confinement:
    """
    Returns the rights of programs in *workspace*: they write there unless it is *read_only*, and read the files they
    are made of.

    *environment* is all that they see; None: what is listed of this process's own, and who commits to git.
    """
    home = os.path.realpath(Path.home())
    if environment is None:
        managers = {name: f"{home}/{folder}" for name, folder in HOMES.items() if os.path.isdir(f"{home}/{folder}")}
        environment = {"PATH": os.defpath, **listed(os.environ, network=network), **managers, **_author()}
    given = environment.get("PATH", os.defpath).split(os.pathsep)
    search = dict.fromkeys(os.path.realpath(one) for one in given if os.path.isabs(one))
    shown = [*_repository(workspace, home), *(f"{home}/{name}" for name in MANAGERS)]
    shown += _prefixes(search, home)
    environment = {**environment, "PATH": os.pathsep.join(search)}
    named = (one for name, text in environment.items() if name != "PATH" for one in text.split(os.pathsep))
    for path in named:
        if os.path.isabs(path) and os.path.exists(path):
            folder = os.path.dirname(path)
            shown += [folder if os.path.isfile(path) and not inside(home, os.path.realpath(folder)) else path]
    return Confinement(
        workspace=workspace,
        readable=tuple(dict.fromkeys(one for one in shown if _may_be_shown(one, home))),
        network=network,
        read_only=read_only,
        environment=environment,
    )


def _may_be_shown(path: str, home: str) -> bool:
    """
    Returns whether *path* is there, and no folder that holds the *home*, or keys of the home.
    """
    real = os.path.realpath(path)
    keys = (home, f"{home}/.local", f"{home}/.cargo", f"{home}/.config")
    return os.path.exists(real) and not any(inside(one, real) for one in keys)


def _prefixes(folders: Iterable[str], home: str) -> Iterator[str]:
    """
    Returns the *folders* of programs. A prefix with programs and their libraries is shown whole.
    """
    for folder in folders:
        prefix, name = os.path.split(folder)
        whole = name in ("bin", "sbin", "shims") and any(os.path.isdir(f"{prefix}/{one}") for one in ("lib", "lib64"))
        yield prefix if whole and _may_be_shown(prefix, home) else folder


def _author() -> dict[str, str]:
    """
    Returns variables that tell git who commits, and which folders of others it may use. A sandbox shows only this part
    of a person's git settings: there may be keys in the others.
    """
    try:
        told = subprocess.run(_GIT, capture_output=True, check=False, timeout=5, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = [one.partition("\n") for one in told.stdout.decode(errors="replace").split("\0") if one]
    found = {"GIT_CONFIG_COUNT": str(len(pairs))} if pairs else {}
    for number, (key, _, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": os.path.expanduser(value)}
    return found


def _repository(workspace: str, home: str) -> Iterator[str]:
    """
    Returns the folder in which git keeps the repository that *workspace* is a part of, or a linked worktree.

    A path that the workspace names is believed if that folder names the workspace: a program can write in the one and
    not in the other.
    """
    own = Path(os.path.realpath(workspace))
    file = own / ".git"
    try:
        folder = Path(file.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
        if (folder / "gitdir").read_text(encoding="utf-8").strip() == str(file):
            yield str(folder.parent.parent)
    except (OSError, ValueError):
        above = [] if file.exists() else [one for one in own.parents if (one / ".git").is_dir()]
        yield from (str(one / ".git") for one in above[:1] if not inside(home, str(one)))
