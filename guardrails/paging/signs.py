"""
The members of one listing that may speak of pages, and what each says.
"""

import re

from dataclasses import dataclass, field
from typing import Any, Final

from .names import Kind
from .scalars import flag, is_empty, number


MAX_SHOWN: Final = 96
"""Characters of a value that a hint repeats."""
NARROW: Final = "Ask for a smaller part: a range, a filter or a page."
ON: Final = "ask for the next part"
_SHOWABLE: Final = re.compile(r"[A-Za-z0-9_.:/?&=%+~@,|$-]+")
"""No space and no quote: what a hint repeats of a tool's text can be no sentence."""
_WORD: Final = re.compile(r"[A-Za-z]+(?:[ _.\-][A-Za-z0-9]{1,12}){0,5}(?:\(\))?")
"""A step, a function or a chapter rather than a place in a listing."""
_SPACE: Final = re.compile(r"\s")
_ADDRESS: Final = re.compile(r"https?://|/|\?|\.\.")
_RELATION: Final = re.compile(r"""\brel=["']?([a-z]{1,12})""", re.IGNORECASE)
_TARGET: Final = re.compile(r"<([^<>\s]{1,2000})>[^<>]{0,200}\brel=[\"']?next\b", re.IGNORECASE)
_TARGETS: Final = frozenset(
    {"href", "url", "link", "uri", "after", "cursor", "token", "page", "offset", "start", "startindex"}
)


@dataclass(slots=True)
class Fact:
    """
    One member of a result that may speak of pages.
    """

    kind: Kind
    name: str
    """Where it stands, as a hint can say it; "" if it cannot."""
    value: Any
    found: bool
    """Stands in a place that is for pages alone; once judged: or beside matches."""
    paged: bool = False
    """Stands in such a place, or beside matches that are named so or counted."""


@dataclass(slots=True)
class Listing:
    """
    What a result tells of one listing; its parts may stand in several places.
    """

    facts: list[Fact] = field(default_factory=list)
    rows: Any = None
    """The matches: a list."""
    rows_name: str = ""
    named: bool = False
    """By one of the usual names."""
    lists: int = 0
    """Lists by other names."""
    others: list[int] = field(default_factory=list)
    """Whole numbers by other names."""
    money: bool = False
    thing: bool = False
    more: list[tuple[int, str]] = field(default_factory=list)
    """How to go on; the lower the number, the more helpful."""
    broken: str | None = None
    """How to go on if the search did not come to its end, which is no matter of pages."""
    ends: bool = False
    """No page follows."""
    whole: bool = False
    """Nothing is missing."""
    doubt: bool = False
    later: bool = False
    """It is not the first part."""
    mark: Fact | None = None
    """A place that may be the end."""
    total: int | None = None

    @property
    def complete(self) -> bool | None:
        """
        Whether this is all; None if its signs contradict each other, or cannot be read.
        """
        if self.broken is not None:
            return None if self.whole else False
        if self.more:
            return None if self.ends or self.whole else False
        if self.doubt or (self.mark is not None and not self.ends and not self.whole):
            return None
        return True

    @property
    def how(self) -> str | None:
        """
        How to go on.
        """
        if not self.more:
            return self.broken
        rank, text = min(self.more)
        return text if self.mark is None or rank < 2 else _go_on(self.mark.name, self.mark.value)[1]


_PAGED: Final = frozenset(
    {
        Kind.BACK,
        Kind.TOTAL,
        Kind.TOTAL_OF,
        Kind.COUNT,
        Kind.LIMIT,
        Kind.OFFSET,
        Kind.START,
        Kind.PAGE,
        Kind.PAGES,
        Kind.MORE,
    }
)


def read(listing: Listing) -> None:
    """
    Read the facts of *listing* but for its numbers.
    """
    found = listing.rows is not None
    paged = found and (listing.named or any(fact.kind in _PAGED for fact in listing.facts))
    for fact in listing.facts:
        fact.paged = fact.found or paged
        fact.found = fact.found or found
        reader = _READERS.get(fact.kind)
        if reader is not None:
            reader(listing, fact)


def _go_on(name: str, value: Any) -> tuple[int, str]:
    if not name:
        return 1, f"There is more: {ON}."
    text = str(value) if isinstance(value, (str, int)) else ""
    is_shown = len(text) <= MAX_SHOWN and _SHOWABLE.fullmatch(text)
    what = "link" if _ADDRESS.match(text) else "cursor"
    return 0, f"There is more: call again with the {what} in `{name}`{f': `{text}`' if is_shown else ''}."


def _by(fact: Fact, said: str = "true") -> str:
    return f" (`{fact.name}` is {said})" if fact.name else ""


