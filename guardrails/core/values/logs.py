"""
The messages of the library through `logging`, under the name `guardrails`.
"""

import logging

from typing import Final


log: Final = logging.getLogger("guardrails")

_said: set[str] = set()
_SAID: Final = 1_024


def warn_once(key: str, message: str, *values: object) -> None:
    """
    Warn about *key* the first time only.
    """
    if key not in _said and len(_said) < _SAID:
        _said.add(key)
        log.warning(message, *values)
