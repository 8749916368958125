"""
The words of a plain text about itself in a line of its own: "showing 1-10 of 120", "page 1 of 12", "... and 30 more".

Only the first and the last lines are read, and lines in brackets that tell of a cut. The middle of a text is the result
itself. Lines are short, so that no pattern takes long.
"""

import re

from typing import Final

from . import phrases
from .listing import NARROW, ON, Fact, Listing
from .names import Kind, kind_of
from .scalars import flag


_END_CHARS: Final = 1_600
"""Characters at either end of a text whose lines are read."""
_LINES: Final = 6
_SPLITS: Final = 18
"""Lines, blank ones too, at either end of a text."""
_LINE_CHARS: Final = 220
_SEARCHED: Final = 262_144
"""Characters in which they are looked for."""
_MAX_MARKS: Final = 16
"""Tellings of a cut that are looked at in the middle of a text."""

_STATED: Final = frozenset({Kind.MORE, Kind.CUT, Kind.BROKEN, Kind.WHOLE})
_COUNTS, _LEFT, _CUTS, _LIMITS, _MEMBERS = 1, 2, 4, 8, 16
"""Things that the words of a line may tell of."""
_WORDS: Final = tuple(
    (kind, word)
    for kind, words in (
        (_COUNTS, (" of ", "(of ", "page", "show", "display", "return", "list", "result", "fetched", "retrieved")),
        (
            _LEFT,
            (
                "more",
                "additional",
                "further",
                "other",
                "rest",
                "remaining",
                "next",
                "end of",
                "continue",
                "hidden",
                "not shown",
                "not displ",
                "not list",
            ),
        ),
        (_CUTS, ("truncat", "omitted", "clipped", "cut ", "not shown", "too l", "partial", "complete", "only ")),
        (_LIMITS, ("limit", "maximum", "capped", "restricted", "may be", "might be")),
        (_MEMBERS, ("cursor", "timed", "last", "resum", "token")),
    )
    for word in words
)


def tell(listing: Listing, text: str) -> None:
    """
    Add to *listing* what *text* says of its own extent.
    """
    pages: list[tuple[int, int]] = []
    lines = [line for line in _lines(text) if len(line) <= _LINE_CHARS]
    ends = "\n".join(lines).lower()
    telling = [one for one in _WORDS if one[1] in ends]
    if telling:
        _of_neighbours(listing, ends, pages)
    for line in lines:
        if line[0] in "[(" and "/" in line and (at := phrases.BRACKETED.match(line)):
            first, last, total = _integers(at)
            if first <= last:
                _reached(listing, last, total, f"{first} to {last} of {total}")
    if telling:
        for line in lines:
            _of_line(listing, line, telling, pages)
    if pages:
        # A text of many pages tells of each; the last counts.
        page, of = max(pages)
        if page < of:
            listing.more.append((1, f"This is page {page} of {of}: ask for page {page + 1}."))
        else:
            listing.ends = True
    _of_marks(listing, text)


def _of_neighbours(listing: Listing, ends: str, pages: list[tuple[int, int]]) -> None:
    """
    Two statements that belong together, each by a name of its own: `Total: 120`, `Showing: 10`.
    """
    if "total" not in ends and "pages" not in ends:
        return
    if at := phrases.TOTALLED.search(ends):
        total, last = _integers(at)
        _reached(listing, last, total, f"up to {last} of {total}")
    elif at := phrases.SHOWN_OF.search(ends):
        last, total = _integers(at)
        _reached(listing, last, total, f"up to {last} of {total}")
    if at := phrases.PAGE_LINES.search(ends):
        page, of = _integers(at)
        pages.append((page, of))


def _lines(text: str) -> list[str]:
    """
    Returns the first and the last lines that are not blank.
    """
    if len(text) <= _END_CHARS:
        lines = [line for line in text.split("\n") if line and not line.isspace()]
        return lines if len(lines) <= 2 * _LINES else lines[:_LINES] + lines[-_LINES:]
    head, tail = text[:_END_CHARS].split("\n", _SPLITS), text[-_END_CHARS:].rsplit("\n", _SPLITS)
    leading = [line for line in head[:-1] if line and not line.isspace()]
    trailing = [line for line in tail[1:] if line and not line.isspace()]
    return leading[:_LINES] + trailing[-_LINES:]


