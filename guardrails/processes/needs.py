"""
The needs of honest programs that are started for a model: variables, and in a sandbox languages and git beside the
system and the workspace.
"""

import os
import re
import subprocess

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from .sandbox import Confinement, inside


LISTED: Final = frozenset(
    {"PATH", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "COLUMNS", "LINES", "LANG", "LANGUAGE", "TZ"}
    | {"CI", "FORCE_COLOR", "NO_COLOR", "EDITOR", "PAGER", "MANPATH", "XDG_DATA_DIRS", "SOURCE_DATE_EPOCH"}
    | {"AR", "AS", "CC", "CFLAGS", "CMAKE_PREFIX_PATH", "CPATH", "CPP", "CPPFLAGS", "CUDA_HOME", "CXX", "CXXFLAGS"}
    | {"LD", "LDFLAGS", "LD_LIBRARY_PATH", "LIBRARY_PATH", "MAKEFLAGS", "OMP_NUM_THREADS", "PKG_CONFIG_PATH"}
    | {"CONDA_DEFAULT_ENV", "CONDA_PREFIX", "PYENV_VERSION", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}
    | {"PYTHONIOENCODING", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONWARNINGS", "VIRTUAL_ENV"}
    | {"CARGO_TERM_COLOR", "DOTNET_ROOT", "GEM_PATH", "GOFLAGS", "GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "NODE_ENV"}
    | {"NODE_OPTIONS", "NODE_PATH", "NVM_DIR", "PERL5LIB", "RUBYLIB", "RUSTFLAGS", "RUSTUP_TOOLCHAIN", "RUST_BACKTRACE"}
    | {"LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "LC_ADDRESS"}
    | {"LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE"}
    | {"CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"}
)
"""
What programs are told of the machine: of languages, compilers and terminals. No name of these is that of a key; what else
begins with `LC_` may be one, since ssh sends such variables.
"""
OF_NETWORK: Final = frozenset(
    {"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "GOPROXY", "NPM_CONFIG_REGISTRY", "PIP_EXTRA_INDEX_URL"}
    | {"PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"}
)
"""What they are told of the network if they may use it, in either case, unless a password stands in it."""
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
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH|SESSION|DSN|_URL$|_URI$", re.IGNORECASE)
_HARMLESS: Final = frozenset({"XDG_SESSION_TYPE", "DESKTOP_SESSION", "XAUTHORITY"})
_GIT: Final = ("git", "config", "--global", "--null", "--get-regexp", r"^(user\.(name|email)|safe\.directory)$")


def harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """
    *environment* without what is named like a secret: keys, tokens, passwords, addresses that may hold one.
    """
    return {name: text for name, text in environment.items() if name in _HARMLESS or not _SECRET.search(name)}


def listed(environment: Mapping[str, str], *, network: bool = False) -> dict[str, str]:
    """
    Returns the variables of *environment* that a confined process sees: the names of `LISTED`, and with *network*
    `OF_NETWORK`.

    HOME and TMPDIR are not in it: in a sandbox they are others.
    """
    names = LISTED | {name for name in environment if network and name.upper() in OF_NETWORK}
    return {name: text for name, text in environment.items() if name in names and (name in LISTED or "@" not in text)}


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
    # Folders that hold keys of the home, or that hold it.
    keys = (home, f"{home}/.local", f"{home}/.cargo", f"{home}/.config")

    def may_be_shown(path: str) -> bool:
        real = os.path.realpath(path)
        return os.path.isabs(path) and os.path.exists(real) and not any(inside(one, real) for one in keys)

    if environment is None:
        managers = {name: f"{home}/{folder}" for name, folder in HOMES.items() if os.path.isdir(f"{home}/{folder}")}
        environment = {"PATH": os.defpath, **listed(os.environ, network=network), **managers, **_author()}
    given = environment.get("PATH", os.defpath).split(os.pathsep)
    search = list(dict.fromkeys(os.path.realpath(one) for one in given if os.path.isabs(one)))
    shown = [*_repository(workspace, home), *(f"{home}/{name}" for name in MANAGERS)]
    for folder in search:
        # A prefix with programs and their libraries is shown whole.
        prefix, name = os.path.split(folder)
        whole = name in ("bin", "sbin", "shims") and any(os.path.isdir(f"{prefix}/{one}") for one in ("lib", "lib64"))
        shown.append(prefix if whole and may_be_shown(prefix) else folder)
    for path in (one for name, text in environment.items() if name != "PATH" for one in text.split(os.pathsep)):
        # Beside a file stand those that it names, as certificates do.
        folder = os.path.dirname(path)
        shown.append(folder if os.path.isfile(path) and may_be_shown(folder) else path)
    return Confinement(
        workspace=workspace,
        readable=tuple(dict.fromkeys(filter(may_be_shown, shown))),
        network=network,
        read_only=read_only,
        environment={**environment, "PATH": os.pathsep.join(search)},
    )


def _author() -> dict[str, str]:
    """
    Returns variables that tell git who commits, and which folders of others it may use. A sandbox shows only this part
    of a person's git settings: there may be keys in the others.
    """
    try:
        answer = subprocess.run(_GIT, capture_output=True, check=False, timeout=5, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = [one.partition("\n") for one in answer.stdout.decode(errors="replace").split("\0") if one]
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
