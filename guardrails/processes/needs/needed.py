"""
A workspace, and what programs in it need, as a confinement.
"""

import os

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from guardrails.processes.environment import listed
from guardrails.processes.sandbox import Confinement, Limits

from .identity import identity_file
from .repositories import git_folder
from .toolchains import homes_of, shown_of


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
) -> Confinement:
    """
    What programs in *workspace* may do: write there and into private temporary folders, and read what they are made of.

    *environment* is all that they see; None: what is listed of this process's own, and who commits to git.
    """
    home = str(Path.home())
    shown: list[str | None] = [git_folder(workspace, home)]
    if environment is None:
        environment = {"PATH": os.defpath, **listed(os.environ, network=network), **homes_of(home)}
        who = identity_file()
        if who is not None:
            environment["GIT_CONFIG_GLOBAL"] = who
            shown.append(who)
    shown += shown_of(home, environment.get("PATH", os.defpath))
    shown += _named(environment, home)
    return Confinement(
        workspace=workspace,
        readable=tuple(dict.fromkeys(one for one in shown if one is not None)),
        network=network,
        environment=environment,
        limits=Limits() if limits is None else limits,
    )


def _named(environment: Mapping[str, str], home: str) -> Iterator[str]:
    """
    What *environment* names of `PLACES`, but for what holds the whole *home*.
    """
    own = os.path.realpath(home)
    for name in PLACES:
        for entry in environment.get(name, "").split(os.pathsep):
            real = os.path.realpath(entry)
            if Path(entry).is_absolute() and Path(real).exists() and not f"{own}/".startswith(f"{real.rstrip('/')}/"):
                yield real
