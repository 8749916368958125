"""
Bars of text and boxes: stacked ones by row, columns over time. Every bar says its figures in words beside it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .markup import Markup, tag


_THIN: Final = 2.5


class Part(NamedTuple):
    """
    One piece of a bar.
    """

    css: str
    size: float
    title: str


class Bar(NamedTuple):
    """
    One bar and its text.
    """

    who: str
    """The policy, where there are two; else empty."""
    parts: Sequence[Part]
    text: str


def bar_rows(rows: Sequence[tuple[Markup, Sequence[Bar]]], label: str) -> Markup:
    """
    Returns a list of labelled bars, all on one scale.
    """
    scale = max((sum(part.size for part in bar.parts) for _, bars in rows for bar in bars), default=0)
    return tag(
        "ul",
        *(tag("li", tag("div", name, class_="name"), *(_bar(bar, scale) for bar in bars)) for name, bars in rows),
        class_="bars paired" if any(bar.who for _, bars in rows for bar in bars) else "bars",
        aria_label=label,
    )


def _bar(bar: Bar, scale: float) -> Markup:
    return tag(
        "div",
        tag("small", bar.who, class_="who") if bar.who else "",
        tag("div", *(_part(part, scale) for part in bar.parts if part.size), class_="bar"),
        tag("div", bar.text, class_="said"),
        class_="line",
    )


def _part(part: Part, scale: float) -> Markup:
    percent = 100 * part.size / scale
    # Too thin for a letter.
    css = part.css if percent >= _THIN else f"{part.css} thin"
    return tag("i", class_=css, style=f"width:{percent:.3g}%", title=part.title)


def columns(bins: Sequence[tuple[str, Sequence[Part]]], scale: float, label: str) -> Markup:
    """
    Stacked columns side by side, *scale* high; *bins* are (name, parts from below).
    """
    drawn = []
    for n, (name, parts) in enumerate(bins):
        top = 0.0
        boxes = []
        for part in parts:
            height = 100 * part.size / scale
            top += height
            boxes.append(
                tag("rect", class_=part.css, x=n * 10 + 1, y=f"{100 - top:.2f}", width=8, height=f"{height:.2f}")
            )
        if boxes:
            said = f"{name}: " + ", ".join(part.title for part in parts)
            drawn.append(tag("g", tag("title", said), *boxes))
    picture = tag(
        "svg",
        *drawn,
        viewBox=f"0 0 {10 * len(bins)} 100",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
    ends = [bins[0][0], bins[len(bins) // 2][0], bins[-1][0]] if len(bins) > 2 else [name for name, _ in bins]
    return tag(
        "figure",
        tag("div", f"{scale:,.0f} stops", class_="top"),
        picture,
        tag("div", *(tag("span", end) for end in ends), class_="axis"),
        class_="columns",
        style=f"max-width:{6 * len(bins)}rem",
    )
