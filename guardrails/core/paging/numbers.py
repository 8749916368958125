"""
The numbers of a listing, read together: matches shown, their total, where they begin, which page of how many.
"""

from itertools import islice
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .listing import ON, Fact, Listing
from .names import Kind, sayable, usual_kind
from .scalars import is_empty, is_rough, number, span


_SUMMED: Final = 256
"""Rows whose columns are added up."""
_PLACES: Final = frozenset(
    {Kind.OFFSET, Kind.START, Kind.LIMIT, Kind.PAGE, Kind.PAGES, Kind.NEXT, Kind.BACK, Kind.MORE, Kind.CURSOR}
)
"""Beside one of these a bare `total` counts matches."""
_TOTALS: Final = frozenset({Kind.TOTAL, Kind.COUNT})
_BETWEEN: Final = pattern(r"\d ?(?:-|\u2013|to)")
_LETTERS: Final = pattern(r"[^a-z0-9]")
_UNSURE_PAGES: Final = frozenset({"pages", "pagecount", "numpages", "numberofpages"})
"""A book has them too."""


def count(listing: Listing) -> None:
    """
    Add to *listing* what its numbers say.
    """
    told: dict[Kind, tuple[int, Fact]] = {}
    for fact in listing.facts:
        if fact.kind not in _NUMBERS:
            continue
        said = number(fact.value)
        if said is None:
            _read_words(listing, fact)
        else:
            # `last_page` and `pages` say one thing.
            kind = Kind.PAGES if fact.kind is Kind.LAST else fact.kind
            # Beside a total stands a count of those shown, or of those asked for.
            if kind not in told or (kind is Kind.COUNT and _outdoes((said, fact), told[kind], listing)):
                told[kind] = (said, fact)
    if not told:
        return
    listing.later = listing.later or _begin(listing, told)[0] != 0
    _place_counts(listing, told)
    total = _total(listing, told)
    if total is not None:
        listing.total = total
        _of_total(listing, told, total)
    if Kind.PAGES in told:
        _of_pages(listing, told)


_NUMBERS: Final = frozenset(
    {
        Kind.TOTAL,
        Kind.TOTAL_OF,
        Kind.COUNT,
        Kind.OFFSET,
        Kind.START,
        Kind.UNTIL,
        Kind.LIMIT,
        Kind.PAGE,
        Kind.PAGE_FROM_0,
        Kind.PAGES,
        Kind.LAST,
        Kind.SHOWN,
        Kind.OF,
        Kind.RANGE,
    }
)


def _read_words(listing: Listing, fact: Fact) -> None:
    """
    Read a number that is written as a range, or that cannot be read.
    """
    # Without two ends a range may be a share of something.
    is_part = fact.kind in _SPANNED and (fact.kind is not Kind.RANGE or _BETWEEN.search(str(fact.value)[:48]))
    part = span(fact.value) if is_part else None
    if part is not None and (fact.kind in _OWN_SPANS or fact.found):
        last, total = part
        if last >= total:
            listing.ends = True
        elif fact.kind is Kind.PAGE:
            listing.more.append((1, f"This is page {last} of {total}: ask for page {last + 1}."))
        else:
            listing.more.append((2, f"This is up to {last} of {total}: {ON}."))
    elif fact.found and (is_rough(fact.value) or (fact.kind in _UNREADABLE and not is_empty(fact.value))):
        listing.doubt = True


_OWN_SPANS: Final = frozenset({Kind.RANGE, Kind.SHOWN})
_UNREADABLE: Final = frozenset({Kind.TOTAL, Kind.PAGES})
_SPANNED: Final = _OWN_SPANS | {Kind.PAGE, Kind.PAGES}


def _place_counts(listing: Listing, told: dict[Kind, tuple[int, Fact]]) -> None:
    """
    Tell the numbers whose meaning hangs on their neighbours.
    """
    if Kind.OF in told:
        of, fact = told.pop(Kind.OF)
        if Kind.SHOWN in told and listing.rows is not None:
            told.setdefault(Kind.TOTAL, (of, fact))
        elif Kind.PAGE in told and fact.name.rpartition(".")[2].lower() == "of":
            told.setdefault(Kind.PAGES, (of, fact))


