"""
Whether a result is all there is: the signs of more in it, and how to go on.

    names    how members are called: cursors, flags, totals, places
    signs    the facts of one listing, and what they say together
    reading  where facts are looked for: objects, JSON text, MCP blocks, never inside rows
    prose    what plain text says of itself: "showing 1-10 of 120"

All of it is pure and its work is bounded: `reading.MAX_OBJECTS` objects, some members of each, the ends of a text.
"""

from .names import LISTS
from .reading import Extent, extent_of


__all__ = ["LISTS", "Extent", "extent_of"]
