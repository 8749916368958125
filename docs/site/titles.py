"""
The titles of the pages.
"""

import re

from .nav import written
from .reference import TITLES


SAID = {
    **{f"reference/{part}.md": told for part, told in TITLES.items()},
    "project/readme.md": "The README",
    "reference/settings.md": "Settings of a policy file",
    "reference/codes.md": "Codes",
    "reference/commands.md": "Commands",
}
"""The titles of pages that nobody writes, and of one that shares its own with another."""


def title(page: str) -> str:
    """
    The title of *page*, without marks of Markdown. Raises KeyError if the site has no such page.
    """
    if page in SAID:
        return SAID[page]
    text = written()[page].read_text(encoding="utf-8")
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return (found[1] if found else page).replace("`", "")
