"""
Finds requests of a built site to other machines, and links of it that lead nowhere: there must be none.
"""

import re

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}
"""Elements that load what they name, and by which attribute."""
ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(\s*|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class _Loaded(HTMLParser):
    """
    A page, and what it loads from elsewhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        given = {name: value or "" for name, value in attrs}
        self.places |= {given.get("id", ""), given.get("name", "")}
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        named = [given.get(LOADING[tag], "")] if tag in LOADING else []
        if tag == "link" and given.get("rel") not in {"canonical", "next", "prev", "search", "index"}:
            named.append(given.get("href", ""))
        named += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        self.asked += [address for address in named if ELSEWHERE.match(address)]
        self.asked += IN_STYLES.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._style:
            self.asked += IN_STYLES.findall(data)


def requests(folder: Path) -> list[str]:
    """
    A line for each address of another machine that a page or a style of *folder* would load.
    """
    asked: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".html", ".css"}:
            continue
        text, page = path.read_text(encoding="utf-8"), _Loaded()
        if path.suffix == ".html":
            page.feed(text)
        found = page.asked + IN_STYLES.findall(text if path.suffix == ".css" else "")
        asked += [f"{path.relative_to(folder)}: {address}" for address in found]
    return asked


def dead(folder: Path) -> list[str]:
    """
    A line for each link of a page of *folder* that leads to no file of it, or to no place on that page.
    """
    pages = {path.resolve(): _Loaded() for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        page.feed(path.read_text(encoding="utf-8"))
    wrong: list[str] = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            address, place = urldefrag(link)
            if ELSEWHERE.match(link) or urlsplit(link).scheme:
                continue
            there = (path.parent / unquote(urlsplit(address).path)).resolve() if address else path
            there = there / "index.html" if there.is_dir() else there
            lost = not there.exists() or bool(place and there in pages and unquote(place) not in pages[there].places)
            wrong += [f"{path.relative_to(folder.resolve())}: {link}"] if lost else []
    return wrong
