"""
The tables of the page. They scroll in a box of their own, so that the page never does.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .markup import Markup, tag


TALL: Final = 25
"""Rows from which on a table scrolls in its box."""


class Heading(NamedTuple):
    """
    One column.
    """

    name: str
    number: bool = True
    meaning: str | None = None


class Figure(NamedTuple):
    """
    A cell, and the number that it is sorted by if that does not stand in it.
    """

    text: str
    value: float | None


def table(
    caption: str,
    headings: Sequence[Heading],
    rows: Sequence[Markup],
    *,
    groups: Sequence[tuple[str, int]] = (),
    foot: Markup | None = None,
    filtered: bool = False,
    sortable: bool = True,
) -> Markup:
    """
    A table that a script may sort and, with *filtered*, search. *groups* are headings above the headings, (name, columns).
    """
    above = (
        tag("tr", *(tag("th", name, colspan=n if n > 1 else None, scope="colgroup") for name, n in groups))
        if groups
        else ""
    )
    names = tag("tr", *map(_heading, headings))
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", above, names),
        tag("tbody", *rows),
        tag("tfoot", foot) if foot else "",
        class_="sortable" if sortable else None,
    )
    return tag(
        "div",
        whole,
        class_="box tall" if len(rows) > TALL else "box",
        tabindex=0,
        role="region",
        aria_label=caption,
        data_filter="tbody tr" if filtered else None,
    )


def _heading(each: Heading) -> Markup:
    return tag("th", each.name, scope="col", class_="n" if each.number else None, title=each.meaning)


def row(first: Markup, *cells: str | Figure) -> Markup:
    """
    A row whose first cell names it. Markup is text, all else figures; those that are nothing are paler.
    """
    return tag("tr", tag("th", first, scope="row"), *map(_cell, cells))


def _cell(cell: str | Figure) -> Markup:
    if isinstance(cell, Figure):
        value = "" if cell.value is None else f"{cell.value:.6g}"
        return tag("td", cell.text, class_=_kind(cell.text), data_v=value)
    return tag("td", cell, class_=_kind(cell))


def _kind(cell: str) -> str:
    if isinstance(cell, Markup):
        return "w"
    return "n" if any(c in "123456789" for c in cell) else "n z"
