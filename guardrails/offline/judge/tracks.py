"""
The open sessions of a judgement, by (source, session id, run).
"""

import heapq

from collections.abc import Iterable, Iterator
from typing import Protocol

from .track import LensOf, Track


Key = tuple[str, str, str]
"""Sources may use the same name for sessions of theirs, and a name may have more than one life."""


class Tracks(Protocol):
    """
    The store of open sessions.
    """

    @property
    def spilled(self) -> int:
        """
        The number of sessions that were put out of memory.
        """
        ...

    def get(self, key: Key, lens_of: LensOf) -> Track | None:
        """
        Returns the session of *key*; None: it was never put. *lens_of* gives the chain that a packed one goes on with.
        """
        ...

    def put(self, key: Key, track: Track) -> None:
        """
        Keep a new session.
        """
        ...

    def busiest(self, most: int, lens_of: LensOf) -> list[tuple[Key, Track]]:
        """
        Returns the sessions with the most stops, those first, at most *most*.
        """
        ...

    def packed(self) -> Iterator[tuple[Key, int, bytes]]:
        """
        Returns (key, stops, track as `Track.to_bytes` gives it) of all sessions.
        """
        ...


class OpenTracks:
    """
    All of them in memory.
    """

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: dict[Key, Track] = {}

    @property
    def spilled(self) -> int:
        return 0

    def get(self, key: Key, lens_of: LensOf) -> Track | None:
        return self.open.get(key)

    def put(self, key: Key, track: Track) -> None:
        self.open[key] = track

    def busiest(self, most: int, lens_of: LensOf) -> list[tuple[Key, Track]]:
        return busiest(self.open.items(), most)

    def packed(self) -> Iterator[tuple[Key, int, bytes]]:
        return ((key, track.stop_count, track.to_bytes()) for key, track in self.open.items())


def busiest(tracks: Iterable[tuple[Key, Track]], most: int) -> list[tuple[Key, Track]]:
    """
    The *tracks* with the most stops, the most first. Sessions without a stop are left out.
    """
    stopped = (each for each in tracks if each[1].stop_count)
    return heapq.nsmallest(most, stopped, key=lambda each: (-each[1].stop_count, each[0]))
