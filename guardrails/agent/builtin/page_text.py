"""
The text of an HTML page, in time that grows with its length alone, whatever it holds.

One pass from the beginning to the end: no search that failed is made twice, no expression goes back over what it has read.
The parser of the standard library reads `<a <a <a ...` again for each tag that does not end: 60 kB took it 37 s.
"""

import html
import re

from typing import Final


_SKIPPED: Final = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_BREAKS: Final = frozenset(
    {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "header", "footer"}
    | {"table", "ul", "ol", "pre", "blockquote", "hr", "title", "main", "nav", "aside", "form", "dl", "dt", "dd"}
)
_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])")
_NAME: Final = re.compile(r"</?([A-Za-z][^\s/>]*+)")
# A quote counts after `=` only, as in browsers; one without an end is a letter. The last of its kind is looked for once.
_ATTRIBUTES: Final = re.compile(r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+>""")
_RAW_ENDS: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "title", "textarea")
}
"""Elements whose text is no markup, by the beginning of their end."""
_REFERENCE: Final = re.compile(r"&#?[0-9A-Za-z]{1,32};?")
_SPACES: Final = re.compile(r"[ \t\r\f\v]+")
_GAPS: Final = re.compile(r"\n{3,}")
MAX_TITLE_CHARS: Final = 300


def page_text(source: str) -> tuple[str, str]:
    """
    (title, text) of the HTML *source*, however broken: scripts and styles left out, one line for each block.
    """
    reader = _Reader(source)
    reader.read()
    lines = (line.strip() for line in _SPACES.sub(" ", "".join(reader.parts)).split("\n"))
    return reader.title, _GAPS.sub("\n\n", "\n".join(lines)).strip()


class _Reader:
    def __init__(self, source: str) -> None:
        self.title = ""
        self.parts: list[str] = []
        self._source = source
        self._inside: list[str] = []
        self._endless: set[str] = set()

    def read(self) -> None:
        """
        Go through the source once.
        """
        at, end = 0, len(self._source)
        while at < end:
            found = _MARKUP.search(self._source, at)
            start = end if found is None else found.start()
            self._say(at, start)
            at = end if found is None else self._markup(start)

    def _say(self, start: int, end: int) -> None:
        if start < end and not self._inside:
            self.parts.append(_plain(self._source[start:end]))

    def _markup(self, at: int) -> int:
        """
        Returns the end of the markup that begins at *at*; the end of the source if it does not end.
        """
        source = self._source
        name = _NAME.match(source, at)
        if name is None:
            comment = source.startswith("<!--", at)
            end = source.find("-->", at + 2) if comment else source.find(">", at)
            return len(source) if end < 0 else end + (3 if comment else 1)
        rest = _ATTRIBUTES.match(source, name.end())
        if rest is None:
            return len(source)
        tag = name[1].lower()
        if source[at + 1] == "/":
            self._end(tag)
            return rest.end()
        return self._start(tag, rest.end())

    def _start(self, tag: str, at: int) -> int:
        if tag == "body" or (self._inside == ["head"] and tag in _BREAKS and tag != "title"):
            # The head of many pages has no end of its own.
            self._inside.clear()
        if tag in _RAW_ENDS and tag not in self._endless:
            end = _RAW_ENDS[tag].search(self._source, at)
            if end is None and tag in _SKIPPED:
                return len(self._source)
            if end is not None:
                self._raw(tag, at, end.start())
                return end.start()
            self._endless.add(tag)
        if tag in _SKIPPED and tag not in self._inside:
            self._inside.append(tag)
        elif tag in _BREAKS:
            self._break()
        return at

    def _raw(self, tag: str, start: int, end: int) -> None:
        if tag == "textarea":
            self._say(start, end)
        elif tag == "title" and not self.title and "svg" not in self._inside:
            self.title = " ".join(_plain(self._source[start:end][: 32 * MAX_TITLE_CHARS]).split())[:MAX_TITLE_CHARS]

    def _end(self, tag: str) -> None:
        if tag in self._inside:
            del self._inside[self._inside.index(tag) :]
        elif tag in _BREAKS:
            self._break()

    def _break(self) -> None:
        if not self._inside:
            self.parts.append("\n")


def _plain(text: str) -> str:
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text
