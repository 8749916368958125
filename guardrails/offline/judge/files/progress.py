"""
The progress of work on files, and the time that it may still take.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """
    The progress of the work, for a person.
    """

    file: str
    number: int
    """From 1."""
    files: int
    calls: int
    seconds: float
    share: float | None = None
    """Of the bytes of all files; None where nobody knows how many there are."""
    before: float = 0.0
    """The share that was done when *seconds* began: work is taken up again."""

    @property
    def left_s(self) -> float | None:
        """
        Seconds until all is done, if it goes on at this speed. None if that cannot be said.
        """
        if self.share is None or self.share <= self.before:
            return None
        return self.seconds * (1 - self.share) / (self.share - self.before)


def share_of(sizes: Sequence[int], done: int, read: int) -> float | None:
    """
    Returns the share of all bytes that are done: *done* files of *sizes*, in bytes, and *read* bytes of the next.
    Returns None if all are pipes, of no size.
    """
    whole = sum(sizes)
    return min(1.0, (sum(sizes[:done]) + read) / whole) if whole else None
