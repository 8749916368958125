"""
The tool that says something to a person before the work is done: message.
"""

from collections.abc import Callable
from typing import Any, Final

from .failure import ToolFailure, told


MAX_CHARS: Final = 16_384
_CONTROL: Final = {code: None for code in (*range(32), 127) if chr(code) not in "\n\r\t"}


class Outbox:
    """
    Hands what the agent says to *deliver*, a function of the text.
    """

    def __init__(self, deliver: Callable[[str], object]) -> None:
        self._deliver = deliver

    @property
    def tools(self) -> dict[str, Any]:
        """
        The functions by name.
        """
        return {"message": told(self.message)}

    def message(self, text: str) -> dict[str, Any]:
        """
        Send the user a short message while you go on working; nobody answers it.
        """
        plain = text.translate(_CONTROL).strip()
        if not plain:
            raise ToolFailure("validation", "the message is empty", retryable=False)
        if len(plain) > MAX_CHARS:
            raise ToolFailure("too_large", f"the message has {len(plain):,} characters (limit {MAX_CHARS:,})")
        self._deliver(plain)
        return {"delivered": True}