def _outdoes(one: tuple[int, Fact], other: tuple[int, Fact], listing: Listing) -> bool:
    """
    Returns whether *one* of two counts is the likelier total: in a place for pages with a beginning, that of its name.
    """
    placed = any(fact.sure and fact.kind in {Kind.START, Kind.OFFSET, Kind.PAGE} for fact in listing.facts)
    if placed and _is_total(one[1]) is not _is_total(other[1]):
        return _is_total(one[1])
    return one[0] > other[0]


def _is_total(fact: Fact) -> bool:
    return fact.name.rpartition(".")[2].lower() == "total"


def _total(listing: Listing, told: dict[Kind, tuple[int, Fact]]) -> int | None:
    """
    Returns how many matches there are. Returns None if no number says that.
    """
    if Kind.TOTAL in told:
        return told[Kind.TOTAL][0]
    if Kind.TOTAL_OF in told and _names_the_rows(listing, told):
        if listing.thing and not any(fact.kind in _PLACES for fact in listing.facts):
            # It has them, whatever was asked for.
            listing.doubt = listing.doubt or told[Kind.TOTAL_OF][0] > (
                _shown(listing, told, told[Kind.TOTAL_OF][0]) or 0
            )
            return None
        return told[Kind.TOTAL_OF][0]
    if Kind.COUNT not in told:
        return None
    said, fact = told[Kind.COUNT]
    is_total = _is_total(fact)
    if listing.rows is None:
        return said if is_total and type(fact.value) is int and not listing.money else None
    if said <= len(listing.rows) or said in listing.lists.values():
        # `count` may be how many are shown.
        return said if is_total and not listing.money else None
    if fact.paged and any(one.kind in _PLACES for one in listing.facts):
        return said
    if listing.money or said in _sums(listing) or (type(fact.value) is float and _holds_fractions(listing.rows)):
        return None
    if listing.thing:
        listing.doubt = listing.doubt or listing.named
        return None
    if listing.named or (len(listing.lists) == 1 and _are_objects(listing.rows)):
        return said
    listing.doubt = True
    return None


def _names_the_rows(listing: Listing, told: dict[Kind, tuple[int, Fact]]) -> bool:
    fact = told[Kind.TOTAL_OF][1]
    # Of the names that are known by their words, some count anything.
    known = fact.kind is usual_kind(fact.name.rpartition(".")[2])
    placed = Kind.UNTIL in told or any(
        one.kind in _PLACES or one.kind in {Kind.DONE, Kind.SHOWN} for one in listing.facts
    )
    return (known and placed) or _named_list(listing, fact) is not None


def _named_list(listing: Listing, fact: Fact) -> int | None:
    """
    Returns the length of the list that a total like `total_users` or `user_count` is of. Returns None if there is none.
    """
    name = _LETTERS.sub("", fact.name.rpartition(".")[2].lower())
    lists = listing.lists | ({listing.rows_name: len(listing.rows)} if listing.rows_name else {})
    for one, length in lists.items():
        if len(one) > 2 and (one in name or one.removesuffix("s") + "count" == name):
            return length
    return None


def _are_objects(rows: Any) -> bool:
    return all(isinstance(row, dict) for row in rows[:4])


def _holds_fractions(rows: Any) -> bool:
    """
    Returns whether rows hold amounts: a whole amount beside them counts no rows.
    """
    return any(type(value) is float for row in rows[:4] if isinstance(row, dict) for value in row.values())


def _sums(listing: Listing) -> set[float]:
    """
    Returns the sums of the columns of the rows, or of the numbers beside them: a total equal to one counts no rows.
    """
    sums: dict[Any, float] = {}
    products = 0.0
    for row in listing.rows[:_SUMMED]:
        if not isinstance(row, dict):
            continue
        amounts = [
            (name, value) for name, value in islice(dict.items(row), 64) if type(value) is int or type(value) is float
        ]
        for name, value in amounts:
            sums[name] = sums.get(name, 0) + value
        if len(amounts) == 2:
            products += amounts[0][1] * amounts[1][1]
    beside = {sum(listing.others)} if len(listing.others) > 1 else set()
    return {round(products, 2), *(round(one, 2) for name, one in sums.items() if name != "id"), *beside}


