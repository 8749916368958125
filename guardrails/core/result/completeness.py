"""
The completeness of a result, by sure signs: a flag, a cursor, a count of what is left, a total above the rows shown, a mark of a cut.

Names are compared in small letters without separators, at the top and one level below. A bare total or page makes nothing known; what a
tool's own names mean is declared (`Tool(more="next_cursor", total="meta.count")`). No prose is read.
"""

import re

from functools import lru_cache
from typing import Any, Final, NamedTuple

from guardrails.core.values.late_pattern import pattern

from .content import is_unfinished, state_of
from .failures import brings, number_of, value_at


_TABLE: Final = {
    "flag": "hasmore hasmoreresults hasmoreitems hasmorepages hasmorerecords hasnext hasnextpage more moreresults moreavailable moreresultsavailable"
    " moreitems morepages nextpageavailable",
    "cut": "truncated istruncated outputtruncated resultstruncated incomplete incompleteresults isincomplete partial ispartial partialresults timedout"
    " exceededtransferlimit limitreached limitexceeded clipped",
    "end": "islast islastpage lastpage last isfinalpage iscomplete complete done eof endoflist endofresults",
    "cursor": "next nextpage nextcursor nexttoken nextpagetoken nextpagecursor nextlink odatanextlink nexturl nextpageurl nexturi nextmarker nextcontinuationtoken"
    " continuationtoken continuation continue resumptiontoken lastevaluatedkey nextrecordsurl nextoffset nextstart nextset nextbatch nextkeymarker"
    " nextpartitionkey scrollid searchafter",
    "left": "remaining remainingitems remainingitemcount remainingresults omitted omittedcount notshown morecount",
    "total": "totalmatches totalcount totalresults totalitems totalrecords totalrows totalhits totalelements numfound nbhits",
    "bare": "total count found size totalsize matches available totalpages pages pagecount page pagenumber currentpage pageindex offset skip start startat"
    " startindex limit perpage pagesize",
}
"""What a name tells by its value: true, more; true, not whole; false, more; a value, more; a count of more; all matches; nothing for sure."""
_ROWS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
_QUOTA: Final = frozenset({"limit", "reset", "quota", "used"})
"""Beside `remaining`, a quota is what remains."""
_LOOSE: Final = frozenset(
    {
        "next",
        "last",
        "more",
        "done",
        "complete",
        "continue",
        "total",
        "count",
        "size",
        "start",
        "limit",
        "found",
        "remaining",
    }
)
_HOLDER: Final = pattern(r"(?i)pag|meta|link|cursor|next|info|hits|result|search|response|list")
"""Objects whose members may speak of the rows beside them."""
_MARK: Final = pattern(
    r"(?im)^.{0,20}output too large|[\[(<\u2026] ?[^=\n]{0,30}truncated[^=\n]{0,30}[\])>\u2026]|^\W{0,8}(?:\.\.\.|\u2026) ?(?:and |\+)?\d[\d,]{0,12} (?:more|omitted)\b"
    r"|^\W{0,8}(?:showing|displaying)(?: results?| rows?)?:? (?:\d[\d,]{0,12} ?(?:-|\u2013|to) ?)?(\d[\d,]{0,12}) (?:out )?of (\d[\d,]{0,12})\b"
)
_SHOWABLE: Final = pattern(r"[A-Za-z0-9_.:/?&=%+~@,|$-]{1,96}")
"""No space and no quote: what a hint repeats of a tool's text can be no sentence."""
NARROWER: Final = "Ask for a smaller part: a range, a filter or a page."
ON: Final = "There is more: ask for the next part."


class Extent(NamedTuple):
    """
    The part of all matches that a result holds.
    """

    complete: bool | None = True
    """None: nothing is known."""
    found: int | None = None
    """Elements of its list, if it is one or holds one by a usual name."""
    total: int | None = None
    """Matches in all."""
    how: str | None = None
    """How to go on, if there is more."""


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    return {name: kind for kind, names in _TABLE.items() for name in names.split()}


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """
    Returns what a member of this *name* tells of completeness, as a word of the table; None if it tells nothing.
    """
    return _kinds().get(re.sub(r"[\W_]+", "", name).lower()) if len(name) <= 40 else None


