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
    Whether the file *path*, normalised, is plainly data: no part of it begins with a dot, and its name ends like that of a text,
    a log or a table, and is none that programs look for.
    """
    name = posixpath.basename(path)
    return (
        not any(part.startswith(".") for part in path.split("/"))
        and name.rpartition(".")[2].lower() in _DATA
        and "." in name
        and _READ_BY_TOOLS.fullmatch(name) is None
    )
