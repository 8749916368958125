"""
The messages of the library through `logging`, under the name `guardrails`.
"""

import logging

from typing import Final


log: Final = logging.getLogger("guardrails")

_messages: set[str] = set()
_MOST: Final = 1_024


def warn_once(key: str, message: str, *values: object) -> None:
    """
    Warn about *key* the first time only.
    """
    if key not in _messages and len(_messages) < _MOST:
        _messages.add(key)
        log.warning(message, *values)
