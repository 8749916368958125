"""
The messages of the library through `logging`, under the name `guardrails`. It is imported once there is one: that takes as long as a hook needs to
decide a call.
"""

import sys

from typing import TYPE_CHECKING, Final, cast

from .caches import Lazy


if TYPE_CHECKING:
    from logging import Logger

_messages: set[str] = set()
_MOST: Final = 1_024


def _logger() -> "Logger":
    from logging import getLogger

    return getLogger("guardrails")


log: Final = cast("Logger", Lazy(_logger))


def wants_info() -> bool:
    """
    Returns whether messages of the level INFO are wanted. A program that has not imported `logging` wants no more than warnings.
    """
    return "logging" in sys.modules and log.isEnabledFor(20)


def warn_once(key: str, message: str, *values: object) -> None:
    """
    Warn about *key* the first time only.
    """
    if key not in _messages and len(_messages) < _MOST:
        _messages.add(key)
        log.warning(message, *values)
