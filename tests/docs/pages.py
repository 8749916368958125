"""
The pages that people read, and the blocks of code on them.
"""

import re

from pathlib import Path
from typing import NamedTuple


ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = sorted(path for path in DOCS.rglob("*.md") if "reference" not in path.parts)
"""The pages of the documentation; those of the reference are generated."""
PAGES = [
    *WRITTEN,
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")),
]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """
    A block of code: its language, its text, and the last heading of level two above it.
    """

    language: str
    text: str
    section: str


def blocks(page: Path, language: str = "") -> list[Block]:
    """
    The blocks of *page* in their order; with *language* only those.
    """
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        headings = re.findall(r"^## (.*)$", FENCE.sub("", text[: match.start()]), re.MULTILINE)
        found.append(Block(match[1], match[2], headings[-1] if headings else ""))
    return [one for one in found if language in ("", one.language)]


def prose(page: Path) -> str:
    """
    The text of *page* without its code.
    """
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """
    The anchors of the headings of *page*, as GitHub and the site make them.
    """
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
