"""
Files that a redirection may write without a rule: names that no program takes for its instructions.
"""

import posixpath

from typing import Final

from guardrails.core.values.late_pattern import pattern


_DATA: Final = frozenset(
    {"txt", "log", "out", "err", "csv", "tsv", "json", "jsonl", "md", "diff", "patch", "xml", "html", "tmp"}
)
"""Endings of files that hold data."""
_PLAIN: Final = pattern(
    r"(?:[a-z]|out|output|results?|logs?|list|names|files|te?mp|sorted|diff|report|data|summary|stdout|stderr|errors?|lines|counts?)[0-9]*"
)
"""Names without an ending that say as much."""
_CODE: Final = {
    "py": (("python", "-c"), ("python3", "-c")),
    "sh": (("sh", "-c"), ("bash", "-c")),
    "bash": (("bash", "-c"),),
    "js": (("node", "-e"),),
    "mjs": (("node", "-e"),),
    "rb": (("ruby", "-e"),),
    "pl": (("perl", "-e"),),
}
"""By ending of a file of code the words by which its programs run any such code."""
_READ_BY_TOOLS: Final = pattern(
    r"""(?xi)
    (?:.*[-._])?(?:package|lock|config|conf|settings|project|manifest|tasks|launch|workspace|rc)(?:[-._].*)?
    |(?:ts|js|deno|lerna|nx|turbo|bower|composer|jest|babel|mcp|angular|biome|vercel|firebase|now)(?:[-._]?config|[-._]?base)?(?:\..*)?\.?json
    |(?:requirements|constraints).*|cmake.*|pom\.xml|build\.xml|ivy\.xml|plugin\.xml|claude.*|agents.*|gemini.*|skill.*
    """
)
"""Of those the names that a program, or an agent, looks for and does as they say."""


def is_data(path: str) -> bool:
    """
    Returns whether the file *path*, normalised, is plainly data. No part of it begins with a dot. Its name ends like
    that of a text, a log or a table, and no program looks for a file of that name.
    """
    name = posixpath.basename(path)
    if _is_hidden(path) or _READ_BY_TOOLS.fullmatch(name) is not None:
        return False
    return _PLAIN.fullmatch(name) is not None if "." not in name else name.rpartition(".")[2].lower() in _DATA


def runs(path: str) -> tuple[tuple[str, str], ...]:
    """
    Returns the words by which programs run any code of the language that the file *path* is in. A caller who may run
    such code gains nothing by writing the file. Returns no words for files that are hidden, or no code.
    """
    return () if _is_hidden(path) else _CODE.get(posixpath.splitext(path)[1][1:].lower(), ())


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))
