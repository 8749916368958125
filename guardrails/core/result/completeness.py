"""
The completeness of a result, by sure signs: a flag, a cursor, a count of what is left, a total above the rows shown, a mark of a cut.

Names are compared in small letters without separators, at the top and one level below. A bare total or page makes nothing known; what a
tool's own names mean is declared (`Tool(more="next_cursor", total="meta.count")`). No prose is read.
"""

from typing import Any, Final, NamedTuple

from guardrails.core.values.caches import pattern

from .content import at, brings, number_of
from .names import About, Form, form_of


_HOLDER: Final = pattern("(?i)pag|meta|link|cursor|next|info|hits|result|search|response|list")
"""Objects in which a word of many meanings speaks of the rows beside them."""
_MARK: Final = r"""(?imx)^.{0,20}output\ too\ large|[\[(<\u2026]\ ?[^=\n]{0,30}truncated[^=\n]{0,30}[\])>\u2026]
|^\W{0,8}(?:\.\.\.|\u2026)\ ?(?:and\ |\+)?\d[\d,]{0,12}\ (?:more|omitted)\b|^\W{0,8}(?:showing|displaying)(?:\ results?|\ rows?)?:?
\ (?:\d[\d,]{0,12}\ ?(?:-|\u2013|to)\ ?)?(\d[\d,]{0,12})\ (?:out\ )?of\ (\d[\d,]{0,12})\b"""
_MARKED: Final = ("truncated", "showing", "displaying", "too large", " more", " omitted")
"""One of them is in every mark."""
_NO_CURSOR: Final = pattern("(?i) |^(?:null|none|-1)$")
_SHOWABLE: Final = pattern("[A-Za-z0-9_.:/?&=%+~@,|$-]{1,96}")
"""No space and no quote: what a hint repeats of a tool's text can be no sentence."""
NARROWER: Final = "Ask for a smaller part: a range, a filter or a page."
_REFUSALS: Final = ("validation_error", "denied", "duplicate_call_blocked", "limit_reached")
LATER: Final = "It is not finished: ask again later."
ON: Final = "There is more: ask for the next part."


class Extent(NamedTuple):
    """
    The part of all matches that a result holds: whether it is all (None: nothing is known), the elements of its list, the matches in all,
    and how to go on if there is more.
    """

    complete: bool | None = True
    size: int | None = None
    total: int | None = None
    how: str | None = None


Sign = tuple[bool | None, int | None, str | None]


def extent_of(read: Any) -> Extent:
    """
    Returns the extent that the content of a `Reading` tells of itself, where its tool declares no places of a cursor and of the matches.
    """
    content, form, source = read.content, read.form, read.source
    kind = type(content)
    if kind is str:
        how = LATER if read.news == 3 else cut_in(content)
        return Extent(how is None, how=how)
    if kind is not dict and kind is not list:
        return Extent()
    rows = content if form is None else content.get(form.rows)
    size = None if rows is None else len(rows)
    complete, total, how = _claims(content, form, size, source.total)
    if source.more:
        if brings(cursor := at(content, source.more)):
            return Extent(False, size, total, _go_on(source.more.rpartition(".")[2], cursor))
        complete = complete is not False
    return Extent(False, how=LATER) if complete and read.news == 3 else Extent(complete, size, total, how)


def _claims(content: Any, form: Form | None, size: int | None, declared: str) -> Sign:
    """
    Returns whether a *content* is all, how many matches there are, and how to go on; *declared* is the place of the matches.
    """
    # Most objects hold no others, and speak for themselves.
    places = [("", content, form)] if form is not None and not form.objects else _places(content)
    lists = [content] if form is None else [owner[key] for _, owner, its in places for key, _ in its.lists]
    shown = size if size is not None else len(lists[0]) if len(lists) == 1 else None
    number = number_of(at(content, declared)) if declared else None
    known, total, how = (True, size, None) if number is None else _counted(number, shown)
    rows = size is not None or any(some and type(some[0]) is dict for some in lists)
    for holder, owner, its in places if number is None else ():
        # What quotes a refusal of ours says nothing of itself.
        for key, says in its.signs if its.signs and owner.get("status") not in _REFUSALS else ():
            claim = owner[key]
            if claim is not None and (not holder or not says.loose or its.lists or _HOLDER.search(holder)):
                sure, count, on = _sign(says, str(key), claim, shown, rows if says.loose else lists != [], owner)
                known, total = known and sure, total if count is None else count
                how = (on or how) if says.more == "cursor" else (how or on)
    texts = [] if form is None else [content[name] for name in form.remarks]
    for text in (*texts, *(some[-1] for some in lists if some and type(some[-1]) is str)):
        how = how or cut_in(text)
    return False if how else known or None, total, how


