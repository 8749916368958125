"""
What a shell command would run, found by reading it; nothing is run and no file is touched.
"""

from .found import Command, Found
from .patterns import Rule, allows, forbids, rule
from .reading import walk
from .syntax import NoParserError, UnreadableError


__all__ = ["Command", "Found", "NoParserError", "Rule", "UnreadableError", "allows", "forbids", "rule", "walk"]
