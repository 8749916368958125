"""
The completeness of a result, by sure signs: a flag, a cursor, a count of what is left, a total above the rows shown, a mark of a cut.

Names are compared in small letters without separators, at the top and one level below. A bare total or page makes nothing known; what a
tool's own names mean is declared (`Tool(more="next_cursor", total="meta.count")`). No prose is read.
"""

import re

from typing import Any, Final, NamedTuple

from guardrails.core.text.short_keys import cached_if_short

from .content import REMARKS, ROWS, at
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
_MARK: Final = r"""(?imx)^.{0,20}output\ too\ large|[\[(<\u2026]\ ?[^=\n]{0,30}truncated[^=\n]{0,30}[\])>\u2026]
|^\W{0,8}(?:\.\.\.|\u2026)\ ?(?:and\ |\+)?\d[\d,]{0,12}\ (?:more|omitted)\b|^\W{0,8}(?:showing|displaying)(?:\ results?|\ rows?)?:?
\ (?:\d[\d,]{0,12}\ ?(?:-|\u2013|to)\ ?)?(\d[\d,]{0,12})\ (?:out\ )?of\ (\d[\d,]{0,12})\b"""
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
        return Extent()
    named = [content[name] for name in ROWS if type(content.get(name)) is list] if type(content) is dict else [content]
    found = len(named[0]) if named else None
    declared, cursor = number_of(at(content, total)) if total else None, at(content, more) if more else None
    told = _signs(content, found, None if declared is None else int(declared))
    if brings(cursor):
        return told._replace(complete=False, how=_go_on(more.rpartition(".")[2], cursor))
    if told.complete and goes_on:
        return Extent(False, how=LATER)
    return told._replace(complete=True) if more and told.complete is None else told


def _signs(content: Any, found: int | None, declared: int | None) -> Extent:
    for _ in range(5):
        # An envelope of one member: `{"data": {"users": {"nodes": [...], "pageInfo": {...}}}}`.
        inner = next(iter(content.values())) if type(content) is dict and len(content) == 1 else None
        if type(inner) is not dict or not (len(inner) == 1 or list in map(type, inner.values())):
            break
        content = inner
    # What quotes a refusal of ours says nothing of itself.
    places = [("", content)] if type(content) is dict and content.get("status") not in _REFUSALS else []
    if type(content) is list:
        # What speaks of pages alone, at one end, is no row.
        both = (*content[:1], *content[1:][-1:])
        ends = [row for row in both if type(row) is dict and row and all(map(kind_of, map(str, row)))]
        places = [("", row) for row in ends if len(ends) == 1]
    places += [(str(name), place) for _, top in places for name, place in top.items() if type(place) is dict]
    # `{"meta": {"pagination": {...}}}` speaks through its only member.
    places += [
        (str(name), one) for _, top in places[1:] if len(top) == 1 for name, one in top.items() if type(one) is dict
    ]
    lists = [member for _, place in places for member in place.values() if type(member) is list]
    lists = [content] if type(content) is list else lists
    shown = found if found is not None else len(lists[0]) if len(lists) == 1 else None
    rows = found is not None or any(type(row) is dict for some in lists for row in some[:1])
    if declared is not None and shown is not None:
        return Extent(shown >= declared, found, declared, None if shown >= declared else _part(shown, declared))
    known, all_of, how = True, declared, None
    for holder, place in places:
        apart = holder and not re.search(_HOLDER, holder) and not any(type(member) is list for member in place.values())
        for key, said in place.items():
            name = str(key)
            kind = kind_of(name)
            if kind is None or said is None or (apart and re.fullmatch(_LOOSE, name)):
                continue
            number = number_of(said)
            told = kind == "cursor" and (rows or (lists and not re.fullmatch(_LOOSE, name)))
            told = told and said is not True and brings(said)
            if told and not (type(said) is str and re.search(_NO_CURSOR, said)):
                how = _go_on(name, said)
            elif kind == "cursor" and not lists and not re.fullmatch(_LOOSE, name) and brings(said):
                known = False
            if kind in ("flag", "cut") and said in (True, "true", "True"):
                how = how or (f"The result is not whole (`{name}`). {NARROWER}" if kind == "cut" else ON)
            elif kind == "end" and said is False and (lists or name != "done"):
                how = how or ON
            elif kind == "left" and type(said) is int and said > 0:
                quota = not _QUOTA.isdisjoint(str(one).lower() for one in place)
                how = how if quota else how or f"{said:,} more are not shown: ask for the next part."
                known = known and not quota
            elif kind == "total" and number is not None:
                all_of, known = int(number), known and shown is not None and shown >= number
                how = how or (_part(shown, all_of) if shown is not None and shown < number else None)
            elif kind == "bare" and type(said) is not list and (number is None or number != shown):
                known, all_of = False, int(number) if number is not None and name == "total" else all_of
    tops = [place for holder, place in places if not holder]
    texts = [top.get(name) for top in tops for name in REMARKS] + [some[-1] for some in lists if some]
    how = how or next(
        (marked.how for one in texts if type(one) is str and not (marked := _of_text(one)).complete), None
    )
    return Extent(False if how else known or None, found, found if all_of is None else all_of, how)


def _of_text(text: str) -> Extent:
    mark = re.search(_MARK, text if len(text) <= 1200 else f"{text[:600]}\n{text[-600:]}")
    shown, total = [int(number.replace(",", "")) for number in mark.groups("0")] if mark else (0, 0)
    whole = mark is None or shown >= total > 0
    return Extent() if whole else Extent(False, how=_part(shown, total) if total else NARROWER)


def _part(shown: int, total: int) -> str:
    return f"This is {shown} of {total}: ask for the next part."


def _go_on(name: str, value: Any) -> str:
    said = str(value) if isinstance(value, str | int) else ""
    what = "link" if said.startswith(("http", "/", "?", "..")) else "cursor"
    shown = f": `{said}`" if re.fullmatch(_SHOWABLE, said) else ""
    return f"There is more: call again with the {what} in `{name}`{shown}." if re.fullmatch(_SHOWABLE, name) else ON
