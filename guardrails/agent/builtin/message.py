"""
The tool that says something to a person before the work is done: message.
"""

from collections.abc import Callable
from typing import Any, Final

from .failure import ToolFailure, ToolSet


MAX_CHARS: Final = 16_384
_CONTROL: Final = dict.fromkeys(
    {*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)} - {ord("\n"), ord("\t")}
)
"""What moves the cursor of a terminal, or turns the order of what is read."""


class Outbox(ToolSet):
    """
    Hands what the agent says to *deliver*, a function of the text.
    """

    names = ("message",)

    def __init__(self, deliver: Callable[[str], object]) -> None:
        self._deliver = deliver

    def message(self, text: str) -> dict[str, Any]:
        """
        Send the user a short message while you go on working; nobody answers it.
        """
        plain = text.encode(errors="replace").decode().replace("\r\n", "\n").translate(_CONTROL).strip()
        if not plain:
            raise ToolFailure("validation", "the message is empty", retryable=False)
        if len(plain) > MAX_CHARS:
            raise ToolFailure("too_large", f"the message has {len(plain):,} characters (limit {MAX_CHARS:,})")
        self._deliver(plain)
        return {"delivered": True}
