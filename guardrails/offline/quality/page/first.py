"""
The picture of which tools to redesign first: for each what it wastes, why, what would help, and its key figures.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.offline.pages.markup import Markup, join, named, tag
from guardrails.offline.pages.numbers import NONE, plural, share, usd
from guardrails.offline.quality.tally import REFUSED, Tally, ratio

from .durations import duration
from .reasons import reasons


MOST: Final = 10
"""Tools with their reasons; the table has them all."""
KEY: Final = (("wrongbar", "failed, or refused for its arguments"), ("again", "repeated for nothing"))
CSS: Final = """
.again{background:#7f8c99;color:#000}.again::before{content:"="}
.first>li{border:1px solid var(--line);border-radius:.4rem;padding:.6rem .8rem;margin:0 0 .6rem;break-inside:avoid}
.first h3{display:flex;flex-wrap:wrap;gap:0 .75rem;align-items:baseline;margin:0 0 .35rem;font-size:1rem}
.first h3 small{font-size:.9rem}
.first .facts{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;margin-top:.45rem;font-size:.82rem;color:var(--dim)}
.first .facts b{color:var(--fg);font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}
.first .plain{max-width:65rem;font-size:.9rem;margin-top:.35rem}
"""


def redesign_first(tools: Sequence[Tally]) -> Markup:
    """
    A card for each of the first of *tools*, all bars on one scale.
    """
    shown = tools[:MOST]
    scale = max((tally.wasted for tally in shown), default=0)
    key = tag("ul", *(tag("li", tag("i", class_=css), text) for css, text in KEY), class_="legend")
    cards = (tag("li", *_card(place, tally, scale)) for place, tally in enumerate(shown, 1))
    return join([key, tag("ol", *cards, class_="first", style="list-style:none;padding:0;margin:0")])


def _card(place: int, tally: Tally, scale: int) -> list[Markup]:
    wasted = f"{tally.wasted:,} of {plural(tally.calls, 'call')} wasted ({share(tally.wasted, tally.calls)})"
    why = [tag("li", tag("b", reason.what), f": {reason.cure}") for reason in reasons(tally)]
    facts = [tag("span", f"{name} ", tag("b", value)) for name, value in _facts(tally) if value != NONE]
    return [
        tag("h3", tag("span", f"{place}. ", named(tally.tool)), tag("small", wasted)),
        tag("div", *_bar(tally, scale), class_="bar"),
        tag("ul", *why, class_="plain"),
        tag("div", *facts, class_="facts"),
    ]


def _bar(tally: Tally, scale: int) -> list[Markup]:
    idle = min(tally.wasted, tally.idle)
    parts = ((KEY[0], tally.wasted - idle), (KEY[1], idle))
    return [
        tag("i", class_=css, style=f"width:{100 * n / scale:.3g}%", title=f"{plural(n, 'call')} {text}")
        for (css, text), n in parts
        if n
    ]


def _facts(tally: Tally) -> list[tuple[str, str]]:
    p50, p99 = tally.durations.at(0.5), tally.durations.at(0.99)
    return [
        ("failed", share(tally.failed, tally.calls)),
        ("of failures retried", percent(ratio(tally.retries.n, tally.failed - tally.errors[REFUSED]))),
        ("retries that worked", percent(tally.retries.share)),
        ("self-corrected", percent(tally.corrections.share)),
        ("repeats", share(tally.repeats + tally.refused_repeats, tally.calls)),
        ("loop rate", share(tally.idle, tally.calls)),
        ("no completion signal", share(tally.unsaid, tally.results) if tally.results else NONE),
        ("p50", duration(p50)),
        ("p99", duration(p99)),
        ("cost", usd(tally.cost) if tally.cost else NONE),
    ]


def percent(part: float | None) -> str:
    """
    A share of 1 in per cent.
    """
    return NONE if part is None else f"{100 * part:.0f} %"