def extent_of(content: Any, more: str = "", total: str = "") -> Extent:
    """
    Returns the extent that a *content* tells of itself; *more* and *total* are the declared places of a cursor and of the number of matches.
    """
    if type(content) is str:
        return Extent(False, how=ON) if state_of(content) == "waiting" else _of_text(content)
    if type(content) is not dict and type(content) is not list:
        return Extent()
    rows = (
        content
        if type(content) is list
        else next((content[name] for name in _ROWS if type(content.get(name)) is list), None)
    )
    found = None if rows is None else len(rows)
    declared = number_of(value_at(content, total)) if total else None
    cursor = value_at(content, more) if more else None
    if brings(cursor):
        return Extent(
            False, found, None if declared is None else int(declared), _go_on(more.rpartition(".")[2], cursor)
        )
    if declared is not None and found is not None:
        return Extent(
            found >= declared,
            found,
            int(declared),
            None if found >= declared else f"This is {found} of {int(declared)}: ask for the next part.",
        )
    told = _signs(content, found)
    if told.complete and type(content) is dict and is_unfinished(content):
        return Extent(False, how="It is not finished: ask again later.")
    return told._replace(complete=True) if more and told.complete is None and told.how is None else told


def _signs(content: Any, found: int | None) -> Extent:
    places = [("", content)] if type(content) is dict else []
    if type(content) is list:
        # What speaks of pages alone, at one end, is no row.
        ends = [
            row
            for row in (*content[:1], *content[1:][-1:])
            if type(row) is dict and row and all(kind_of(str(name)) for name in row)
        ]
        places = [("", row) for row in ends if len(ends) == 1]
    places += [(name, place) for _, top in places for name, place in top.items() if type(place) is dict]
    lists = [member for _, place in places for member in place.values() if type(member) is list] or [content] * (
        type(content) is list
    )
    rows = found is not None or any(type(row) is dict for some in lists for row in some[:1])
    shown = found if found is not None else len(lists[0]) if len(lists) == 1 else None
    known, all_of, how = True, None, None
    for holder, place in places:
        apart = (
            bool(holder) and not _HOLDER.search(holder) and not any(type(member) is list for member in place.values())
        )
        for name, said in place.items():
            kind, number = kind_of(str(name)), number_of(said)
            if kind is None or said is None or (apart and str(name).lower() in _LOOSE):
                continue
            if kind == "cursor" and rows and _is_cursor(said):
                return Extent(False, found, all_of, _go_on(str(name), said))
            if (kind in ("flag", "cut") and said in (True, "true", "True")) or (
                kind == "end" and said is False and (lists or name != "done")
            ):
                how = how or (f"The result is not whole (`{name}`). {NARROWER}" if kind == "cut" else ON)
            elif kind == "left" and type(said) is int and said > 0:
                quota = not _QUOTA.isdisjoint(str(one).lower() for one in place)
                how, known = (
                    how if quota else how or f"{said:,} more are not shown: ask for the next part.",
                    known and not quota,
                )
            elif kind == "total" and number is not None:
                all_of = int(number)
                how = how or (
                    f"This is {shown} of {all_of}: ask for the next part."
                    if shown is not None and shown < number
                    else None
                )
                known = known and shown is not None and shown >= number
            elif kind == "bare" and type(said) is not list and not (number is not None and number == shown):
                known = False
    return Extent(False if how else True if known else None, found, found if all_of is None else all_of, how)


def _is_cursor(said: Any) -> bool:
    return (
        said is not True
        and brings(said)
        and not (isinstance(said, str) and (" " in said or said.lower() in ("null", "none", "-1")))
    )


def _of_text(text: str) -> Extent:
    at = _MARK.search(text if len(text) <= 1200 else f"{text[:600]}\n{text[-600:]}")
    if at is None or (at[1] is not None and int(at[1].replace(",", "")) >= int(at[2].replace(",", ""))):
        return Extent()
    return Extent(False, how=NARROWER if at[1] is None else f"This is {at[1]} of {at[2]}: ask for the next part.")


def _go_on(name: str, value: Any) -> str:
    said = str(value) if isinstance(value, str | int) else ""
    what = "link" if said.startswith(("http", "/", "?", "..")) else "cursor"
    shown = f": `{said}`" if _SHOWABLE.fullmatch(said) else ""
    return f"There is more: call again with the {what} in `{name}`{shown}." if _SHOWABLE.fullmatch(name) else ON
