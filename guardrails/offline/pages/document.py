"""
The frame of an offline page: its head, which lets nothing be loaded, its sections, and the one script.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from .markup import Markup, join, tag
from .palette import css
from .script import DIGEST, SCRIPT
from .style import STYLE


POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'"


class Section(NamedTuple):
    """
    A part of a page with a heading of its own; a *body* that is no markup is a plain sentence.
    """

    anchor: str
    heading: str
    note: str
    body: str


def document(
    title: str, heading: Sequence[Markup], first: Markup, sections: Sequence[Section], *after: Markup, style: str = ""
) -> str:
    """
    Returns the text of a page, to be written as UTF-8: its *heading* with links, the part to read *first*, the
    *sections*.

    The page's own *style* is added to the common one.
    """
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE + css() + style)),
    ]
    links = tag("ul", *(tag("li", tag("a", each.heading, href=f"#{each.anchor}")) for each in sections))
    header = tag("header", *heading, tag("nav", links, aria_label="sections"))
    main = tag("main", first, *map(_section, sections))
    whole = tag("body", header, main, *after, tag("script", Markup(SCRIPT)))
    return f"<!doctype html>\n{tag('html', tag('head', *head), whole, lang='en')}\n"


def _section(each: Section) -> Markup:
    note = tag("p", each.note, class_="note") if each.note else ""
    body = each.body if isinstance(each.body, Markup) else tag("p", each.body)
    return tag("section", tag("h2", each.heading), note, body, id=each.anchor)


def words(meanings: Iterable[tuple[str, str]]) -> Section:
    """
    Returns the section that explains the words of the page.
    """
    said = tag("dl", *(join([tag("dt", word), tag("dd", meaning)]) for word, meaning in meanings))
    return Section("words", "Words", "", said)


def tiles(figures: Iterable[tuple[str, str, str]]) -> Markup:
    """
    Returns a tile to each of *figures*: its name, the figure, a detail.
    """
    shown = (tag("li", tag("h3", name), tag("b", text), tag("small", detail)) for name, text, detail in figures)
    return tag("ul", *shown, class_="tiles")


def plain_list(lines: Sequence[str], otherwise: str) -> Markup:
    """
    Returns *lines* one below the other; the sentence *otherwise* if there are none.
    """
    return tag("ul", *(tag("li", line) for line in lines), class_="plain") if lines else tag("p", otherwise)
