"""
What a shell command would run, found by reading it; nothing is run and no file is touched.
"""

from .found import Command, Found
from .patterns import Rule, allows, forbids, rule
from .plain_form import NotPlainError
from .plain_run import plainly
from .reading import walk
from .syntax import NoParserError, UnreadableError
from .unmatched import unmatched


__all__ = [
    "Command",
    "Found",
    "NoParserError",
    "NotPlainError",
    "Rule",
    "UnreadableError",
    "allows",
    "forbids",
    "plainly",
    "rule",
    "unmatched",
    "walk",
]
