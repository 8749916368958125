"""
The facts that each member of a listing tells of its pages.
"""

import re

from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .listing import ADDRESS, NARROW, ON, Fact, Listing, go_on
from .names import BROKEN_WORDS, Kind, sayable, usual_kind
from .scalars import flag, is_empty, number


_WORD: Final = pattern(r"[A-Za-z]+(?:[ _.\-][A-Za-z0-9]{1,12}){0,5}(?:\(\))?")
"""A step, a function or a chapter rather than a place in a listing."""
_CODE: Final = pattern(r"[A-Z]{2}|(?m:^[^A-Z\n]*[A-Z][^a-z\n]*[a-z][^A-Z\n]*[A-Z])|[0-9][^0-9\n]*[0-9]")
_SPACE: Final = pattern(r"\s")
_RELATION: Final = pattern(r"""\brel=["']?([a-z]{1,12})""", re.IGNORECASE)
_NO_RESULTS: Final = pattern(r"""\bresults=["']?false\b""", re.IGNORECASE)
_TARGET: Final = pattern(r"<([^<>\s]{1,2000})>[^<>]{0,200}\brel=[\"']?next\b", re.IGNORECASE)
_MAX_STATUS: Final = 24
_TARGETS: Final = frozenset(
    {"href", "url", "link", "uri", "after", "cursor", "token", "page", "offset", "start", "startindex"}
)


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
        fact.sure = fact.found
        fact.paged = fact.found or paged
        fact.found = fact.found or found
        reader = _READERS.get(fact.kind)
        if reader is not None:
            reader(listing, fact)


def _last_name(fact: Fact) -> str:
    return fact.name.rpartition(".")[2]


def _is_usual(fact: Fact) -> bool:
    """
    Returns whether it is known by one of the usual names; of the others only a boolean is sure.
    """
    return usual_kind(_last_name(fact)) is fact.kind


def _by(fact: Fact, said: str = "true") -> str:
    name = sayable(fact.name)
    return f" (`{name}` is {said})" if name else ""


def _cursor(listing: Listing, fact: Fact) -> None:
    value = fact.value
    if is_empty(value) or (type(value) is int and value < 1):
        listing.ends = True
    elif isinstance(value, str):
        if fact.found or not _SPACE.search(value):
            listing.more.append(go_on(fact.name, value))
    elif type(value) is int or isinstance(value, (dict, list, tuple)):
        listing.more.append(go_on(fact.name, value))
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
            listing.more.append(go_on(fact.name, value))
        elif ADDRESS.match(value) or (fact.found and _CODE.search(value)):
            listing.doubt = True
    elif type(value) is int and fact.sure:
        listing.more.append(go_on(fact.name, value))
    elif value is True and fact.found:
        listing.more.append((3, f"There is more: {ON}."))
    elif fact.found:
        listing.doubt = True


def _target(value: Any) -> Any:
    """
    Returns where a `next` that is an object leads; itself if that cannot be seen.
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
        # A server that always names both says whether a page is there.
        text = ",".join(one for one in text.split(",") if not _NO_RESULTS.search(one)) or 'rel="first"'
        relations = {one.lower() for one in _RELATION.findall(text)}
        if "next" in relations:
            at = _TARGET.search(text)
            listing.more.append(go_on(fact.name, at[1] if at else None))
        elif relations & {"prev", "previous", "first"}:
            listing.ends = True
    elif isinstance(value, (list, tuple)):
        for one in value[:32]:
            if isinstance(one, dict) and "next" in (one.get("rel"), one.get("relation")):
                listing.more.append(go_on(fact.name, _target(one)))


def _more(listing: Listing, fact: Fact) -> None:
    value, said = fact.value, flag(fact.value)
    name = _last_name(fact)
    bare = name.lower() == "more" or (not _is_usual(fact) and name.lower().lstrip("_").startswith("more"))
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
    if not _is_usual(fact) and not isinstance(value, bool):
        return
    if said or (type(value) is int and value > 1) or fact.name.endswith("_truncated_json"):
        listing.more.append((4, f"The result was cut{_by(fact)}. {NARROW}"))
    elif said is False:
        listing.ends = True
    elif not is_empty(value):
        listing.doubt = True


def _broken(listing: Listing, fact: Fact) -> None:
    if isinstance(fact.value, (list, tuple)) or _last_name(fact).lower() == "unreachable":
        # Parts that could not be asked.
        listing.doubt = listing.doubt or bool(fact.found and fact.value and isinstance(fact.value, (list, tuple)))
    elif flag(fact.value) or ("shard" in fact.name and number(fact.value)):
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


_OF_A_JOB: Final = ("job_complete", "jobcomplete")


def _done(listing: Listing, fact: Fact) -> None:
    """
    `complete: false` beside matches is said of them; `done: false` may be said of a job that lists something.
    """
    said = fact.value if isinstance(fact.value, bool) else flag(fact.value) if fact.paged else None
    if said:
        listing.whole = listing.whole or (fact.paged and not fact.name.lower().endswith(_OF_A_JOB))
    elif said is False and fact.found:
        if fact.paged and _last_name(fact).lower() == "complete" and not (listing.thing or listing.money):
            _whole(listing, fact)
        else:
            listing.doubt = True


def _status(listing: Listing, fact: Fact) -> None:
    said = fact.value.strip().lower() if isinstance(fact.value, str) and len(fact.value) < _MAX_STATUS else ""
    if fact.paged and not (listing.thing or listing.money) and said.replace(" ", "_") in BROKEN_WORDS:
        listing.broken = f"The result is not whole{_by(fact, said)}. {NARROW}"


def _last(listing: Listing, fact: Fact) -> None:
    is_named = _last_name(fact).lower() != "last"
    if isinstance(fact.value, bool) and (fact.paged or (is_named and fact.found)):
        _whole(listing, fact)


def _offset(listing: Listing, fact: Fact) -> None:
    """
    An offset that is no number is where to go on.
    """
    value = fact.value
    if (
        fact.found
        and isinstance(value, str)
        and not is_empty(value)
        and not value.isdecimal()
        and not _SPACE.search(value)
    ):
        listing.more.append(go_on(fact.name, value))


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
    Kind.STATUS: _status,
    Kind.LAST: _last,
    Kind.OFFSET: _offset,
}
