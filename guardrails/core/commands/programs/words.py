"""
A word of a command as far as it is known before the command runs, and why a command is refused.
"""

from typing import Final, NamedTuple

from guardrails.core.commands.grammar.scope import UNKNOWN


_SHOWN: Final = 60


class UnsafeError(Exception):
    """
    A command that may do more than read: *reason* as a clause, and what to write in its place.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


class Word(NamedTuple):
    """
    One word, or several: what a glob finds, or a pipe gives.
    """

    text: str
    """With `UNKNOWN` for what only the running command knows."""
    glob: bool = False
    """Whether it is a pattern: its matches, of which none begins with `-`."""

    @property
    def reading(self) -> str:
        """
        The texts that one word of the command may be.
        """
        return f"./{self.text}" if self.glob and self.text.startswith(UNKNOWN) else self.text

    @property
    def many(self) -> bool:
        """
        Whether it may be more than one word.
        """
        return self.glob or self.text.startswith(UNKNOWN)


def shown(text: str) -> str:
    """
    Returns *text* between backticks, short, without invisible characters.
    """
    said = "".join(char if char.isprintable() and char != "`" else "…" for char in text[:_SHOWN])
    return f"`{said}…`" if len(text) > _SHOWN else f"`{said}`"
