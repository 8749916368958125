"""
The completeness of a result, by sure signs: a flag, a cursor, a count of what is left, a total above the rows shown, a mark of a cut.

Names are compared in small letters without separators, at the top and one level below. A bare total or page makes nothing known; what a
tool's own names mean is declared (`Tool(more="next_cursor", total="meta.count")`). No prose is read.
"""

import re

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from guardrails.core.text.short_keys import cached_if_short

from .content import REMARKS, at, rows_of
from .failures import brings, number_of


_TABLE: Final = """
flag hasmore hasmoreresults hasmoreitems hasmorepages hasmorerecords hasnext hasnextpage more moreresults moreavailable moreresultsavailable moreitems morepages nextpageavailable
cut truncated istruncated outputtruncated resultstruncated incomplete incompleteresults isincomplete partial ispartial partialresults timedout exceededtransferlimit limitexceeded clipped
end islast islastpage lastpage last isfinalpage iscomplete complete done eof endoflist endofresults
cursor next nextpage nextcursor nexttoken nextpagetoken nextpagecursor nextlink odatanextlink nexturl nextpageurl nexturi nextmarker nextcontinuationtoken continuationtoken continuation continue resumptiontoken lastevaluatedkey nextrecordsurl nextoffset nextstart nextset nextbatch nextkeymarker nextpartitionkey scrollid searchafter
left remaining remainingitems remainingitemcount remainingresults omitted omittedcount notshown morecount
total totalmatches totalcount totalresults totalitems totalrecords totalrows totalhits totalelements numfound nbhits
bare total count found size totalsize matches available totalpages pages pagecount page pagenumber currentpage pageindex offset skip start startat startindex limit perpage pagesize
"""
"""
What a name tells by its value. flag: true, there is more; cut: true, it is not whole; end: false, there is more; cursor: a value, there is
more; left: a count of what is not shown; total: of all matches; bare: nothing is sure.
"""
_KINDS: Final = {name: kind for kind, *names in map(str.split, _TABLE.strip().split("\n")) for name in names}
_LOOSE: Final = "(?i)next|last|more|done|complete|continue|total|count|size|start|limit|found"
_HOLDER: Final = r"(?i)pag|meta|link|cursor|next|info|hits|result|search|response|list"
"""Objects in which a word of many meanings speaks of the rows beside them."""
_QUOTA: Final = frozenset(("limit", "reset", "quota", "used"))
"""Beside `remaining`, a quota is what remains."""
_REFUSALS: Final = ("validation_error", "denied", "duplicate_call_blocked", "limit_reached")
_MARK: Final = r"""(?ix)^.{0,20}output\ too\ large|[\[(<\u2026]\ ?[^=\n]{0,30}truncated[^=\n]{0,30}[\])>\u2026]
|^\W{0,8}(?:\.\.\.|\u2026)\ ?(?:and\ |\+)?\d[\d,]{0,12}\ (?:more|omitted)\b|^\W{0,8}(?:showing|displaying)(?:\ results?|\ rows?)?:?
\ (?:\d[\d,]{0,12}\ ?(?:-|\u2013|to)\ ?)?(\d[\d,]{0,12})\ (?:out\ )?of\ (\d[\d,]{0,12})\b"""
_MARKS: Final = (" more", " omitted", "output too large", "truncated", "showing", "displaying")
"""One of them is in every mark; the first two only behind dots."""
_NO_CURSOR: Final = r"(?i) |^(?:null|none|-1)$"
_SHOWABLE: Final = r"[A-Za-z0-9_.:/?&=%+~@,|$-]{1,96}"
"""No space and no quote: what a hint repeats of a tool's text can be no sentence."""
NARROWER: Final = "Ask for a smaller part: a range, a filter or a page."
LATER: Final = "It is not finished: ask again later."
ON: Final = "There is more: ask for the next part."


class Extent(NamedTuple):
    """
    The part of all matches that a result holds: whether it is all (None: nothing is known), the elements of its list, the matches in all,
    and how to go on if there is more.
    """

    complete: bool | None = True
    found: int | None = None
    total: int | None = None
    how: str | None = None


WHOLE: Final = Extent()


@cached_if_short(4096, 64)
def kind_of(name: str) -> str | None:
    """
    Returns what a member of this *name* tells of completeness, as a word of the table; None if it tells nothing.
    """
    return _KINDS.get(re.sub(r"[\W_]+", "", name).lower()) if len(name) <= 40 else None


def extent_of(content: Any, more: str = "", total: str = "", *, goes_on: bool = False) -> Extent:
    """
    Returns the extent that a *content*, whose work *goes_on* or not, tells of itself; *more* and *total* are the declared places of a cursor and of the number of matches.
    """
    if type(content) is str:
        return Extent(False, how=LATER) if goes_on else _of_text(content)
    if type(content) is not dict and type(content) is not list:
        return WHOLE
    rows = rows_of(content)
    found = None if rows is None else len(rows)
    declared, cursor = number_of(at(content, total)) if total else None, at(content, more) if more else None
    told = _signs(content, found, None if declared is None else int(declared))
    if cursor is not None and brings(cursor):
        return told._replace(complete=False, how=_go_on(more.rpartition(".")[2], cursor))
    if told.complete and goes_on:
        return Extent(False, how=LATER)
    return told._replace(complete=True) if more and told.complete is None else told


