"""
Make a result self-contained: what was asked, how much there is, whether that is all.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ..envelope import Envelope
from ..jsonable import dumps
from ..state import SessionState
from ..types import Outcome, ToolCall
from .base import Codes, Facts, Guard, guard


MAX_STRING: Final = 200
"""Characters of one string in a query summary."""
MAX_SUMMARY: Final = 1_024
"""Bytes of a whole query summary."""
LISTS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
TOTALS: Final = ("total_matches", "total_count", "total", "totalCount", "total_results")
CURSORS: Final = ("next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next_page", "cursor_next")
MORE: Final = ("has_more", "hasMore", "has_next", "hasNextPage", "truncated", "is_truncated")
_PLACES: Final = {name: place for place, name in enumerate((*LISTS, *TOTALS, *CURSORS, *MORE))}
_FIRST_TOTAL: Final = len(LISTS)
_FIRST_CURSOR: Final = _FIRST_TOTAL + len(TOTALS)
_FIRST_MORE: Final = _FIRST_CURSOR + len(CURSORS)
_END: Final = len(_PLACES)


@guard
class Summary(Guard):
    """
    Echo the query, count the matches, and say whether the result is complete.

    A page that names a next cursor, says that there is more, or holds fewer elements than its own total is not
    complete, and the hint says how to go on.
    """

    codes: ClassVar[Codes] = {}

    query: bool = True
    """Echo the arguments, strings cut at 200 characters and the whole at 1 KB."""
    total: bool = True
    """Count matches."""

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts
    ) -> Envelope:
        if self.query and envelope.query_summary is None:
            asked = call.arguments if call.asked is None else call.asked
            if asked:
                short = call.canonical is not None and len(call.canonical) <= MAX_STRING
                envelope.query_summary = asked if short else summarise(asked)
        if envelope.status != "success":
            return envelope
        found, total, more = survey(envelope.value)
        whole = outcome.complete
        if total is not None and whole and self.total and envelope.total_matches is None:
            envelope.total_matches = total
        if envelope.is_complete is None:
            rendered = envelope.rendered
            if rendered is not None and not rendered.complete:
                whole = False
            envelope.is_complete = whole and more is None
            if more is not None:
                envelope.hint(more)
            elif found is not None and whole and envelope.next_action_hint is None:
                envelope.next_action_hint = _next_step(found)
        return envelope


def _next_step(found: int) -> str:
    if found == 0:
        return "No matches. The same call will find none again: change the arguments, or say that there are none."
    what = "Found 1 match. Use it" if found == 1 else f"Found {found} matches. Use them"
    return f"{what}. Do not search again unless parameters change."


def survey(value: Any) -> tuple[int | None, int | None, str | None]:
    """
    (elements here, matches in all, how to get the rest) of a result; None where it does not say.
    """
    if isinstance(value, (list, tuple)):
        return len(value), len(value), None
    if not isinstance(value, dict):
        return None, None, None
    # The view's way walks through the smaller of the two, which a large result is not.
    telling = value.keys() & _PLACES.keys()
    if not telling:
        return None, None, None
    found = total = more = None
    # Of several of one kind the first counts, in the order above.
    list_at = total_at = more_at = _END
    for name in telling:
        said, at = value[name], _PLACES[name]
        if at < _FIRST_TOTAL:
            if at < list_at and isinstance(said, (list, tuple)):
                found, list_at = len(said), at
        elif at < _FIRST_CURSOR:
            if at < total_at and type(said) is int:
                total, total_at = said, at
        elif at < more_at and (said if at < _FIRST_MORE else said is True):
            more, more_at = name, at
    if more is not None:
        how = f"call again with the cursor in `{more}`" if more_at < _FIRST_MORE else "ask for the next part"
        return found, found if total is None else total, f"There is more: {how}."
    if found is not None and total is not None and found < total:
        return found, total, f"This is {found} of {total}: ask for the next part."
    return found, found if total is None else total, None


def summarise(arguments: Any) -> Any:
    """
    The arguments of a call, short enough to be read again with every result.
    """
    if not isinstance(arguments, Mapping):
        return _cut(arguments)
    summary: dict[str, Any] = {}
    left = MAX_SUMMARY - 2
    for key, value in arguments.items():
        name, short = str(key)[:MAX_STRING], _cut(value)
        left -= _size(name) + _size(short) + 2
        if left < len('"...":"cut",'):
            summary["..."] = "cut"
            break
        summary[name] = short
    return summary


def _cut(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    text = value if isinstance(value, str) else repr_of(value)
    shown = text[:MAX_STRING]
    while _size(shown) > MAX_SUMMARY - 3:
        shown = shown[: len(shown) // 2]
    return text if len(shown) == len(text) else f"{shown}..."


def _size(value: Any) -> int:
    """
    Bytes of *value* as JSON.
    """
    written = dumps(value)
    return 6 * len(str(value)) if written is None else len(written)


def repr_of(value: Any) -> str:
    """
    A short text of an argument that is no scalar: its JSON where it has one.
    """
    from ..truncation import render

    return render(value, 512).payload.decode()
