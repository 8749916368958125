"""
The tables of the page: every tool with all its figures, and what a policy should know with its evidence.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.offline.pages.markup import Markup, named, tag
from guardrails.offline.pages.numbers import FEW, NONE, plural, share
from guardrails.offline.pages.tables import Figure, Heading, drawn_table
from guardrails.offline.quality.suggestions.suggest import Suggestion
from guardrails.offline.quality.tally import Tally

from .columns import COLUMNS
from .overrides import written


MOST_ROWS: Final = 500
"""Settings that are listed."""
CSS: Final = ".plain code{font-weight:600}"
_TYPES: Final = 3


def all_tools(tools: Sequence[Tally]) -> Markup:
    """
    Returns the figures of *tools*, in their order.
    """
    columns = [Heading(column.name, meaning=column.meaning) for column in COLUMNS]
    headings = [Heading("tool", number=False), *columns, Heading("errors by type", number=False)]
    return drawn_table(plural(len(tools), "tool"), headings, [_row(tally) for tally in tools])


def _row(tally: Tally) -> list[str | Figure]:
    figures = [column.cell(tally) for column in COLUMNS]
    return [tally.tool, *figures, errors_told(tally, _TYPES)]


def failed_told(tally: Tally) -> str:
    """
    Returns `12.0 % of 50 calls`, or `1 of 2 calls`.
    """
    calls = plural(tally.calls, "call")
    return f"{tally.failed:,} of {calls}" if tally.calls < FEW else f"{share(tally.failed, tally.calls)} of {calls}"


def errors_told(tally: Tally, types: int) -> str:
    """
    Returns `12 not_found, 3 timeout, 2 of other types`: the most frequent *types*.
    """
    told = [f"{n:,} {kind}" for kind, n in tally.errors.most_common(types)]
    rest = tally.failed - sum(n for _, n in tally.errors.most_common(types))
    return ", ".join([*told, f"{rest:,} of other types"] if rest else told) or NONE


def suggested(suggestions: Sequence[Suggestion]) -> Markup:
    """
    Each setting with its evidence.
    """
    if not suggestions:
        return tag("p", "Nothing: there are too few calls, or the policy says it already.")
    lines = [
        tag(
            "li",
            tag("div", named(one.tool), ": ", tag("code", f"{key}: {written(value)}")),
            tag("small", one.evidence[key]),
        )
        for one in suggestions
        for key, value in one.settings.items()
    ]
    if len(lines) > MOST_ROWS:
        lines[MOST_ROWS:] = [tag("li", f"and {plural(len(lines) - MOST_ROWS, 'setting')} more")]
    return tag("ul", *lines, class_="plain", style="max-width:65rem")