def _signs(content: Any, found: int | None, declared: int | None) -> Extent:
    levels = 5
    while levels and len(content) == 1 and type(content) is dict:
        # An envelope of one member: `{"data": {"users": {"nodes": [...], "pageInfo": {...}}}}`.
        [inner] = content.values()
        holds = type(inner) is dict and (len(inner) == 1 or list in map(type, inner.values()))
        content, levels = (inner, levels - 1) if holds else (content, 0)
    places = _places(content)
    lists = [content]
    if type(content) is dict:
        lists = [member for _, place in places for member in place.values() if type(member) is list]
    shown = found if found is not None else len(lists[0]) if len(lists) == 1 else None
    if declared is not None and shown is not None:
        return Extent(shown >= declared, found, declared, None if shown >= declared else _part(shown, declared))
    beside = Beside(shown, bool(lists), found is not None or any(type(some[0]) is dict for some in lists if some))
    known, total, how = True, declared, None
    texts = [some[-1] for some in lists if some]
    for holder, place in places:
        for key, said in place.items():
            name = str(key)
            kind = kind_of(name)
            if kind is None:
                texts += [said] if not holder and type(said) is str and name in REMARKS else ()
            elif said is not None and not (holder and re.fullmatch(_LOOSE, name) and _is_apart(holder, place)):
                sure, number, on = _sign(kind, name, said, place, beside)
                known, total = known and sure, total if number is None else number
                how = (on or how) if kind == "cursor" else (how or on)
    how = how or next((_of_text(one).how for one in texts if type(one) is str and not _of_text(one).complete), None)
    return Extent(False if how else known or None, found, found if total is None else total, how)


def _places(content: Any) -> list[tuple[str, Any]]:
    """
    Returns the objects that may speak of a *content*, and what holds each; `""`: it speaks itself.
    """
    if type(content) is dict:
        # What quotes a refusal of ours says nothing of itself.
        tops = [content] if content.get("status") not in _REFUSALS else []
    else:
        # What speaks of pages alone, at one end, is no row.
        ends = (*content[:1], *content[1:][-1:])
        tops = [row for row in ends if type(row) is dict and row and all(map(kind_of, map(str, row)))]
    places = [("", top) for top in tops] if len(tops) == 1 else []
    for top in tops if places else ():
        below = [(str(name), place) for name, place in top.items() if type(place) is dict]
        # `{"meta": {"pagination": {...}}}` speaks through its only member.
        only = [(str(name), one) for _, place in below if len(place) == 1 for name, one in place.items()]
        places += [*below, *((name, one) for name, one in only if type(one) is dict)]
    return places


def _is_apart(holder: str, place: Any) -> bool:
    return not re.search(_HOLDER, holder) and not any(type(member) is list for member in place.values())


class Beside(NamedTuple):
    """
    What stands beside a sign: so many elements, lists at all, and rows.
    """

    shown: int | None
    lists: bool
    rows: bool


_TRUE: Final = (True, "true", "True")
_HOW: Final[dict[str, Callable[[str, Any, bool], str | None]]] = {
    "flag": lambda name, said, lists: ON if said in _TRUE else None,
    "cut": lambda name, said, lists: f"The result is not whole (`{name}`). {NARROWER}" if said in _TRUE else None,
    "end": lambda name, said, lists: ON if said is False and (lists or name != "done") else None,
    "left": lambda name, said, lists: (
        f"{said:,} more are not shown: ask for the next part." if type(said) is int and said > 0 else None
    ),
}


def _sign(kind: str, name: str, said: Any, place: Any, beside: Beside) -> tuple[bool, int | None, str | None]:
    """
    Returns what one sign tells: whether all is known beside it, the matches in all, and how to go on.
    """
    if kind == "cursor":
        exact, there = re.fullmatch(_LOOSE, name) is None, brings(said)
        none = said is True or (type(said) is str and re.search(_NO_CURSOR, said) is not None)
        if there and not none and (beside.rows or (beside.lists and exact)):
            return True, None, _go_on(name, said)
        return not (there and exact and not beside.lists), None, None
    if kind in _HOW:
        how = _HOW[kind](name, said, beside.lists)
        quota = how is not None and kind == "left" and not _QUOTA.isdisjoint(str(one).lower() for one in place)
        return not quota, None, None if quota else how
    number, shown = number_of(said), beside.shown
    if number is None or number == shown:
        known = number is not None or kind == "total" or type(said) is list
        return known, None if number is None or kind == "bare" else int(number), None
    if kind == "bare":
        return False, int(number) if name == "total" else None, None
    whole = shown is not None and shown >= number
    return whole, int(number), None if whole or shown is None else _part(shown, int(number))


def _of_text(text: str) -> Extent:
    ends = text if len(text) <= 1200 else f"{text[:600]}\n{text[-600:]}"
    small = ends.lower()
    dots = "..." in small or "\u2026" in small
    if not any(word in small for word in (_MARKS if dots else _MARKS[2:])):
        return WHOLE
    mark = next((found for line in ends.splitlines() if (found := re.search(_MARK, line))), None)
    shown, total = [int(number.replace(",", "")) for number in mark.groups("0")] if mark else (0, 0)
    whole = mark is None or shown >= total > 0
    return WHOLE if whole else Extent(False, how=_part(shown, total) if total else NARROWER)


def _part(shown: int, total: int) -> str:
    return f"This is {shown} of {total}: ask for the next part."


def _go_on(name: str, value: Any) -> str:
    said = str(value) if isinstance(value, str | int) else ""
    what = "link" if said.startswith(("http", "/", "?", "..")) else "cursor"
    shown = f": `{said}`" if re.fullmatch(_SHOWABLE, said) else ""
    return f"There is more: call again with the {what} in `{name}`{shown}." if re.fullmatch(_SHOWABLE, name) else ON
