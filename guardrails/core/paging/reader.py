"""
The reader of a result: collects what it tells of its listings, wherever that stands.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from guardrails.core.text.jsonable import BASIC
from guardrails.core.values.types import STATUSES

from .carriers import blocks, looks_like_data, unfenced
from .listing import Fact, Listing
from .names import BESIDE, LISTS, Kind, kind_of, speaks_of_pages
from .numbers import count
from .objects import MAX_REMARK, SILENT, are_rows, is_listing, may_speak, members, says_nothing
from .prose import tell
from .scalars import number
from .signs import read


MAX_OBJECTS: Final = 48
"""Objects of a result that are looked into."""
MAX_DEPTH: Final = 7
MAX_PARSED: Final = 262_144
"""Characters of a text that is read as JSON."""
_RANKS: Final = {name: rank for rank, name in enumerate(LISTS)}
_REFUSALS: Final = frozenset(STATUSES) - {"success", "error"}
_CLAIMS: Final = frozenset({"is_complete", "limit_reached"})
"""The claims of an object that speaks as a refusal of ours are of no result."""
_LISTED: Final = frozenset({None, Kind.INSIDE, Kind.MONEY, Kind.THING})
_SURE_BESIDE: Final = frozenset({Kind.CURSOR, Kind.MORE, Kind.CUT, Kind.BROKEN, Kind.WHOLE, Kind.TOTAL})
_SIDES: Final = 8
"""Objects beside matches that are asked for signs."""
_REMARKS: Final = 4
"""Texts of a list of remarks that are read."""
_HOLDERS: Final = {
    Kind.PAGING: Kind.PAGING,
    Kind.PAGE: Kind.PAGING,
    Kind.PAGES: Kind.PAGING,
    Kind.MARK: Kind.PAGING,
    Kind.ABOUT: Kind.ABOUT,
    Kind.LINK: Kind.ABOUT,
}
"""Objects that hold what is said of pages, by how far their members are trusted to speak of nothing else."""


@dataclass(slots=True)
class Extent:
    """
    The part of all matches that a result holds.
    """

    found: int | None = None
    """Elements of its list, if it is one or holds one by a usual name."""
    total: int | None = None
    """Matches in all."""
    complete: bool | None = True
    """None: the signs contradict each other, or cannot be read."""
    how: str | None = None
    """How to go on if there is more."""
    later: bool = False
    """It is not the first part of what was found."""


def _holds_list(value: dict[Any, Any]) -> bool:
    return any(isinstance(inner, (list, tuple)) for inner in dict.values(value))


def _is_of_something_else(value: dict[Any, Any]) -> bool:
    """
    Returns whether a bare total in an object is one of a thing of its own, or the sum of its neighbours.
    """
    numbers = []
    for name, inner in islice(dict.items(value), 2 * _SIDES):
        if type(name) is str and kind_of(name) in {Kind.MONEY, Kind.THING}:
            return True
        if type(inner) is int and inner:
            numbers.append(inner)
    return len(numbers) > 2 and 2 * max(numbers) == sum(numbers)


def _holds_objects(rows: Any) -> bool:
    return bool(rows) and isinstance(rows[0], (dict, list, tuple))


class Reader:
    """
    Collects the facts of a result, one listing at a time.
    """

    def __init__(self) -> None:
        self._listing = Listing()
        self._listings = [self._listing]
        self._rank = len(LISTS) + 1
        self._left = MAX_OBJECTS
        self.opaque = False
        """A place for pages holds an object of another type than JSON's."""

    def extent(self, found: int | None) -> Extent:
        """
        Returns the extent that all listings tell together.
        """
        complete: bool | None = True
        how = total = None
        for listing in self._listings:
            if listing.facts:
                read(listing)
                count(listing)
            said = listing.complete
            if said is False and complete is not False:
                complete, how = False, listing.how
            elif said is None and complete is True:
                complete = None
            total = listing.total if total is None else total
        later = self._listings[0].later
        return Extent(found, found if total is None else total, complete, how, later)

    def add(self, value: dict[Any, Any], path: str, depth: int) -> None:  # noqa: C901  a case for each sign
        """
        Add what an object tells of itself and of the listing it is.
        """
        if not self._may_look(depth):
            return
        listing = self._listing
        inside: list[tuple[str, Any]] = []
        unknown: dict[str, dict[Any, Any]] = {}
        status = value.get("status")
        is_refusal = isinstance(status, str) and status in _REFUSALS
        for name, member in members(value):
            kind = kind_of(name) if type(name) is str else None
            if is_refusal and name in _CLAIMS:
                continue
            if isinstance(member, (list, tuple)) and kind in _LISTED:
                self._add_rows(str(name), member, depth, usual=kind is Kind.INSIDE)
            elif kind is None:
                if isinstance(member, dict):
                    unknown[str(name)] = member
                elif type(member) is int:
                    listing.others.append(member)
            elif kind is Kind.INSIDE or (kind is Kind.REMARK and isinstance(member, dict)):
                inside.append((name, member))
            elif (
                kind is Kind.REMARK and isinstance(member, (list, tuple)) and member and not isinstance(member[0], str)
            ):
                self._add_rows(str(name), member, depth, usual=False)
            elif kind is Kind.REMARK or (kind is Kind.ABOUT and isinstance(member, str)):
                self._add_remarks(member)
            elif kind is Kind.MONEY:
                listing.money = True
            elif kind is Kind.THING:
                listing.thing = listing.thing or isinstance(member, (str, int))
            elif kind is Kind.PAGING and isinstance(member, str):
                self._add_remarks(member)
            else:
                self._add_fact(kind, f"{path}{name}", member, depth, trusted=False)
        for name, member in inside:
            if isinstance(member, dict) and listing.rows is None and are_rows(member):
                listing.rows, listing.named = list(dict.values(member)), True
            elif isinstance(member, dict):
                self.add(member, f"{path}{name}.", depth + 1)
            elif isinstance(member, str):
                self.add_text(member, depth + 1)
            elif not isinstance(member, BASIC):
                self.opaque = True
        if unknown:
            self._add_unknown(unknown, depth)

    def _add_remarks(self, said: Any) -> None:
        for text in said[:_REMARKS] if isinstance(said, (list, tuple)) else (said,):
            if isinstance(text, str) and len(text) <= MAX_REMARK:
                tell(self._listing, text)

    def _may_look(self, depth: int) -> bool:
        self._left -= 1
        may = self._left >= 0 and depth <= MAX_DEPTH
        # A place for signs that is not looked into may hold one.
        self._listing.doubt = self._listing.doubt or not may
        return may

    def _add_fact(self, kind: Kind, path: str, member: Any, depth: int, *, trusted: bool) -> None:
        holds = _HOLDERS.get(kind)
        if holds is None or not isinstance(member, dict):
            self.opaque = self.opaque or not isinstance(member, BASIC)
            self._listing.facts.append(Fact(kind, path, member, trusted))
        elif self._may_look(depth + 1):
            sure = trusted or holds is Kind.PAGING
            counts_else = not sure and _is_of_something_else(member)
            for name, inner in members(member):
                said = kind_of(name) if type(name) is str else None
                if said is Kind.INSIDE and type(inner) is int:
                    said = Kind.COUNT
                if said in SILENT and isinstance(inner, dict):
                    said = Kind.ABOUT
                if said is Kind.COUNT and counts_else:
                    continue
                if said is not None and said not in SILENT:
                    self._add_fact(said, f"{path}.{name}" if path else name, inner, depth + 1, trusted=sure)

    def _add_rows(self, name: str, rows: Any, depth: int, *, usual: bool) -> None:
        texts = blocks(rows)
        if texts is not None and usual:
            self.add_texts(texts, depth)
        elif name.lower() not in BESIDE:
            listing = self._listing
            if not usual:
                listing.lists[name.lower()] = len(rows)
            rank = _RANKS.get(name.lower(), len(LISTS) - usual)
            is_better = rank == self._rank and not _holds_objects(listing.rows) and _holds_objects(rows)
            if listing.rows is None or rank < self._rank or is_better:
                listing.rows, listing.rows_name, listing.named, self._rank = rows, name.lower(), usual, rank
            self.add_ends(rows)

    def _add_unknown(self, unknown: dict[str, dict[Any, Any]], depth: int) -> None:
        """
        Objects by names of a tool's own: an only one wraps the result; of several, each may be a listing by itself.
        """
        listing = self._listing
        if depth >= MAX_DEPTH:
            return
        if listing.rows is not None:
            self._add_sides(unknown, depth)
        holders = [member for member in unknown.values() if _holds_list(member)] if listing.rows is None else []
        wrapped = list(unknown.values()) if len(unknown) == 1 else holders
        if len(wrapped) == 1 and listing.rows is None and not listing.facts:
            self.add(wrapped[0], "", depth + 1)
            return
        for member in list(unknown.values())[:MAX_OBJECTS]:
            if is_listing(member):
                rank, self._rank, self._listing = self._rank, len(LISTS) + 1, Listing()
                self._listings.append(self._listing)
                self.add(member, "", depth + 1)
                self._rank, self._listing = rank, listing

    def _add_sides(self, unknown: dict[str, dict[Any, Any]], depth: int) -> None:
        """
        Objects by names of a tool's own beside matches: of their members only those that speak of pages are heard.
        """
        for name, member in islice(unknown.items(), _SIDES):
            speaks = speaks_of_pages(name)
            if is_listing(member) or (_holds_list(member) and not speaks):
                continue
            if speaks and "stat" not in name.lower():
                self._add_fact(Kind.ABOUT, name, member, depth + 1, trusted=False)
                continue
            for inner, value in islice(dict.items(member), _SIDES):
                kind = kind_of(inner) if type(inner) is str else None
                if kind is None and type(inner) is str and type(value) is int:
                    kind = kind_of(f"{name}_{inner}")
                if kind in _SURE_BESIDE:
                    self._add_fact(kind, f"{name}.{inner}", value, depth + 1, trusted=False)
                elif speaks and kind is Kind.COUNT and not _is_of_something_else(member):
                    # It may count something else.
                    self._listing.doubt = self._listing.doubt or (number(value) or 0) > len(self._listing.rows)

    def add_ends(self, rows: Any) -> None:
        """
        Add what the first or the last element of a list tells, if it speaks of pages alone.
        """
        for one, other in ((rows[-1], rows[0]), (rows[0], rows[-1])) if len(rows) > 1 else ():
            if isinstance(one, str):
                if len(one) <= MAX_REMARK:
                    tell(self._listing, one)
            elif may_speak(one) and not (isinstance(other, dict) and one.keys() == other.keys()):
                self._add_fact(Kind.PAGING, "", one, 0, trusted=True)

    def add_texts(self, texts: list[str], depth: int) -> None:
        """
        Add what the texts of one answer tell: data in at most one of them, the others are about it.
        """
        data = [text for text in texts if looks_like_data(text)]
        if len(data) == 1:
            self.add_text(data[0], depth + 1)
        tell(self._listing, "\n".join(text for text in texts if not looks_like_data(text)))

    def add_text(self, text: str, depth: int) -> None:
        """
        Add what a text tells: its structure if it is JSON, else its own words.
        """
        body = unfenced(text)
        if not looks_like_data(body):
            tell(self._listing, text)
        elif len(body) > MAX_PARSED:
            self._listing.doubt = True
        elif depth <= MAX_DEPTH:
            try:
                value = orjson.loads(body)
            except ValueError:
                tell(self._listing, text)
                return
            if isinstance(value, dict):
                if not says_nothing(value, None):
                    self.add(value, "", depth + 1)
            elif isinstance(value, list):
                self._add_rows("", value, depth + 1, usual=True)
            elif isinstance(value, str):
                self.add_text(value, depth + 1)
