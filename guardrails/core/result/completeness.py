"""
The completeness of a result, by sure signs: a flag, a cursor, a count of what is left, a total above the rows shown, a mark of a cut.

Names are compared in small letters without separators, at the top and one level below. A bare total or page makes nothing known; what a
tool's own names mean is declared (`Tool(more="next_cursor", total="meta.count")`). No prose is read.
"""

import re

from typing import Any, Final, NamedTuple

from .content import at
from .failures import brings, number_of
from .names import About, Form, form_of


_HOLDER: Final = re.compile("(?i)pag|meta|link|cursor|next|info|hits|result|search|response|list")
"""Objects in which a word of many meanings speaks of the rows beside them."""
_QUOTA: Final = frozenset(("limit", "reset", "quota", "used"))
"""Beside `remaining`, a quota is what remains."""
_REFUSALS: Final = ("validation_error", "denied", "duplicate_call_blocked", "limit_reached")
_MARK: Final = re.compile(
    r"""(?ix)^.{0,20}output\ too\ large|[\[(<\u2026]\ ?[^=\n]{0,30}truncated[^=\n]{0,30}[\])>\u2026]
|^\W{0,8}(?:\.\.\.|\u2026)\ ?(?:and\ |\+)?\d[\d,]{0,12}\ (?:more|omitted)\b|^\W{0,8}(?:showing|displaying)(?:\ results?|\ rows?)?:?
\ (?:\d[\d,]{0,12}\ ?(?:-|\u2013|to)\ ?)?(\d[\d,]{0,12})\ (?:out\ )?of\ (\d[\d,]{0,12})\b"""
)
_TRUE: Final = (True, "true", "True")
_NO_CURSOR: Final = re.compile("(?i) |^(?:null|none|-1)$")
_SHOWABLE: Final = re.compile("[A-Za-z0-9_.:/?&=%+~@,|$-]{1,96}")
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


Signs = tuple[bool | None, int | None, str | None]
"""Whether a content is all, how many matches there are, and how to go on."""
Place = tuple[str, Any, Form]
"""What holds an object that may speak of a content, `""` if that speaks itself, the object, and its form."""


def extent_of(read: Any) -> Extent:
    """
    Returns the extent that the content of a `Reading` tells of itself, where its tool declares no places of a cursor and of the matches.
    """
    content, goes_on = read.content, read.news == 3
    kind = type(content)
    if kind is str:
        how = LATER if goes_on else cut_in(content)
        return WHOLE if how is None else Extent(False, how=how)
    if kind is not dict and kind is not list:
        return WHOLE
    form, source = read.form, read.source
    rows = content if form is None else content.get(form.rows)
    found = None if rows is None else len(rows)
    declared = number_of(at(content, source.total)) if source.total else None
    complete, matches, how = _told(content, form, found, declared)
    if source.more:
        if brings(cursor := at(content, source.more)):
            return Extent(False, found, matches, _go_on(source.more.rpartition(".")[2], cursor))
        complete = complete is not False
    return Extent(False, how=LATER) if complete and goes_on else Extent(complete, found, matches, how)


def _told(content: Any, form: Form | None, found: int | None, declared: float | None) -> Signs:
    """
    Returns what a *content* says of itself by its own signs.
    """
    lists: list[Any] = []
    texts: list[Any] = []
    # Most objects hold no others, and speak for themselves.
    plain = form is not None and not form.objects and not form.tells
    places: list[Place] = [("", content, form)] if plain else _places(content)  # type: ignore[list-item]
    signs: Any = declared
    for holder, owner, its in places:
        signs = signs or its.signs
        lists += [owner[key] for key, _ in its.lists]
        if its.remarks and not holder:
            texts += map(owner.__getitem__, its.remarks)
    lists = [content] if form is None else lists
    complete, matches, how = _by_signs(places, lists, found, declared) if signs else (True, found, None)
    for text in (*texts, *[some[-1] for some in lists if some]):
        # The shortest mark has seven characters.
        if how is None and type(text) is str and len(text) >= 7:
            how = cut_in(text)
    return complete if how is None else False, matches, how


