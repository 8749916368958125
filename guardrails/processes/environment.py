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
