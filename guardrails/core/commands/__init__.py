"""
The commands that a shell command would run, found by reading it. No command is run and no file is touched.
"""

from guardrails.core.commands.syntax import UNKNOWN, Command, Contents, Fault, plain_steps

from .reader import read
from .rules import Rule, allows, broken, rule


__all__ = ["UNKNOWN", "Command", "Contents", "Fault", "Rule", "allows", "broken", "plain_steps", "read", "rule"]