def _by_signs(places: list[Place], lists: list[Any], found: int | None, declared: float | None) -> Signs:
    shown = found if found is not None else len(lists[0]) if len(lists) == 1 else None
    if declared is not None and shown is not None:
        return shown >= declared, int(declared), None if shown >= declared else _part(shown, int(declared))
    rows = found is not None or any(type(some[0]) is dict for some in lists if some)
    known: bool | None = True
    total, how = found if declared is None else int(declared), None
    for holder, place, form in places:
        for key, its in form.signs:
            said = place[key]
            if said is not None and not (holder and its.loose and not form.lists and not _HOLDER.search(holder)):
                sure, number, on = _sign(its, str(key), said, shown, lists, rows, place)
                known, total = known and sure, total if number is None else number
                how = (on or how) if its.more == "cursor" else (how or on)
    return known or None, total, how


def _places(content: Any) -> list[Place]:
    """
    Returns the objects that may speak of a *content*.
    """
    levels = 5
    while levels and len(content) == 1 and type(content) is dict:
        # An envelope of one member: `{"data": {"users": {"nodes": [...], "pageInfo": {...}}}}`.
        [inner] = content.values()
        holds = type(inner) is dict and (len(inner) == 1 or list in map(type, inner.values()))
        content, levels = (inner, levels - 1) if holds else (content, 0)
    if type(content) is list:
        # What speaks of pages alone, at one end, is no row.
        ends = content if len(content) < 2 else (content[0], content[-1])
        tops = [row for row in ends if type(row) is dict and row and len(form_of(row).signs) == len(row)]
    else:
        # What quotes a refusal of ours says nothing of itself.
        tops = [content] if content.get("status") not in _REFUSALS else []
    if len(tops) != 1:
        return []
    [top] = tops
    form = form_of(top)
    inner = _inner(top, form)
    # `{"meta": {"pagination": {...}}}` speaks through its only member.
    deeper = [one for _, place, its in inner if len(place) == 1 for one in _inner(place, its)]
    return [("", top, form), *inner, *deeper]


def _inner(owner: Any, form: Form) -> list[Place]:
    return [(str(key), owner[key], form_of(owner[key])) for key, _ in form.objects]


def _sign(its: About, name: str, said: Any, shown: int | None, lists: list[Any], rows: bool, place: Any) -> Signs:
    """
    Returns what one sign tells: whether all is known beside it, the matches in all, and how to go on. Beside it stand so many elements *shown*,
    *lists*, perhaps of *rows*, and its own object.
    """
    kind, yes = its.more, said in _TRUE
    if kind == "cursor":
        there = brings(said)
        none = said is True or (type(said) is str and _NO_CURSOR.search(said) is not None)
        if there and not none and (rows or (lists and not its.loose)):
            return True, None, _go_on(name, said)
        return its.loose or not there or bool(lists), None, None
    if kind == "left":
        left = said if type(said) is int and said > 0 else 0
        quota = left and not _QUOTA.isdisjoint(str(one).lower() for one in place)
        return not quota, None, f"{left:,} more are not shown: ask for the next part." if left and not quota else None
    if kind == "flag" or kind == "end":
        more = yes if kind == "flag" else said is False and (lists or name != "done")
        return True, None, ON if more else None
    if kind == "cut":
        return True, None, f"The result is not whole (`{name}`). {NARROWER}" if yes else None
    number = number_of(said)
    if number is None or number == shown:
        known = number is not None or kind == "total" or type(said) is list
        return known, None if number is None or kind == "bare" else int(number), None
    if kind == "bare":
        return False, int(number) if name == "total" else None, None
    whole = shown is not None and shown >= number
    return whole, int(number), None if whole or shown is None else _part(shown, int(number))


def cut_in(text: str) -> str | None:
    """
    Returns how to go on, if a mark in *text*, at one of its ends, says that it was cut.
    """
    ends = text if len(text) <= 1200 else f"{text[:600]}\n{text[-600:]}"
    small = ends.lower()
    # One of them is in every mark.
    if not ("truncated" in small or "showing" in small or "displaying" in small or "output too large" in small) and (
        " more" not in small and " omitted" not in small
    ):
        return None
    if (mark := next(filter(None, map(_MARK.search, ends.splitlines())), None)) is None:
        return None
    shown, total = [int(number.replace(",", "")) for number in mark.groups("0")]
    return None if shown >= total > 0 else _part(shown, total) if total else NARROWER


def _part(shown: int, total: int) -> str:
    return f"This is {shown} of {total}: ask for the next part."


def _go_on(name: str, value: Any) -> str:
    said = str(value) if isinstance(value, str | int) else ""
    what = "link" if said.startswith(("http", "/", "?", "..")) else "cursor"
    shown = f": `{said}`" if _SHOWABLE.fullmatch(said) else ""
    return f"There is more: call again with the {what} in `{name}`{shown}." if _SHOWABLE.fullmatch(name) else ON
