"""
The bound on the work of reading one command: in proportion to its length, for any text.
"""

from typing import Final

from .syntax import UnreadableError


_FREE: Final = 100_000
_EACH: Final = 32
"""Units for one character of the command."""
NODE: Final = 8
"""Units for a node of the tree that is visited, a command that is noted, and a character that is parsed."""


class Work:
    """
    Units of work that are left: about one for a character that is written, by an expansion too.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = _FREE + _EACH * size

    def spend(self, units: int) -> None:
        """
        Take *units* away. Raises UnreadableError if fewer are left.
        """
        left, self.left = self.left, max(0, self.left - units)
        if units > left:
            raise UnreadableError(
                "what it may run is many times as long as it is", "write a script file and run that, or several calls"
            )
