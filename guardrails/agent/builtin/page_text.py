"""
The text of an HTML page.
"""

import re

from html.parser import HTMLParser
from typing import Final


_SKIPPED: Final = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_BREAKS: Final = frozenset(
    {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "header", "footer"}
    | {"table", "ul", "ol", "pre", "blockquote", "hr", "title"}
)


def page_text(html: str) -> tuple[str, str]:
    """
    (title, text) of *html*, however broken: scripts and styles left out, one line for each block.
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (re.sub(r"[ \t\r\f\v]+", " ", line).strip() for line in "".join(reader.parts).split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return " ".join("".join(reader.title).split())[:300], text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._inside: list[str] = []
        self._titled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._titled = True
        elif tag == "body":
            self._inside.clear()
        elif tag in _SKIPPED:
            self._inside.append(tag)
        elif tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._titled = False
        elif tag in self._inside:
            del self._inside[self._inside.index(tag) :]
        elif tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if self._titled:
            self.title.append(data)
        elif not self._inside:
            self.parts.append(data)
