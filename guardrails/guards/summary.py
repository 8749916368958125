"""
Make a result self-contained: what was asked, how much there is, whether that is all.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..envelope import Envelope
from ..jsonable import dumps
from ..state import SessionState
from ..types import Outcome, ToolCall
from .base import Facts, Guard, guard


MAX_STRING: Final = 200
"""Characters of one string in a query summary."""
MAX_SUMMARY: Final = 1_024
"""Bytes of a whole query summary."""
LISTS: Final = ("results", "items", "data", "rows", "matches", "hits", "entries", "records")
TOTALS: Final = ("total_matches", "total_count", "total", "totalCount", "total_results")
CURSORS: Final = ("next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next_page", "cursor_next")
MORE: Final = ("has_more", "hasMore", "has_next", "hasNextPage", "truncated", "is_truncated")
_LISTS: Final = frozenset(LISTS)
_TOTALS: Final = frozenset(TOTALS)
_CURSORS: Final = frozenset(CURSORS)
_PLACES: Final = {name: place for place, name in enumerate((*LISTS, *TOTALS, *CURSORS, *MORE))}


@guard
class Summary(Guard):
    """
    Echo the query, count the matches, and say whether the result is complete.

    A page that names a next cursor, says that there is more, or holds fewer elements than its own total is not
    complete, and the hint says how to go on.
    """

    query: bool = True
    """Echo the arguments, strings cut at 200 characters and the whole at 1 KB."""
    total: bool = True
    """Count matches."""

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts
    ) -> Envelope:
        if self.query and envelope.query_summary is None and call.arguments:
            envelope.query_summary = summarise(call)
        if not envelope.ok:
            return envelope
        value = envelope.value
        found, total, more = survey(value)
        if self.total and envelope.total_matches is None and total is not None and outcome.complete:
            envelope.total_matches = total
        if envelope.is_complete is None:
            cut = not outcome.complete or (envelope.rendered is not None and not envelope.rendered.complete)
            envelope.is_complete = more is None and not cut
            if more is not None:
                envelope.hint(more)
            elif found is not None and not cut and envelope.next_action_hint is None:
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
    found = total = more = None
    for name in telling if len(telling) < 2 else sorted(telling, key=_PLACES.__getitem__):
        said = value[name]
        if name in _LISTS:
            if found is None and isinstance(said, (list, tuple)):
                found = len(said)
        elif name in _TOTALS:
            if total is None and type(said) is int:
                total = said
        elif more is None:
            if name in _CURSORS:
                more = f"There is more: call again with the cursor in `{name}`." if said else None
            elif said is True:
                more = "There is more: ask for the next part."
    if total is None:
        total = found
    elif more is None and found is not None and found < total:
        more = f"This is {found} of {total}: ask for the next part."
    return found, total, more


def summarise(call: ToolCall) -> Any:
    """
    The arguments of a call, short enough to be read again with every result.
    """
    if call.canonical is not None and len(call.canonical) <= MAX_STRING:
        return call.arguments
    arguments = call.arguments
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
