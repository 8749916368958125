"""
One offline HTML page of the figures: which tools waste calls and why, what their errors are, how long they take.

It has the parts, the style and the rules of the page of a judgement: no network, and words of records in it are text.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from guardrails.offline.judge.page.html import MAX_NOTICES
from guardrails.offline.pages.bars import Bar, Part, bar_rows
from guardrails.offline.pages.document import Section, document, plain_list, tiles, words
from guardrails.offline.pages.markup import Markup, join, named, said, tag
from guardrails.offline.pages.numbers import plural, share, usd
from guardrails.offline.pages.palette import Palette, legend, palette
from guardrails.offline.quality.run import Found
from guardrails.offline.quality.suggestions.suggest import Suggestion
from guardrails.offline.quality.tally import Tally
from guardrails.offline.readers.inputs import formats_told

from .columns import COLUMNS, SHARES, loops_told
from .durations import CSS as TIMES
from .durations import durations
from .first import CSS as FIRST
from .first import redesign_first
from .listed import CSS as LISTED
from .listed import all_tools, errors_told, failed_told, suggested
from .reasons import FORMULA, ranked


MOST: Final = 25
"""Tools drawn in a figure."""
_WORDS: Final = (*((column.name, column.meaning) for column in COLUMNS), ("shares", SHARES))
_TIMES: Final = (
    "From the median to the 99th percentile, within 1 %. In transcripts of other programs they may hold the wait for a"
    " person's permission."
)
_LOOPS: Final = "Runs of idle calls, and what they cost."
_COLUMNS_SAID: Final = "What each column means stands under Words, and at its heading."
_SUGGESTED: Final = (
    "`guardrails report --suggest -o overrides.yaml` writes them as a policy. Judge it first: `guardrails replay POLICY"
    " RECORDS --compare overrides.yaml`."
)


def page(found: Found, suggestions: Sequence[Suggestion] = ()) -> str:
    """
    Returns the page as text, to be written as UTF-8; the same figures give the same page.
    """
    tools = ranked(found.quality.tallies.values())
    errors: Counter[str] = Counter()
    for tally in tools:
        errors.update(tally.errors)
    colours = palette(errors)
    parts = _parts(found, tools, errors, colours, suggestions)
    heading = [tag("h1", "Quality of tools"), *_lead(found)]
    return document("Quality of tools", heading, _tiles(found, tools), parts, style=FIRST + TIMES + LISTED)


def _lead(found: Found) -> list[Markup]:
    quality = found.quality
    return [
        tag(
            "p",
            f"{plural(quality.calls, 'recorded call')} of {plural(quality.sessions, 'session')},"
            f" {plural(len(quality.tallies), 'tool')}. What polls or changes nothing is taken from the policy ",
            named(found.policy),
            ".",
            class_="lead",
        )
    ]


def _tiles(found: Found, tools: Sequence[Tally]) -> Markup:
    calls = found.quality.calls
    wasted = sum(tally.wasted for tally in tools)
    failed = sum(tally.failed for tally in tools)
    idle = sum(tally.idle for tally in tools)
    unsaid, results = sum(tally.unsaid for tally in tools), sum(tally.results for tally in tools)
    cost, model = sum(tally.cost for tally in tools), found.quality.model_cost
    figures = [
        ("Wasted", share(wasted, calls), plural(wasted, "call")),
        ("Failed", share(failed, calls), plural(failed, "call")),
        (
            "Repeated for nothing",
            share(idle, calls),
            f"{plural(idle, 'call')} in {plural(sum(tally.loops for tally in tools), 'loop')}",
        ),
        ("No completion signal", share(unsaid, results), f"{unsaid:,} of {plural(results, 'success', 'successes')}"),
    ]
    if cost or model:
        figures.append(("Cost", usd(cost + model), f"{usd(model)} of model responses, {usd(cost)} of tools"))
    return tiles(figures)


def _parts(
    found: Found, tools: Sequence[Tally], errors: Counter[str], colours: Palette, suggestions: Sequence[Suggestion]
) -> list[Section]:
    first = [tally for tally in tools if tally.wasted]
    failing = sorted((tally for tally in tools if tally.failed), key=lambda tally: (-tally.failed, tally.tool))[:MOST]
    busy = sorted(tools, key=lambda tally: (-tally.calls, tally.tool))[:MOST]
    mix = join([legend(colours, [errors]), bar_rows([_errors(tally, colours) for tally in failing], "errors by tool")])
    return [
        Section(
            "first",
            "Redesign first",
            f"The tools by calls wasted; {FORMULA}.",
            redesign_first(first) if first else "No call was wasted.",
        ),
        Section("errors", "Errors", "Failures and refused arguments by type.", mix if failing else "No call failed."),
        Section("durations", "Durations", _TIMES, durations(busy)),
        Section("loops", "Loops", _LOOPS, loops_told(tools) or "There were none."),
        Section("tools", "All tools", _COLUMNS_SAID, all_tools(tools)),
        Section("suggestions", "What a policy should know", _SUGGESTED, suggested(suggestions)),
        Section("limits", "What was met on the way", "", _notices(found)),
        words(_WORDS),
    ]


def _errors(tally: Tally, colours: Palette) -> tuple[Markup, list[Bar]]:
    parts = [Part(colours.css(kind), n, f"{kind}: {n:,}") for _, kind, n in colours.by_slot(tally.errors)]
    return named(tally.tool), [Bar("", parts, f"{failed_told(tally)}: {errors_told(tally, 4)}")]


def _notices(found: Found) -> Markup:
    lines = [said(notice) for notice in found.notices[:MAX_NOTICES]]
    if read := formats_told(found.read_as, found.without):
        lines.insert(0, said(read))
    if found.broken_lines:
        lines.insert(0, Markup(f"{plural(found.broken_lines, 'line')} could not be read."))
    if len(found.notices) > MAX_NOTICES:
        lines.append(Markup(f"and {plural(len(found.notices) - MAX_NOTICES, 'more notice')}"))
    return plain_list(lines, "Nothing.")
