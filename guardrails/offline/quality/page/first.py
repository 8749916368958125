"""
The picture of which tools to redesign first: for each what it wastes, why, what would help, and its key figures.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.offline.pages.markup import Markup, join, named, tag
from guardrails.offline.pages.numbers import NONE, plural
from guardrails.offline.quality.tally import Tally

from .columns import COLUMNS, loops_told, wasted_told
from .reasons import reasons


MOST: Final = 10
"""Tools with their reasons; the table has them all."""
_SAID: Final = {"calls", "score", "wasted", "loops", "tokens a loop", "time a loop", "untyped", "unchecked"}
"""Columns whose figures a card says otherwise, or not at all."""
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
    Returns a card for each of the first of *tools*, all bars on one scale.
    """
    shown = tools[:MOST]
    scale = max((tally.wasted for tally in shown), default=0)
    key = tag("ul", *(tag("li", tag("i", class_=css), text) for css, text in KEY), class_="legend")
    cards = (tag("li", *_card(place, tally, scale)) for place, tally in enumerate(shown, 1))
    return join([key, tag("ol", *cards, class_="first", style="list-style:none;padding:0;margin:0")])


def _card(place: int, tally: Tally, scale: int) -> list[Markup]:
    wasted = wasted_told(tally)
    why = [tag("li", tag("b", reason.what), f": {reason.cure}") for reason in reasons(tally)]
    looped = loops_told([tally])
    if looped:
        why.append(tag("li", looped))
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
    return [(column.name, column.cell(tally).text) for column in COLUMNS if column.name not in _SAID]
