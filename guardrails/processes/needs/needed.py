"""
A workspace, and what programs in it need, as a confinement.
"""

import os

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from guardrails.processes.environment import listed
from guardrails.processes.sandbox import Confinement, Limits

from .identity import identity_file
from .repositories import git_folder
from .toolchains import SYSTEM, homes_of, shown_of


PLACES: Final = (
    *("CONDA_PREFIX", "CUDA_HOME", "DOTNET_ROOT", "GOROOT", "JAVA_HOME", "VIRTUAL_ENV"),
    *("CPATH", "GEM_PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "NODE_PATH", "PERL5LIB", "PKG_CONFIG_PATH", "PYTHONPATH"),
    *("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
)
"""Variables that name folders and files which programs read."""


def confinement_for(
    workspace: str,
    *,
    network: bool = False,
    environment: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    program: Sequence[str] = (),
) -> Confinement:
    """
    Returns the rights of programs in *workspace*: they write there and into private temporary folders, and read the
    files they are made of.

    *environment* is all that they see; None: what is listed of this process's own, and who commits to git. A *program* that
    a person wrote down finds the folders of what its arguments name.
    """
    home = str(Path.home())
    shown: list[str | None] = [git_folder(workspace, home), *_folders_of(program, home)]
    if environment is None:
        environment = {"PATH": os.defpath, **listed(os.environ, network=network), **homes_of(home)}
        who = identity_file()
        if who is not None:
            environment["GIT_CONFIG_GLOBAL"] = who
            shown.append(who)
    shown += shown_of(home, os.pathsep.join([environment.get("PATH", os.defpath), *_programs(program)]))
    shown += _named(environment, home)
    environment = {**environment, "PATH": _without_links(environment.get("PATH", os.defpath))}
    return Confinement(
        workspace=workspace,
        readable=tuple(dict.fromkeys(one for one in shown if one is not None)),
        network=network,
        environment=environment,
        limits=Limits() if limits is None else limits,
    )


def _named(environment: Mapping[str, str], home: str) -> Iterator[str]:
    """
    Returns the folders that *environment* names in `PLACES`, but for one that holds the whole *home*.
    """
    for name in PLACES:
        for entry in environment.get(name, "").split(os.pathsep):
            if Path(entry).is_absolute() and Path(entry).exists() and not _holds(entry, home):
                yield os.path.realpath(entry)


def _folders_of(program: Sequence[str], home: str) -> Iterator[str]:
    """
    The folders that the arguments of *program* name, and those of files; of a folder that holds the *home* the file alone.
    """
    for argument in program[1:]:
        path = Path(argument)
        if path.is_absolute() and path.exists():
            folder = path if path.is_dir() or _holds(str(path.parent), home) else path.parent
            if not _holds(str(folder), home):
                yield os.path.realpath(folder)


def _programs(program: Sequence[str]) -> Iterator[str]:
    """
    The folder of *program*, if it is named by its path.
    """
    if program and Path(program[0]).is_absolute():
        yield str(Path(program[0]).parent)


def _holds(folder: str, home: str) -> bool:
    """
    Returns whether *folder* is *home* or holds it, links followed.
    """
    real = Path(os.path.realpath(folder))
    own = Path(os.path.realpath(home))
    return real == own or real in own.parents


def _without_links(path: str) -> str:
    """
    The search path *path* without links that lie in folders which are not shown.
    """
    entries = (
        entry if any(Path(entry).is_relative_to(folder) for folder in SYSTEM) else os.path.realpath(entry)
        for entry in path.split(os.pathsep)
        if Path(entry).is_absolute()
    )
    return os.pathsep.join(dict.fromkeys(entries))
