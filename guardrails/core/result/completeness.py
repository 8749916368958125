"""
The completeness of a result, by sure signs: a flag, a cursor, a count of what is left, a total above the rows shown, a mark of a cut.

Names are compared in small letters without separators, at the top and one level below. A bare total or page makes nothing known; what a
tool's own names mean is declared (`Tool(more="next_cursor", total="meta.count")`). No prose is read.
"""

import re

from collections.abc import Sequence
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
Told = tuple[bool, int | None, str | None]
"""What one sign tells: whether all is known beside it, the matches in all, and how to go on."""


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
    found = _rows_in(content)
    declared, cursor = number_of(at(content, total)) if total else None, at(content, more) if more else None
    told = _signs(content, found, None if declared is None else int(declared))
    if brings(cursor):
        return told._replace(complete=False, how=_go_on(more.rpartition(".")[2], cursor))
    if told.complete and goes_on:
        return Extent(False, how=LATER)
    return told._replace(complete=True) if more and told.complete is None else told


def _rows_in(content: Any) -> int | None:
    if type(content) is list:
        return len(content)
    rows = next((content[name] for name in ROWS if name in content and type(content[name]) is list), None)
    return None if rows is None else len(rows)


def _signs(content: Any, found: int | None, declared: int | None) -> Extent:
    for _ in range(5):
        # An envelope of one member: `{"data": {"users": {"nodes": [...], "pageInfo": {...}}}}`.
        inner = next(iter(content.values())) if type(content) is dict and len(content) == 1 else None
        if type(inner) is not dict or not (len(inner) == 1 or list in map(type, inner.values())):
            break
        content = inner
    places = _places(content)
    if type(content) is list:
        lists = [content]
    else:
        lists = [member for _, place in places for member in place.values() if type(member) is list]
    shown = found if found is not None else len(lists[0]) if len(lists) == 1 else None
    if declared is not None and shown is not None:
        return Extent(shown >= declared, found, declared, None if shown >= declared else _part(shown, declared))
    rows = found is not None or any(type(some[0]) is dict for some in lists if some)
    known, all_of, how = True, declared, None
    for holder, place in places:
        for key, said in place.items():
            name = str(key)
            kind = kind_of(name)
            if kind is None or said is None or (holder and re.fullmatch(_LOOSE, name) and _is_apart(holder, place)):
                continue
            if kind == "cursor":
                sure, total, on = _cursor(name, said, rows=rows, lists=bool(lists))
                how = on or how
            else:
                sure, total, on = _TOLD[kind](name, said, place, shown, lists)
                how = how or on
            known, all_of = known and sure, all_of if total is None else total
    how = how or _mark_in(places, lists)
    return Extent(False if how else known or None, found, found if all_of is None else all_of, how)


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
        tops = tops if len(tops) == 1 else []
    below = [(str(name), place) for top in tops for name, place in top.items() if type(place) is dict]
    # `{"meta": {"pagination": {...}}}` speaks through its only member.
    only = [(str(name), one) for _, top in below if len(top) == 1 for name, one in top.items() if type(one) is dict]
    return [*(("", top) for top in tops), *below, *only]


def _is_apart(holder: str, place: Any) -> bool:
    return not re.search(_HOLDER, holder) and not any(type(member) is list for member in place.values())


def _cursor(name: str, said: Any, *, rows: bool, lists: bool) -> Told:
    exact, there = re.fullmatch(_LOOSE, name) is None, brings(said)
    none = said is True or (type(said) is str and re.search(_NO_CURSOR, said) is not None)
    if there and not none and (rows or (lists and exact)):
        return True, None, _go_on(name, said)
    return not (there and exact and not lists), None, None


def _flag(name: str, said: Any, place: Any, shown: int | None, lists: list[Any]) -> Told:
    return True, None, ON if said in (True, "true", "True") else None


def _cut(name: str, said: Any, place: Any, shown: int | None, lists: list[Any]) -> Told:
    return True, None, f"The result is not whole (`{name}`). {NARROWER}" if said in (True, "true", "True") else None


def _end(name: str, said: Any, place: Any, shown: int | None, lists: list[Any]) -> Told:
    return True, None, ON if said is False and (lists or name != "done") else None


def _left(name: str, said: Any, place: Any, shown: int | None, lists: list[Any]) -> Told:
    if type(said) is not int or said <= 0:
        return True, None, None
    quota = not _QUOTA.isdisjoint(str(one).lower() for one in place)
    return not quota, None, None if quota else f"{said:,} more are not shown: ask for the next part."


def _total(name: str, said: Any, place: Any, shown: int | None, lists: list[Any]) -> Told:
    number = number_of(said)
    if number is None:
        return True, None, None
    whole = shown is not None and shown >= number
    return whole, int(number), None if whole or shown is None else _part(shown, int(number))


def _bare(name: str, said: Any, place: Any, shown: int | None, lists: list[Any]) -> Told:
    number = number_of(said)
    if type(said) is list or (number is not None and number == shown):
        return True, None, None
    return False, int(number) if number is not None and name == "total" else None, None


_TOLD: Final = {"flag": _flag, "cut": _cut, "end": _end, "left": _left, "total": _total, "bare": _bare}


def _mark_in(places: Sequence[tuple[str, Any]], lists: Sequence[list[Any]]) -> str | None:
    """
    Returns how to go on, by the mark of a cut in a remark, or at the end of a list.
    """
    texts = [top[name] for holder, top in places if not holder for name in REMARKS if name in top]
    texts += [some[-1] for some in lists if some]
    return next((mark.how for one in texts if type(one) is str and not (mark := _of_text(one)).complete), None)


def _of_text(text: str) -> Extent:
    ends = text if len(text) <= 1200 else f"{text[:600]}\n{text[-600:]}"
    small = ends.lower()
    if not any(word in small for word in _MARKS):
        return WHOLE
    if not ("..." in small or "\u2026" in small) and not any(word in small for word in _MARKS[2:]):
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