def _places(content: Any) -> list[tuple[str, Any, Form]]:
    """
    Returns the objects that may speak of a *content*, each with the name of what holds it, `""` for the first, and its form.
    """
    places = [("", content, form_of(content))] if type(content) is dict else []
    if not places:
        # At one end of a list, what has nothing but signs is no row.
        ends = [row for row in (*content[:1], *content[1:][-1:]) if type(row) is dict and row]
        places = [("", row, form) for row in ends if len((form := form_of(row)).signs) == len(row)]
        places = places if len(places) == 1 else []
    for holder, owner, its in places:
        for key, _ in its.objects if (not holder or len(owner) == 1) and len(places) < 64 else ():
            inner = owner[key]
            form = form_of(inner)
            # An envelope of one member: `{"data": {"users": {"nodes": [...], "pageInfo": {...}}}}`.
            through = len(owner) == 1 and (form.lists or len(inner) == 1)
            places.append((holder if through else str(key), inner, form))
    return places


def _sign(its: About, name: str, claim: Any, shown: int | None, holds: bool, place: Any) -> Sign:
    """
    Returns what one sign tells: whether all is known beside it, the matches in all, and how to go on. So many elements are *shown* beside
    it; *holds*: there is something of which a cursor can be.
    """
    kind, number = its.more, number_of(claim)
    if kind == "cursor":
        there = brings(claim) and claim is not True and not (type(claim) is str and _NO_CURSOR.search(claim))
        return its.loose or holds or not there, None, _go_on(name, claim) if there and holds else None
    if kind in ("flag", "end", "cut"):
        more = claim is False if kind == "end" else claim in (True, "true", "True")
        how = f"The result is not whole (`{name}`). {NARROWER}" if kind == "cut" else ON
        return True, None, how if more else None
    if number is None or (kind == "left" and (type(claim) is not int or claim <= 0)):
        return kind != "bare" or type(claim) is list, None, None
    if kind == "left":
        # Beside words of a limit, a quota is what remains.
        quota = not {"limit", "reset", "quota", "used"}.isdisjoint(str(one).lower() for one in place)
        return not quota, None, None if quota else f"{claim:,} more are not shown: ask for the next part."
    if kind == "bare":
        # A full page has as many rows as its limit.
        total = name == "total"
        return total and number == shown, int(number) if total and number != shown else None, None
    return _counted(number, shown)


def _counted(total: float, shown: int | None) -> Sign:
    whole = shown is not None and shown >= total
    return whole, int(total), None if whole or shown is None else _part(shown, int(total))


def cut_in(text: str) -> str | None:
    """
    Returns how to go on, if a mark in *text*, at one of its ends, says that it was cut.
    """
    ends = text if len(text) <= 600 else f"{text[:300]}\n{text[-300:]}"
    mark = pattern(_MARK).search(ends) if any(map(ends.lower().__contains__, _MARKED)) else None
    if mark is None:
        return None
    shown, total = [int(number.replace(",", "")) for number in mark.groups("0")]
    return None if shown >= total > 0 else _part(shown, total) if total else NARROWER


def _part(shown: int, total: int) -> str:
    return f"This is {shown} of {total}: ask for the next part."


def _go_on(name: str, value: Any) -> str:
    text = str(value) if isinstance(value, str | int) else ""
    what = "link" if text.startswith(("http", "/", "?", "..")) else "cursor"
    shown = f": `{text}`" if _SHOWABLE.fullmatch(text) else ""
    return f"There is more: call again with the {what} in `{name}`{shown}." if _SHOWABLE.fullmatch(name) else ON