def _of_line(listing: Listing, line: str, telling: list[tuple[int, str]], pages: list[tuple[int, int]]) -> None:  # noqa: C901  a case for each sign
    lowered = line.lower()
    words = 0
    for kind, word in telling:
        if word in lowered:
            words |= kind
    if not words or phrases.OF_A_FILE.match(line):
        return
    said = (phrases.TAG.sub("", lowered, count=1) if lowered[:1] == "<" else lowered).strip(phrases.STRIPPED)
    counted = words & _COUNTS and phrases.COUNTED.search(said) is not None
    if counted and (at := phrases.PAGE.search(said)):
        page, of = _integers(at)
        pages.append((page, of))
    elif counted and (at := phrases.RANGE.search(said) or phrases.BARE_RANGE.match(said)):
        first, last, total = _integers(at)
        _reached(listing, last, total, f"{first} to {last} of {total}")
    elif counted and (at := phrases.PART.search(said) or phrases.BARE_PART.match(said) or phrases.AND_ALL.search(said)):
        shown, total = _integers(at)
        _reached(listing, shown, total, f"{shown} of {total}")
    elif counted and (at := phrases.ALL_AND.search(said)):
        total, shown = _integers(at)
        _reached(listing, shown, total, f"{shown} of {total}")
    elif words & _LEFT and phrases.NO_MORE.match(said):
        listing.ends = True
    elif words & _LEFT and (at := phrases.LISTED.search(said)):
        listing.more.append((2, f"{at[1]} more are not shown: {ON}."))
    elif words & _LEFT and (at := phrases.HIDDEN.match(said)):
        if at[1] != "0":
            listing.more.append((2, f"{at[1]} more are not shown: {ON}."))
    elif words & _LEFT and (at := phrases.MORE.match(said)) and at[2] != "0" and _is_left(line, said, at):
        listing.more.append((2, f"{at[2]} more are not shown: {ON}."))
    elif words & _LEFT and (
        phrases.AVAILABLE.search(said) or phrases.GO_ON.search(said) or phrases.PAGER.match(lowered)
    ):
        listing.more.append((3, f"The text says that there is more: {ON}."))
    elif words & _CUTS and phrases.BROKEN.search(said):
        listing.broken = f"The text says that the result is not whole. {NARROW}"
    elif words & _CUTS and (
        phrases.ONLY.search(said)
        or phrases.CUT.match(said)
        or (phrases.CUT_MARK.match(said) and line.lstrip()[:1] in phrases.BRACKETS)
    ):
        listing.more.append((4, f"The text says that it was cut. {NARROW}"))
    elif (words & _LIMITS or _may_state_a_limit(said)) and phrases.LIMITED.search(said):
        listing.doubt = True
    elif ":" in line or "=" in line:
        _of_member(listing, line)


def _may_state_a_limit(said: str) -> bool:
    # `LIMITED` takes longer than all else; these are what it begins with but for the words of `_LIMITS`.
    return "showing" in said or "displaying" in said or said.startswith("more ")


def _is_left(line: str, said: str, at: re.Match[str]) -> bool:
    """
    Returns whether "30 more" ends a listing: it is led by dots or "and", names what is left, or is all of its line.
    """
    led = at[1] is not None or line.lstrip(" \t/#*([<-").startswith(("...", "\u2026", "+"))
    return led or at[3] is not None or at[4] is not None or said.endswith("more")


def _integers(at: re.Match[str]) -> list[int]:
    return [int(one.replace(",", "")) for one in at.groups() if one is not None and one[:1].isdecimal()]


def _reached(listing: Listing, last: int, total: int, what: str) -> None:
    if last < total:
        listing.more.append((2, f"This is {what}: {ON}."))
    else:
        listing.ends = True


def _of_member(listing: Listing, line: str) -> None:
    """
    A line like `next cursor: abc`.
    """
    at = phrases.MEMBER.match(line.strip(" \t\r*_#>()[]{}-|"))
    if at is None:
        return
    kind, name, value = kind_of(at[1]), at[1].strip(), at[2]
    if kind is Kind.CURSOR:
        # Words are the types and names of a program.
        is_one = " " not in value and phrases.TOKEN.search(value) is not None and not name.lower().startswith("contin")
        if is_one:
            listing.facts.append(Fact(kind, name, value, found=False))
    elif kind is Kind.NEXT:
        listing.doubt = listing.doubt or value.startswith(("http://", "https://"))
    elif kind in _STATED and _is_statement(line) and flag(value) is not None:
        listing.facts.append(Fact(kind, name, flag(value), found=False))


def _is_statement(line: str) -> bool:
    """
    Returns whether a line like `has_more: true` is no assignment and no argument of a program.
    """
    if ":" in line:
        return line[:1] not in {" ", "\t"} or '"' in line
    return " " not in line and not line.endswith(",")


def _of_marks(listing: Listing, text: str) -> None:
    for mark in phrases.MARKS:
        at = -1
        for _ in range(_MAX_MARKS):
            at = text.find(mark, at + 1, _SEARCHED)
            if at < 0:
                break
            if phrases.INLINE.search(text, max(0, at - 90), at + 100):
                listing.more.append((4, f"The text says that it was cut. {NARROW}"))
                return
