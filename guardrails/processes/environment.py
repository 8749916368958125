"""
The environment of a process that is started for a model.
"""

import re

from collections.abc import Mapping
from typing import Final


_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|AUTH|SESSION|DSN|_URL$|_URI$", re.IGNORECASE)
_HARMLESS: Final = frozenset({"XDG_SESSION_TYPE", "DESKTOP_SESSION", "XAUTHORITY"})


def harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """
    *environment* without what is named like a secret: keys, tokens, passwords, addresses that may hold one.
    """
    return {name: text for name, text in environment.items() if name in _HARMLESS or not _SECRET.search(name)}


_LISTED: Final = frozenset(
    {"CI", "COLORTERM", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "COLUMNS", "LOGNAME", "NO_COLOR", "PATH", "SHELL"}
    | {"SOURCE_DATE_EPOCH", "TERM", "TZ", "USER", "VIRTUAL_ENV"}
)


def listed(environment: Mapping[str, str]) -> dict[str, str]:
    """
    Of *environment* what programs need to work and what holds no key: the search path, language, time zone, terminal.

    HOME and TMPDIR are not in it: in a sandbox they are others.
    """
    return {name: text for name, text in environment.items() if name in _LISTED or name.startswith("LC_")}
