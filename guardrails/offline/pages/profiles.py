"""
One offline HTML page of how the failures of each tool resolve, and the columns that a terminal shows, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from guardrails.core.retries.profiles import Profile
from guardrails.core.retries.shrinkage import Count

from .document import Section, document, plain_list, words
from .markup import EMPTY, join, named, said, short, tag
from .numbers import FEW, NONE, plural
from .tables import Figure, Heading, drawn_table


MOST: Final = 25
"""Sentences on the page."""


class Column(NamedTuple):
    """
    One figure of the failures of one kind of one tool.
    """

    name: str
    meaning: str
    cell: Callable[[Profile], Figure]


def _retries(one: Profile) -> Figure:
    return Figure(f"{one.retries:,.0f}", one.retries)


def _worked(one: Profile) -> Figure:
    if not one.retries:
        return Figure(NONE, None)
    few = one.retries < FEW
    return Figure(f"{one.successes:.0f} of {one.retries:.0f}" if few else f"{100 * one.rate:.0f} %", one.rate)


def _interval(one: Profile) -> Figure:
    return Figure(f"{100 * one.low:.0f}-{100 * one.high:.0f} %", one.low) if one.retries else Figure(NONE, None)


def _wait(one: Profile) -> Figure:
    return Figure(NONE if one.wait_ms is None else f"{one.wait_ms / 1000:g} s", one.wait_ms)


def _then(one: Profile) -> Figure:
    return Figure(NONE if one.wait_rate is None else f"{100 * one.wait_rate:.0f} %", one.wait_rate)


def _of(count: Count) -> Figure:
    # Decayed counts are no whole numbers.
    return Figure(f"{count.s:,.0f} of {count.n:,.0f}", count.s / count.n) if round(count.n) else Figure(NONE, None)


COLUMNS: Final = (
    Column("retries", "The same call again, nothing changed in between; older ones weigh less.", _retries),
    Column(
        "worked",
        "The share of them that worked, drawn towards that of all tools with this error; the counts if there are few.",
        _worked,
    ),
    Column("95 %", "Between these the share lies, by their counts alone.", _interval),
    Column("best wait", "The shortest wait within 10 % of the best.", _wait),
    Column("then", "The share that works after it.", _then),
    Column(
        "repaired",
        "The same call after something else was changed in between, and how often it worked.",
        lambda p: _of(p.repaired),
    ),
    Column(
        "changed", "Calls with other arguments that came next, and how often they worked.", lambda p: _of(p.corrected)
    ),
)


def profile_page(profiles: Sequence[Profile], model: str) -> str:
    """
    Returns the page as text, to be written as UTF-8, of the *profiles* of the file *model*.
    """
    told = [one for one in profiles if one.retries or one.corrected.n or one.repaired.n]
    tools = plural(len({one.tool for one in profiles}), "tool")
    lead = tag(
        "p", f"{plural(len(profiles), 'kind')} of failure of {tools}, by the model ", named(model), ".", class_="lead"
    )
    headings = [Heading("tool", number=False), Heading("error", number=False)]
    headings += [Heading(column.name, meaning=column.meaning) for column in COLUMNS]
    rows: list[list[str | Figure]] = [
        [one.tool, one.error, *(column.cell(one) for column in COLUMNS)] for one in profiles
    ]
    most = sorted(told, key=lambda one: -one.retries)[:MOST]
    parts = [
        Section(
            "told",
            "In words",
            f"The {MOST} with the most retries." if len(told) > MOST else "",
            plain_list(
                [said(f"{replace(one, tool=short(one.tool) or EMPTY).sentence()}.") for one in most], "Nothing."
            ),
        ),
        Section(
            "all",
            "All failures",
            "",
            drawn_table(plural(len(rows), "kind of failure", "kinds of failure"), headings, rows),
        ),
        words((column.name, column.meaning) for column in COLUMNS),
    ]
    return document("How failures resolve", [tag("h1", "How failures resolve"), lead], join(()), parts)
