"""
The environment of a process that is started for a model.
"""

import re

from collections.abc import Mapping
from typing import Final


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
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH|SESSION|DSN|_URL$|_URI$", re.IGNORECASE)
_HARMLESS: Final = frozenset({"XDG_SESSION_TYPE", "DESKTOP_SESSION", "XAUTHORITY"})


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
    return {name: text for name, text in environment.items() if _is_listed(name, text, network=network)}


def _is_listed(name: str, text: str, *, network: bool) -> bool:
    return name in LISTED or (network and name.upper() in OF_NETWORK and "@" not in text)
