"""
Make a result self-contained: what was asked, how much there is, whether that is all.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

import orjson

from guardrails.core.envelope import Envelope
from guardrails.core.result import Reading
from guardrails.core.result.completeness import extent_of
from guardrails.core.result.content import short
from guardrails.core.text.plain_json import to_json
from guardrails.core.tool import source_of

from .base import Codes, Facts, Guard, Outcome, SessionState, ToolCall, guard


MAX_STRING: Final = 200
"""Characters of one string in a query summary."""
MAX_SUMMARY: Final = 1_024
"""Bytes of a whole query summary."""


@guard
class Summary(Guard):
    """
    Echo the query of a look or of what failed, strings cut at 200 characters and the whole at 1 KB; count the matches, and say whether the
    result is complete.

    A look is a tool that is declared `read_only`, or any result that holds rows. Of a tool that is known to work no matches are counted:
    rows that an update brings back, or none, are no search.

    A result with a sure sign of more (`core.result.completeness`) is not complete, and the hint says how to go on. Beside a bare total
    or page nothing is said.
    """

    codes: ClassVar[Codes] = {}

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> None:
        looks: bool | None = envelope.status != "success"
        if not looks:
            reading, tool, shown = outcome, facts.tool, envelope.rendered
            if not isinstance(reading, Reading) or reading.value is not envelope.value:
                reading = Reading(envelope.value, source_of(tool), call.arguments)
            complete, rows, total, how = extent_of(reading)
            looks = (tool.repeats == "evidence" or rows is not None) if tool.read_only is None else tool.read_only
            whole = outcome.complete and (shown is None or shown.complete)
            if tool.read_only is False:
                # Rows that an update brings back, or none, are no search.
                rows = total = None
            if total is not None and outcome.complete and envelope.total_matches is None:
                envelope.total_matches = total
            if envelope.is_complete is None:
                envelope.is_complete = complete if whole else False
                if how is not None:
                    envelope.hint(how)
                elif rows is not None and whole and complete:
                    envelope.next_action_hint = envelope.next_action_hint or matches_hint(rows)
        if looks and envelope.query_summary is None:
            # The tool may have changed the arguments that it was given.
            text = call.canonical
            asked = call.arguments if text is None else orjson.loads(text)
            brief = text is not None and len(text) <= MAX_STRING
            envelope.query_summary = (asked if brief else summarise(asked)) or None


@lru_cache(256)
def matches_hint(matches: int) -> str:
    """
    Returns the next step of a search that found so many *matches*, all that there are.
    """
    if matches == 0:
        return "No matches. The same call will find none again: change the arguments, or say that there are none."
    what = "Found 1 match. Use it" if matches == 1 else f"Found {matches} matches. Use them"
    return f"{what}. Do not search again unless parameters change."


def summarise(arguments: Any) -> Any:
    """
    Returns the arguments of a call, short enough to be read again with every result.
    """
    if not isinstance(arguments, Mapping):
        return _cut(arguments)
    summary: dict[str, Any] = {}
    for key, value in arguments.items():
        summary[str(key)[:MAX_STRING]] = _cut(value)
        if len(to_json(summary)) > MAX_SUMMARY:
            summary.popitem()
            return {**summary, "...": "cut"}
    return summary


def _cut(value: Any) -> Any:
    """
    Returns a scalar as it is, of all else a short text: its JSON if it has one.
    """
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() < 64):
        return value
    text = short(value)
    return text if len(text) <= MAX_STRING else f"{text[:MAX_STRING]}..."
