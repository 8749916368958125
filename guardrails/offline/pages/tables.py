"""
The tables of the page. They scroll in a box of their own, so that the page never does.
"""

import json

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from .markup import EMPTY, SENTENCE, Markup, join, short, tag


TALL: Final = 25
"""Rows from which on a table scrolls in its box."""
DRAWN: Final = 500
"""Rows that are drawn at first; a button draws the others."""


class Heading(NamedTuple):
    """
    One column.
    """

    name: str
    number: bool = True
    meaning: str | None = None


class Figure(NamedTuple):
    """
    A cell of a drawn table, and the number that it is sorted by; None: there is nothing to count.
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
    Returns a table that a script may sort and, with *filtered*, search. *groups* are headings above the headings,
    (name, columns).
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


def row(first: Markup, *cells: str) -> Markup:
    """
    Returns a row whose first cell names it. Markup is text, all else figures; those that are nothing are paler.
    """
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell, class_=_kind(cell)) for cell in cells))


def drawn_table(caption: str, headings: Sequence[Heading], rows: Sequence[Sequence[str | Figure]]) -> Markup:
    """
    Returns a table of any length, which can be sorted and searched. The page's script draws its rows, each with its
    name first, from JSON beside it. Cells are plain text, never HTML.
    """
    data = {
        "kinds": ["n" if each.number else "w" for each in headings],
        "most": DRAWN,
        "rows": [[short(str(name)) or EMPTY, *map(_datum, cells)] for name, *cells in rows],
    }
    head = tag("thead", tag("tr", *map(_heading, headings)))
    whole = tag("table", tag("caption", caption), head, tag("tbody"))
    tall = "box tall" if len(rows) > TALL else "box"
    without = tag(
        "noscript", tag("p", "The rows are drawn by a script, which does not run here; `--json` has them too.")
    )
    return join([tag("div", whole, block(data), class_=tall, tabindex=0, role="region", aria_label=caption), without])


def _datum(cell: str | Figure) -> Any:
    """
    A text, a number that is shown as it is, or a text and the number that it is sorted by.
    """
    if not isinstance(cell, Figure):
        return short(cell, SENTENCE)
    if cell.value is None:
        return cell.text
    return cell.value if cell.text == f"{cell.value:,}" else [cell.text, float(f"{cell.value:.6g}")]


def block(data: Any) -> Markup:
    """
    Returns *data* as JSON in a page: nothing in it can end its element, or be taken for HTML.
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return tag("script", Markup(text), type="application/json")


def _kind(cell: str) -> str:
    if isinstance(cell, Markup):
        return "w"
    return "n" if any(c in "123456789" for c in cell) else "n z"
