"""
One offline HTML page of the figures: which tools waste calls and why, what their errors are, how long they take.

It has the parts, the style and the rules of the page of a judgement: no network, and what records say in it is text.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..judge.html import MAX_NOTICES, POLICY
from ..judge.page.bars import Bar, Part, bar_rows
from ..judge.page.markup import Markup, join, named, said, tag
from ..judge.page.numbers import NONE, count, plural, share, usd
from ..judge.page.palette import Palette, css, legend, palette
from ..judge.page.script import SCRIPT
from ..judge.page.style import STYLE
from ..judge.page.tables import Heading, row, table
from .durations import duration, durations
from .reasons import FORMULA, ranked, reasons
from .run import Found
from .suggest import Suggestion
from .tally import REFUSED, Tally, ratio


MOST: Final = 25
"""Tools drawn in a figure."""
MOST_ROWS: Final = 500
"""Tools in the table."""
_WORDS: Final = (
    (
        "wasted",
        (
            "A call that repeats pointlessly (unless its tool polls), was refused as a repeat or for its arguments, or"
            " failed. Non-zero exits, code errors and cancellations are news of the work, not failures of the tool."
            " Each call counts once."
        ),
    ),
    ("score", f"{FORMULA}: what a redesign would save."),
    ("repeat", "The same tool and arguments as one of the last 20 calls of the session, run or refused."),
    ("pointless", "A repeat with the same result as the latest, or the same error but for digits."),
    ("loop rate", "Share of calls that repeated pointlessly or were refused for repeating."),
    ("retry", "The same call again after one of the last 20 calls that had failed; its success is that it worked."),
    (
        "self-correction",
        "After a validation error, the next call of the tool within 5 calls had other arguments and worked.",
    ),
    (
        "no signal",
        "Successes that did not say whether they were complete, or said they were not without a way to go on.",
    ),
)
_COLUMNS: Final = (
    *("calls", "score", "wasted", "failed", "retries", "retry success", "self-corrected", "repeats", "loop rate"),
    *("no signal", "p50", "p99", "cost"),
)


def page(found: Found, suggestions: Sequence[Suggestion] = ()) -> str:
    """
    The page as text, to be written as UTF-8; the same figures give the same page.
    """
    tools = ranked(found.quality.tallies.values())
    errors: Counter[str] = Counter()
    for tally in tools:
        errors.update(tally.errors)
    colours = palette(errors)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", "Quality of tools"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE + css())),
    )
    parts = _parts(found, tools, errors, colours, suggestions)
    links = tag("ul", *(tag("li", tag("a", name, href=f"#{anchor}")) for anchor, name, _, _ in parts))
    header = tag("header", tag("h1", "Quality of tools"), *_lead(found), tag("nav", links, aria_label="sections"))
    main = tag("main", _tiles(found, tools), *(_section(*part) for part in parts))
    return (
        f"<!doctype html>\n{tag('html', head, tag('body', header, main, tag('script', Markup(SCRIPT))), lang='en')}\n"
    )


def _lead(found: Found) -> list[Markup]:
    quality = found.quality
    lines = [
        tag(
            "p",
            f"{plural(quality.calls, 'recorded call')} of {plural(quality.sessions, 'session')},"
            f" {plural(len(quality.tallies), 'tool')}. What polls or changes nothing is taken from the policy ",
            named(found.policy),
            ".",
            class_="lead",
        )
    ]
    if not found.finished:
        text = "Interrupted. The figures are of what was read until then."
        lines.append(tag("p", text, class_="alert", role="note"))
    return lines


def _tiles(found: Found, tools: Sequence[Tally]) -> Markup:
    calls = found.quality.calls
    wasted = sum(tally.wasted for tally in tools)
    failed = sum(tally.failed for tally in tools)
    idle = sum(tally.pointless - tally.waits + tally.refused_repeats for tally in tools)
    cost = sum(tally.cost for tally in tools)
    tiles = [
        ("Wasted", share(wasted, calls), plural(wasted, "call")),
        ("Failed", share(failed, calls), plural(failed, "call")),
        ("Repeated for nothing", share(idle, calls), plural(idle, "call")),
        ("Cost of tools", usd(cost), "as the records have it"),
        ("Cost of the model", usd(found.quality.model_cost), "of all responses"),
    ]
    return tag(
        "ul",
        *(tag("li", tag("h3", name), tag("b", text), tag("small", detail)) for name, text, detail in tiles),
        class_="tiles",
    )


def _parts(
    found: Found, tools: Sequence[Tally], errors: Counter[str], colours: Palette, suggestions: Sequence[Suggestion]
) -> list[tuple[str, str, str, str]]:
    """
    (anchor, heading, note, body) of each section.
    """
    words = tag("dl", *(join([tag("dt", word), tag("dd", meaning)]) for word, meaning in _WORDS))
    first = [tally for tally in tools if tally.wasted][:MOST]
    failing = sorted((tally for tally in tools if tally.failed), key=lambda tally: (-tally.failed, tally.tool))[:MOST]
    busy = sorted(tools, key=lambda tally: (-tally.calls, tally.tool))[:MOST]
    note = "Calls wasted: red failed or was refused for its arguments, grey repeated for nothing."
    mix = join([legend(colours, [errors]), bar_rows([_errors(tally, colours) for tally in failing], "errors by tool")])
    return [
        (
            "first",
            "Redesign first",
            f"{note} {FORMULA}.",
            bar_rows([_first(each) for each in first], "wasted calls") if first else "No call was wasted.",
        ),
        ("errors", "Errors", "Failures and refused arguments by type.", mix if failing else "No call failed."),
        ("durations", "Durations", "From the median to the 99th percentile, within 1 %.", durations(busy)),
        ("tools", "All tools", "", _table(tools)),
        ("suggestions", "What a policy should know", "", _suggestions(suggestions)),
        ("limits", "What was met on the way", "", _notices(found)),
        ("words", "Words", "", words),
    ]


def _section(anchor: str, name: str, note: str, body: str) -> Markup:
    return tag(
        "section",
        tag("h2", name),
        tag("p", note, class_="note") if note else "",
        body if isinstance(body, Markup) else tag("p", body),
        id=anchor,
    )


def _first(tally: Tally) -> tuple[Markup, list[Bar]]:
    idle = min(tally.wasted, tally.pointless - tally.waits + tally.refused_repeats)
    parts = [
        Part("wrongbar", tally.wasted - idle, plural(tally.wasted - idle, "failed call")),
        Part("limit", idle, plural(idle, "repeat")),
    ]
    text = f"{tally.wasted:,} of {tally.calls:,} ({share(tally.wasted, tally.calls)}). {'; '.join(reasons(tally))}"
    return named(tally.tool), [Bar("", parts, text)]


def _errors(tally: Tally, colours: Palette) -> tuple[Markup, list[Bar]]:
    parts = [Part(colours.css(kind), n, f"{kind}: {n:,}") for _, kind, n in colours.by_slot(tally.errors)]
    told = ", ".join(f"{n:,} {kind}" for kind, n in tally.errors.most_common(4))
    return named(tally.tool), [Bar("", parts, f"{share(tally.failed, tally.calls)} of calls: {told}")]


def _table(tools: Sequence[Tally]) -> Markup:
    lines = [_row(tally) for tally in tools[:MOST_ROWS]]
    more = len(tools) - MOST_ROWS
    caption = f"{plural(len(tools), 'tool')}" + (f", {more:,} with the smallest scores left out" if more > 0 else "")
    headings = [Heading("tool", number=False), *(Heading(name) for name in _COLUMNS)]
    return table(caption, headings, lines, filtered=True)


def _row(tally: Tally) -> Markup:
    p50, p99 = tally.durations.at(0.5), tally.durations.at(0.99)
    return row(
        named(tally.tool),
        count(tally.calls),
        count(tally.score),
        share(tally.wasted, tally.calls),
        share(tally.failed, tally.calls),
        percent(ratio(tally.retries.n, tally.failed - tally.errors[REFUSED])),
        percent(tally.retries.share),
        percent(tally.corrections.share),
        share(tally.repeats + tally.refused_repeats, tally.calls),
        share(tally.pointless - tally.waits + tally.refused_repeats, tally.calls),
        share(tally.unsignalled + tally.dead_ends, tally.results),
        duration(p50),
        duration(p99),
        usd(tally.cost) if tally.cost else NONE,
    )


def percent(part: float | None) -> str:
    """
    A share of 1 in per cent.
    """
    return NONE if part is None else f"{100 * part:.0f} %"


def _suggestions(suggestions: Sequence[Suggestion]) -> Markup:
    if not suggestions:
        return tag("p", "Nothing: there are too few calls, or the policy says it already.")
    items = [
        tag("li", named(one.tool), ": ", tag("b", f"{key}: {value}"), " ", tag("small", one.evidence[key]))
        for one in suggestions[:MOST_ROWS]
        for key, value in one.settings.items()
    ]
    return tag("ul", *items, class_="plain")


def _notices(found: Found) -> Markup:
    lines = [said(notice) for notice in found.notices[:MAX_NOTICES]]
    if found.broken_lines:
        lines.insert(0, Markup(f"{plural(found.broken_lines, 'line')} could not be read."))
    if len(found.notices) > MAX_NOTICES:
        lines.append(Markup(f"and {len(found.notices) - MAX_NOTICES:,} more"))
    return tag("ul", *(tag("li", line) for line in lines), class_="plain") if lines else tag("p", "Nothing.")
