"""
The commands that a shell command would run, found by reading it. No command is run and no file is touched.
"""

from guardrails.core.commands.syntax import UNKNOWN, Command, Fault, Found, Step

from .reader import read
from .rules import Rule, allows, broken, rule


__all__ = ["UNKNOWN", "Command", "Fault", "Found", "Rule", "Step", "allows", "broken", "read", "rule"]
