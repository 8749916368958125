"""
The picture of how long tools take: for each a bar from the median to the 99th percentile, on a scale of powers of ten.
"""

import math

from collections.abc import Sequence
from typing import Final

from guardrails.offline.pages.markup import Markup, named, tag
from guardrails.offline.pages.numbers import NONE, plural
from guardrails.offline.quality.tally import Tally


CSS: Final = """
.grid{fill:var(--line)}
.ticks{position:relative;height:1.2rem;font-size:.78rem;color:var(--dim)}
.tick{position:absolute;transform:translateX(-50%);white-space:nowrap}
.tick:first-child{transform:none}.tick.last{transform:translateX(-100%)}
@media (max-width:44rem){.tick:nth-child(even){display:none}}
"""
_LEAST_MS: Final = 1.0
_MINUTE_S: Final = 60


def durations(tools: Sequence[Tally]) -> Markup:
    """
    Returns the bars of *tools* that have durations.
    """
    timed = [(tally, tally.durations.at(0.5) or 0.0, tally.durations.at(0.99) or 0.0) for tally in tools]
    timed = [each for each in timed if each[0].durations.n]
    if not timed:
        return tag("p", "The records hold no durations.")
    decades = max(1, math.ceil(math.log10(max(_LEAST_MS * 10, *(p99 for _, _, p99 in timed)))))
    bars = (_bar(*each, decades) for each in timed)
    return tag("ul", _axis(decades), *bars, class_="bars", aria_label="durations")


def _axis(decades: int) -> Markup:
    """
    The names of the powers of ten, each where its line is.
    """
    names = (
        tag(
            "span",
            duration(10**n),
            style=f"left:{100 * n / decades:.2f}%",
            class_="tick" if n < decades else "tick last",
        )
        for n in range(decades + 1)
    )
    line = tag("div", tag("div", *names, class_="ticks"), tag("div", "", class_="said"), class_="line")
    return tag("li", tag("div", "", class_="name"), line, class_="scale", aria_hidden="true")


def _bar(tally: Tally, p50: float, p99: float, decades: int) -> Markup:
    left, right = _place(p50, decades), _place(p99, decades)
    box = tag("rect", class_="right", x=f"{left:.2f}", y=15, width=f"{max(right - left, 0.8):.2f}", height=70)
    lines = [
        tag("rect", class_="grid", x=f"{100 * n / decades - 0.1:.2f}", y=0, width=0.2, height=100)
        for n in range(1, decades)
    ]
    said = f"p50 {duration(p50)}, p99 {duration(p99)} of {plural(tally.durations.n, 'call')}"
    picture = tag(
        "svg",
        tag("title", said),
        *lines,
        box,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
        role="img",
        aria_label=said,
    )
    drawn = tag("div", tag("div", picture, class_="bar"), tag("div", said, class_="said"), class_="line")
    return tag("li", tag("div", named(tally.tool), class_="name"), drawn)


def _place(ms: float, decades: int) -> float:
    return 100 * math.log10(max(ms, _LEAST_MS)) / decades


def duration(ms: float | None) -> str:
    """
    Returns milliseconds as a person reads them.
    """
    if ms is None:
        return NONE
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    return f"{seconds:.3g} s" if seconds < _MINUTE_S * 10 else f"{seconds / _MINUTE_S:,.0f} min"
