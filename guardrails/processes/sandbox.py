"""
The sandbox of programs that are started for a model: bubblewrap, or none.

A program in it sees the folders of the system, its workspace, the languages that it is made of, and no more: no home, no
other process, and no network unless it is allowed. It may write into the workspace, and into a private `/tmp`.
"""

import os
import re
import shutil
import subprocess
import sys

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from guardrails.core.values.errors import SandboxUnavailable


Name = Literal["auto", "bwrap", "read-only", "none"]
Variables = Mapping[str, str]
NAMES: Final[tuple[Name, ...]] = get_args(Name)
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"),
    *("/nix/var/nix/profiles", "/run/current-system", "/sys/devices/system/cpu", "/sys/devices/system/node"),
)
"""
What programs consist of, on NixOS and Guix too, and how many processors there are. All else of the file system is not there.
"""
LISTED: Final = frozenset(
    {"PATH", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "CI", "LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE"}
    | {"LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "SOURCE_DATE_EPOCH", "AR", "CC", "CFLAGS", "CPATH", "CPPFLAGS", "CXX"}
    | {"CMAKE_PREFIX_PATH", "CXXFLAGS", "CUDA_HOME", "LD", "LDFLAGS", "LD_LIBRARY_PATH", "LIBRARY_PATH", "MAKEFLAGS"}
    | {"OMP_NUM_THREADS", "PKG_CONFIG_PATH", "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "PYENV_VERSION", "PYTHONHASHSEED"}
    | {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUTF8", "VIRTUAL_ENV", "DOTNET_ROOT", "GEM_PATH", "GOFLAGS"}
    | {"GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "NODE_ENV", "NODE_OPTIONS", "NODE_PATH", "NVM_DIR", "PERL5LIB", "RUBYLIB"}
    | {"RUSTFLAGS", "RUSTUP_TOOLCHAIN", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"}
    | {"SSL_CERT_FILE", "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "GOPROXY", "NPM_CONFIG_REGISTRY"}
    | {"PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"}
)
"""
What programs are told of the machine and its network, in either case. No name of these is that of a key; what else begins with
`LC_` may be one, since ssh sends such variables.
"""
MANAGERS: Final = (
    *(".asdf", ".bun", ".deno", ".goenv", ".jenv", ".linuxbrew", ".local/lib", ".local/pipx/venvs", ".nodenv"),
    *(".local/share/mise/installs", ".local/share/pipx/venvs", ".local/share/pnpm", ".local/share/rtx/installs"),
    *(".local/share/uv/python", ".local/share/uv/tools", ".nvm/versions", ".pyenv", ".rbenv", ".rustup"),
    *(".sdkman/candidates", ".volta"),
)
"""What keeps languages in a home, and starts them by a small program on the PATH. None of these holds keys."""
_SECRET: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH(?!ORITY)|SESSION|DSN|_URL$|_URI$", re.IGNORECASE
)
_GIT: Final = ("config", "--global", "--null", "--get-regexp", r"^(user\.(name|email)|safe\.directory)$")
_KERNEL: Final = ("/proc", "/sys", "/dev")
_BASE: Final = ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_TMP: Final = "/tmp"  # noqa: S108  the sandbox's own
_LIMITED: Final = '{ ulimit -c 0; ulimit -d 4194304; ulimit -f 8388608; ulimit -t 3600; } 2>/dev/null; exec "$@"'
"""The start of each program in it: it may have 4 GiB of memory, files of 4 GiB and an hour of CPU time."""


class Started(NamedTuple):
    """
    A program, ready to be started with these arguments, environment and folder.
    """

    arguments: tuple[str, ...]
    environment: Variables
    """All of it: nothing else of this process's own may be added."""
    folder: str


class Sandbox:
    """
    The sandbox of programs in *workspace*: they write there unless it is *read_only*, and read the files they are made of.

    *environment* is all that they see, beside TMPDIR and HOME, which are the sandbox's own; None: what is listed of this
    process's own, and who commits to git. Found once: later on a program could change what it is told by.
    """

    def __init__(
        self, workspace: str, *, environment: Variables | None = None, network: bool = False, read_only: bool = False
    ) -> None:
        self._workspace, self._network, self._read_only = workspace, network, read_only
        if environment is None:
            environment = {"PATH": os.defpath, **listed(os.environ), **_author(workspace)}
        search = list(dict.fromkeys(map(os.path.realpath, filter(os.path.isabs, os.get_exec_path(environment)))))
        self.environment = {**environment, "PATH": os.pathsep.join(search)}
        self.readable = tuple(dict.fromkeys(filter(may_be_shown, _shown(workspace, search, environment))))
        """Folders and files that they may read, beside those of the system."""

    def started(self, words: Sequence[str], folder: str, *, git: bool = True) -> Started:
        """
        Returns *words* as a program in it, in *folder*; *git*: it may write the workspace's `.git`, but for its hooks and
        settings. Raises SandboxUnavailable if none works here, or not in this workspace.
        """
        # As root tar would give files to their owners, and there are none there.
        environment = {"TAR_OPTIONS": "--no-same-owner", **self.environment, "HOME": _home(), "TMPDIR": _TMP}
        workspace = _workspace_of(self._workspace)
        program = ("--chdir", os.path.realpath(folder), "--", "/bin/sh", "-c", _LIMITED, "sh", *words)
        return Started((bubblewrap(_search(workspace)), *self._options(workspace, git=git), *program), environment, "/")

    def _options(self, workspace: str, *, git: bool) -> Iterator[str]:
        yield from _BASE
        yield from ("--share-net",) if self._network else ()
        for path in filter(os.path.isdir, SYSTEM):
            yield from ("--ro-bind", path, path)
        yield from ("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", _TMP)
        yield from ("--perms", "1777", "--tmpfs", "/var/tmp", "--tmpfs", _home())  # noqa: S108
        for path in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
            # They belong to root, who needs no further right to write them.
            yield from ("--ro-bind-try", path, path)
        for path in _hidden():
            yield from ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", "/dev/null", path)
        given = [*self.readable, "/etc/resolv.conf"]
        seen = [*SYSTEM]
        for path in (*map(os.path.realpath, given), *given):
            # Nothing can be mounted on a link, and one in a folder that is shown leads to what is shown by now.
            if not any(inside(path, one) for one in seen):
                seen.append(path)
                yield from ("--ro-bind-try", path, path)
        yield from ("--ro-bind" if self._read_only else "--bind", workspace, workspace)
        yield from () if self._read_only else _protected(workspace, git=git)
        # Last, since folders to mount on had to be made there.
        yield from ("--remount-ro", "/")


# What there is of it


@lru_cache(maxsize=4)
def bubblewrap(search: str | None = None) -> str:
    """
    Returns the path of `bwrap`, which ran a command here, as far as was asked before; it is looked for in the folders *search*,
    None: in the PATH. Raises SandboxUnavailable with what blocked it.
    """
    path = shutil.which("bwrap", path=search)
    if not sys.platform.startswith("linux"):
        raise _unavailable(f"it needs Linux, and this is {sys.platform}")
    if path is None:
        raise _unavailable("the program is not installed (package bubblewrap)")
    command = [path, *_BASE, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(f"it could not be started: {error}") from error
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or ["it said nothing"])[-1][:200]
        raise _unavailable(f"it cannot run a command: {last}; docs/security.md tells what may forbid it")
    return path


def _search(workspace: str) -> str:
    """
    Returns the PATH for programs that run outside of the sandbox: without the folders of the *workspace*, where a
    command may have written one.
    """
    own, search = os.path.realpath(workspace), filter(os.path.isabs, os.get_exec_path())
    return os.pathsep.join(one for one in search if not inside(os.path.realpath(one), own))


def _unavailable(reason: str) -> SandboxUnavailable:
    contained = "in a container, which is a sandbox of its own, too"
    return SandboxUnavailable(f"bwrap: {reason}; `--sandbox none` runs programs without one, {contained}")


# What a program may do in it


def _home() -> str:
    """
    Returns the place of the home that a program has, an empty one: that of this user, where what is shown of it is found.
    """
    own = os.path.realpath(Path.home())
    has_system = any(inside(own, part) or inside(part, own) for part in (*SYSTEM, *_KERNEL))
    return f"{_TMP}/home" if has_system else own


def _workspace_of(given: str) -> str:
    """
    Returns the workspace as it really lies. Raises SandboxUnavailable if it holds a home or a part of the system.
    """
    folder = os.path.realpath(given)
    if not os.path.isdir(folder):
        raise SandboxUnavailable(f"the folder {given!r} does not exist")
    for part in (*sorted(homes()), *SYSTEM, *_KERNEL, _TMP, "/run", "/var"):
        if inside(os.path.realpath(part), folder):
            raise SandboxUnavailable(f"{given!r} holds {part!r}: name a folder that holds no more than the work")
    return folder


def _hidden() -> Iterator[str]:
    """
    Returns what of the folders of the system is not seen: a home, and what of /etc root alone may read.
    """
    # Users of services have homes as /usr/sbin.
    service = ("bin", "sbin")
    yield from (h for h in homes() if any(inside(h, one) for one in SYSTEM) and os.path.basename(h) not in service)
    for folder, below, files in os.walk("/etc") if os.geteuid() == 0 else ():
        secret = {name for name in (*below, *files) if not os.lstat(os.path.join(folder, name)).st_mode & 0o004}
        yield from (os.path.join(folder, name) for name in secret)
        below[:] = [name for name in below if name not in secret]


def _protected(workspace: str, *, git: bool) -> Iterator[str]:
    """
    Returns the options by which that stays as it is which runs outside of the sandbox unasked: the hooks and settings
    of git, and this library with its Python.
    """
    folder = f"{workspace}/.git"
    if os.path.exists(folder) and not os.path.islink(folder):
        # A mount cannot be moved away, so that no other folder takes its place. A file names the folder.
        yield from ("--bind" if git and os.path.isdir(folder) else "--ro-bind", folder, folder)
        with suppress(OSError):
            os.mkdir(f"{folder}/hooks")
        for path in (f"{folder}/config", f"{folder}/hooks") if git else ():
            if os.path.exists(path) and not os.path.islink(path):
                yield from ("--ro-bind", path, path)
    for own in {os.path.realpath(Path(__file__).parents[1]), os.path.realpath(sys.prefix)}:
        if inside(own, workspace) and own != workspace:
            yield from ("--ro-bind", own, own)


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


# What honest programs need


def harmless(environment: Variables) -> dict[str, str]:
    """
    *environment* without what is named like a secret: keys, tokens, passwords, addresses that may hold one.
    """
    return {name: text for name, text in environment.items() if not _SECRET.search(name)}


def listed(environment: Variables) -> dict[str, str]:
    """
    Returns the variables of *environment* that a confined process sees: the names of `LISTED`, but no URL with a password.
    """
    known = ((name, text) for name, text in environment.items() if name.upper() in LISTED)
    return {name: text for name, text in known if "@" not in text.partition("://")[2]}


def may_be_shown(path: str) -> bool:
    """
    Returns whether *path* is there, and is none of the folders that hold keys of the home, or hold that.
    """
    real, home = os.path.realpath(path), os.path.realpath(Path.home())
    keys = (home, f"{home}/.local", f"{home}/.cargo", f"{home}/.config")
    return os.path.isabs(path) and os.path.exists(real) and not any(inside(one, real) for one in keys)


def _shown(workspace: str, search: Sequence[str], environment: Variables) -> Iterator[str]:
    """
    Returns what honest programs are made of: their repository, the folders of the PATH, and what variables name.
    """
    home = os.path.realpath(Path.home())
    yield from _repository(workspace, home)
    yield from (f"{home}/{name}" for name in MANAGERS)
    for folder in search:
        # A prefix with programs and their libraries is shown whole.
        prefix, name = os.path.split(folder)
        whole = name in ("bin", "sbin", "shims") and any(os.path.isdir(f"{prefix}/{one}") for one in ("lib", "lib64"))
        yield prefix if whole and may_be_shown(prefix) else folder
    # Of a file nothing but itself: beside the certificate of an authority lies its key. Whom git trusts is a person's own.
    named = (text for name, text in environment.items() if name != "PATH" and not name.startswith("GIT_CONFIG"))
    yield from (one for text in named for one in text.split(os.pathsep))


def _author(workspace: str) -> dict[str, str]:
    """
    Returns variables that tell git who commits, and which folders of others it may use. A sandbox shows only this part
    of a person's git settings: there may be keys in the others.
    """
    git = shutil.which("git", path=_search(workspace))
    listing = (
        subprocess.run([git, *_GIT], capture_output=True, check=False, stdin=subprocess.DEVNULL).stdout if git else b""
    )
    variables: dict[str, str] = {}
    for number, pair in enumerate(listing.decode(errors="replace").split("\0")[:-1]):
        key, _, value = pair.partition("\n")
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": os.path.expanduser(value)}
        variables["GIT_CONFIG_COUNT"] = str(number + 1)
    return variables


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
