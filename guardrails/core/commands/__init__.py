"""
The commands that a shell command would run, found by reading it. No command is run and no file is touched.
"""

from guardrails.core.commands.grammar.syntax import NoParserError, UnreadableError
from guardrails.core.commands.plain.form import NotPlainError, steps
from guardrails.core.commands.plain.run import plainly
from guardrails.core.commands.plain.unmatched import unmatched

from .allowing import allows
from .found import Command, Found
from .patterns import Rule, forbids, rule, rules
from .reading import walk


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
    "rules",
    "steps",
    "unmatched",
    "walk",
]