def _cursor(listing: Listing, fact: Fact) -> None:
    value = fact.value
    if is_empty(value) or (type(value) is int and value < 1):
        listing.ends = True
    elif isinstance(value, str):
        if fact.found or not _SPACE.search(value):
            listing.more.append(_go_on(fact.name, value))
    elif type(value) is int or isinstance(value, (dict, list, tuple)):
        listing.more.append(_go_on(fact.name, value))
    elif value is not True:
        listing.doubt = True
    elif fact.found:
        listing.more.append((3, f"There is more: {ON}."))


def _next(listing: Listing, fact: Fact) -> None:
    value = _target(fact.value)
    if is_empty(value) or (type(value) is int and value < 1):
        listing.ends = True
    elif isinstance(value, str):
        if fact.paged or (fact.found and not _WORD.fullmatch(value)):
            listing.more.append(_go_on(fact.name, value))
        elif _ADDRESS.match(value):
            listing.doubt = True
    elif value is True and fact.found:
        listing.more.append((3, f"There is more: {ON}."))
    elif fact.found:
        listing.doubt = True


def _target(value: Any) -> Any:
    """
    Where a `next` that is an object leads; itself if that cannot be seen.
    """
    if isinstance(value, dict) and len(value) <= 16:
        for name, said in dict.items(value):
            if isinstance(name, str) and name.replace("_", "").lower() in _TARGETS and isinstance(said, (str, int)):
                return str(said)
    return value


def _back(listing: Listing, fact: Fact) -> None:
    listing.later = listing.later or not is_empty(fact.value)


def _mark(listing: Listing, fact: Fact) -> None:
    value = fact.value
    if not fact.found or not isinstance(value, (str, int)) or is_empty(value) or value in {0, "0"}:
        return
    if not (isinstance(value, str) and _SPACE.search(value)):
        listing.mark = fact


def _link(listing: Listing, fact: Fact) -> None:
    value = fact.value
    if isinstance(value, str):
        text = value[:8192]
        relations = {one.lower() for one in _RELATION.findall(text)}
        if "next" in relations:
            at = _TARGET.search(text)
            listing.more.append(_go_on(fact.name, at[1] if at else None))
        elif relations & {"prev", "previous", "first"}:
            listing.ends = True
    elif isinstance(value, (list, tuple)):
        for one in value[:32]:
            if isinstance(one, dict) and "next" in (one.get("rel"), one.get("relation")):
                listing.more.append(_go_on(fact.name, _target(one)))


def _more(listing: Listing, fact: Fact) -> None:
    value, said = fact.value, flag(fact.value)
    bare = fact.name.rpartition(".")[2].lower() == "more"
    if said is not None and (not bare or isinstance(value, bool) or fact.found):
        if said:
            listing.more.append((3, f"There is more: {ON}."))
        else:
            listing.ends = True
    elif type(value) is int and value > 1 and fact.found:
        listing.more.append((2, f"There are {value} more: {ON}."))
    elif not bare and not is_empty(value) and not isinstance(value, (list, tuple, dict)):
        listing.doubt = True


def _cut(listing: Listing, fact: Fact) -> None:
    value, said = fact.value, flag(fact.value)
    if said or (type(value) is int and value > 1) or fact.name.endswith("_truncated_json"):
        listing.more.append((4, f"The result was cut{_by(fact)}. {NARROW}"))
    elif said is False:
        listing.ends = True
    elif not is_empty(value):
        listing.doubt = True


def _broken(listing: Listing, fact: Fact) -> None:
    if flag(fact.value):
        listing.broken = f"The result is not whole{_by(fact)}. {NARROW}"


def _left(listing: Listing, fact: Fact) -> None:
    left = number(fact.value)
    if left:
        listing.more.append((2, f"{left} more are not shown: {ON}."))


def _whole(listing: Listing, fact: Fact) -> None:
    said = flag(fact.value)
    if said:
        listing.whole = True
    elif said is False:
        listing.more.append((3, f"This is not all{_by(fact, 'false')}: {ON}."))
    elif not is_empty(fact.value):
        listing.doubt = True


def _done(listing: Listing, fact: Fact) -> None:
    """
    `complete: false` beside matches is said of them; `done: false` may be said of a job that lists something.
    """
    if fact.value is True:
        listing.whole = listing.whole or fact.paged
    elif fact.value is False and fact.found:
        if fact.paged and fact.name.rpartition(".")[2].lower() == "complete" and not (listing.thing or listing.money):
            _whole(listing, fact)
        else:
            listing.doubt = True


def _last(listing: Listing, fact: Fact) -> None:
    if isinstance(fact.value, bool) and fact.paged:
        _whole(listing, fact)


_READERS: Final = {
    Kind.CURSOR: _cursor,
    Kind.NEXT: _next,
    Kind.BACK: _back,
    Kind.MARK: _mark,
    Kind.LINK: _link,
    Kind.MORE: _more,
    Kind.CUT: _cut,
    Kind.BROKEN: _broken,
    Kind.LEFT: _left,
    Kind.WHOLE: _whole,
    Kind.DONE: _done,
    Kind.LAST: _last,
}
