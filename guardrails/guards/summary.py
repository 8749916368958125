"""
Make a result self-contained: what was asked, how much there is, whether that is all.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..envelope import Envelope
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
_TELLING: Final = frozenset((*LISTS, *TOTALS, *CURSORS, *MORE))


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
        if self.total and envelope.total_matches is None and total is not None:
            envelope.total_matches = total
        if envelope.is_complete is None:
            envelope.is_complete = more is None
            if more is not None:
                envelope.hint(more)
            elif found is not None and envelope.next_action_hint is None:
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
    telling = _TELLING.intersection(value)
    if not telling:
        return None, None, None
    found = next((len(value[key]) for key in LISTS if key in telling and isinstance(value[key], (list, tuple))), None)
    total = next((value[key] for key in TOTALS if key in telling and type(value[key]) is int), found)
    for key in telling.intersection(CURSORS):
        if value[key]:
            return found, total, f"There is more: call again with the cursor in `{key}`."
    if any(value[key] is True for key in telling.intersection(MORE)):
        return found, total, "There is more: ask for the next part."
    if found is not None and total is not None and found < total:
        return found, total, f"This is {found} of {total}: ask for the next part."
    return found, total, None


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
        left -= len(name.encode(errors="replace")) + len(str(short).encode(errors="replace")) + 6
        if left < len('"...": "cut"'):
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
    return text if len(text) <= MAX_STRING else f"{text[:MAX_STRING]}..."


def repr_of(value: Any) -> str:
    """
    A short text of an argument that is no scalar: its JSON where it has one.
    """
    from ..truncation import render

    return render(value, 512).payload.decode()
