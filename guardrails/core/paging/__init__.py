"""
The completeness of a result: the signs of more in it, and how to go on.

    names              how members are called: cursors, flags, totals, places
    listing            one listing, and what its signs say together
    scalars signs      what each of its members says
    numbers            what its numbers say together
    phrases prose      what plain text says of itself: "showing 1-10 of 120"
    carriers objects   texts and objects: which hold a result, which speak of pages
    reader reading     where signs are looked for: never inside rows

All of it is pure and its work is bounded: `reader.MAX_OBJECTS` objects, some members of each, the ends of a text.
"""

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from .reader import Extent as Extent
    from .reading import extent_of as extent_of


def __getattr__(name: str) -> Any:
    # The first result needs them; a start, which has none, does without.
    if name != "extent_of":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from .reading import extent_of

    globals()["extent_of"] = extent_of
    return extent_of