def _of_total(listing: Listing, told: dict[Kind, tuple[int, Fact]], total: int) -> None:
    shown = _shown(listing, told, total)
    at, name = _begin(listing, told)
    if Kind.UNTIL in told and (Kind.START in told or shown is not None):
        end = told[Kind.UNTIL][0]
    elif at is not None and (shown is not None or name or Kind.PAGE in told):
        part = told[Kind.LIMIT][0] if shown is None and Kind.LIMIT in told else shown
        if part is None:
            return
        end = at + part
    else:
        # A later page whose place is not told.
        listing.doubt = listing.doubt or (shown is not None and shown < total and not listing.ends)
        return
    if end >= total:
        listing.ends = True
        listing.doubt = listing.doubt or any(is_rough(fact.value) for fact in listing.facts if fact.kind in _TOTALS)
        return
    what = f"{shown} of {total}" if not at and shown is not None else f"up to {end} of {total}"
    on = f"{ON}, with `{name}` = {end}" if name else ON
    listing.more.append((1 if name else 2, f"This is {what}: {on}."))


def _shown(listing: Listing, told: dict[Kind, tuple[int, Fact]], total: int) -> int | None:
    if Kind.TOTAL_OF in told and told[Kind.TOTAL_OF][0] == total:
        named = _named_list(listing, told[Kind.TOTAL_OF][1])
        if named is not None or Kind.SHOWN in told:
            return told[Kind.SHOWN][0] if named is None else named
    if listing.rows is None:
        return told[Kind.SHOWN][0] if Kind.SHOWN in told else None
    # Of several lists by names of a tool's own any may be the one.
    return total if not listing.named and total in listing.lists.values() else len(listing.rows)


def _begin(listing: Listing, told: dict[Kind, tuple[int, Fact]]) -> tuple[int | None, str]:
    """
    Returns how many matches stand before the first shown, and the name of that number. Returns None if this is a later
    page.
    """
    shown = None if listing.rows is None else len(listing.rows)
    limit = told[Kind.LIMIT][0] if Kind.LIMIT in told else shown
    if Kind.OFFSET in told:
        said, fact = told[Kind.OFFSET]
        return said, sayable(fact.name.rpartition(".")[2])
    if Kind.START in told:
        said, fact = told[Kind.START]
        from_1 = said == 1 or bool(limit and limit > 1 and said % limit == 1)
        return (said - 1, "") if from_1 else (said, sayable(fact.name.rpartition(".")[2]))
    if Kind.PAGE in told or Kind.PAGE_FROM_0 in told:
        before = _pages_before(told)
        if before == 0:
            return 0, ""
        return (before * told[Kind.LIMIT][0], "") if Kind.LIMIT in told else (None, "")
    return (None if listing.later else 0), ""


def _pages_before(told: dict[Kind, tuple[int, Fact]]) -> int:
    if Kind.PAGE not in told:
        return told[Kind.PAGE_FROM_0][0]
    page, _ = told[Kind.PAGE]
    return page if page == 0 or _counts_from_0(told) else page - 1


def _counts_from_0(told: dict[Kind, tuple[int, Fact]]) -> bool:
    # Engines that call their number of pages so count pages from 0.
    return Kind.PAGES in told and told[Kind.PAGES][1].name.rpartition(".")[2].lower().startswith("nb")


def _of_pages(listing: Listing, told: dict[Kind, tuple[int, Fact]]) -> None:
    pages, fact = told[Kind.PAGES]
    if pages < 1 or not (fact.found or Kind.LIMIT in told or Kind.TOTAL in told or not _may_be_a_books(listing, fact)):
        return
    if Kind.PAGE not in told and Kind.PAGE_FROM_0 not in told:
        listing.doubt = listing.doubt or (pages > 1 and fact.paged and not listing.ends)
        return
    page = told[Kind.PAGE if Kind.PAGE in told else Kind.PAGE_FROM_0][0]
    if _pages_before(told) + 1 < pages:
        listing.more.append((1, f"This is page {page} of {pages}: ask for page {page + 1}."))
    else:
        listing.ends = True


def _may_be_a_books(listing: Listing, fact: Fact) -> bool:
    name = fact.name.rpartition(".")[2].lower().replace("_", "")
    return name in _UNSURE_PAGES and listing.thing
